//! The wire names of MCP: JSON-RPC messages, the arguments of tools, and their results.

mod arguments;
mod caller;
mod completion;
mod content;
mod discover;
mod entry;
mod failed;
mod input;
mod listen;
mod method;
mod prompts;
mod resources;
mod results;
mod rpc;
mod test_inputs;
mod versions;

pub(crate) use arguments::{
    AnswerWish, CancelWish, MessageWish, NewAgent, PartWish, ReadWish, answer, argument, cancel, launch,
    list, message, part, read, wait,
};
pub(crate) use caller::{Caller, Done};
pub(crate) use completion::{Completed, Completion, CompletionWish, VALUES as COMPLETION_VALUES, ValueKind};
pub(crate) use content::{CallToolResult, ContentDto, Media, ResourceContents};
pub(crate) use discover::{discovered, initialized};
pub(crate) use entry::{AskedDto, EntryDto, PIECE_BYTES, SaidDto, Shortened, settled};
pub(crate) use failed::Failed;
pub(crate) use input::{Answers, InputRequired, Waited, answers};
pub(crate) use listen::{Notification, listen};
pub(crate) use method::Method;
pub(crate) use prompts::{PromptCall, PromptList, PromptResult, PromptWish};
pub(crate) use resources::{
    ReadResource, ResourceList, TemplateList, agent_at, resource_uri, resources_after,
};
pub(crate) use results::{
    AgentList, AgentState, AgentTypeList, AnswerState, Cancelled, Launched, PartResult, ReadResult, Sent,
    ToolList, ToolName, WaitReason, WaitResult,
};
pub(crate) use rpc::{Call, Empty, Incoming, Params, ProgressDto, RequestId};
pub(crate) use test_inputs::{SentInputs, asked_inputs, sent_inputs, state_changed};
pub(crate) use versions::{Mirrors, Unfit, check_version, client};
