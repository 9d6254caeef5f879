//! The wire names of MCP: JSON-RPC messages, the arguments of tools, and their results.

mod arguments;
mod completion;
mod content;
mod entry;
mod prompts;
mod resources;
mod results;
mod rpc;

pub(crate) use arguments::{
    AnswerWish, CancelWish, MessageWish, NewAgent, PartWish, ReadWish, WaitWish, answer, argument, cancel,
    launch, list, message, part, read, wait,
};
pub(crate) use completion::{Completed, Completion, CompletionWish, VALUES as COMPLETION_VALUES, ValueKind};
pub(crate) use content::{ContentDto, Media, ResourceContents, ToolResult};
pub(crate) use entry::{AskedDto, EntryDto, PIECE_BYTES, SaidDto, Shortened, settled};
pub(crate) use prompts::{PromptCall, PromptList, PromptResult, PromptWish};
pub(crate) use resources::{
    ReadResource, ResourceList, TEMPLATES, agent_at, ready, resource_uri, resources_after,
};
pub(crate) use results::{
    AgentList, AgentState, AgentTypeList, AnswerState, Cancelled, Launched, PartResult, ReadResult, Sent,
    ToolList, ToolName, WaitReason, WaitResult,
};
pub(crate) use rpc::{
    Call, Done, Empty, Failed, Incoming, Method, Params, ProgressDto, RequestId, check_version, initialized,
};
