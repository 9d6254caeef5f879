//! What OpenAI's clients send and receive, in OpenAI's names.

mod completions;
mod content;
mod create_completion;
mod create_response;
mod gaps;
mod input;
mod items;
mod messages;
mod requests;
mod responses;

pub(crate) use completions::{
    BETWEEN, ChunkChoice, ChunkDelta, ChunkDto, CompletionDeleted, CompletionDto, CompletionUsage,
    FailedChunk,
};
pub(crate) use create_completion::{CreateCompletion, CreateCompletionBody, create_completion};
pub(crate) use create_response::{CreateResponse, CreateResponseBody, Previous, create_response};
pub(crate) use gaps::{Gap, GapText, divided, write_with_gaps};
pub(crate) use items::{InputItem, ItemStatus, ListDto, McpError, OutputItem, OutputText, SummaryText};
pub(crate) use requests::ModelChoice;
pub(crate) use responses::{
    Deleted, Incomplete, ModelDto, OpenAiError, OpenAiProblem, PartDto, ResponseDto, ResponseFailure,
    StreamEvent, UsageDto,
};
