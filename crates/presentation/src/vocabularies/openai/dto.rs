//! What OpenAI's clients send and receive, in OpenAI's names.

mod input;
mod items;
mod requests;
mod responses;

pub(crate) use items::{InputItem, ItemStatus, McpError, OutputItem, Page};
pub(crate) use requests::{
    CreateResponse, CreateResponseBody, CreateResponseLimits, ModelChoice, create_response,
};
pub(crate) use responses::{
    Deleted, Incomplete, ModelDto, OpenAiError, OpenAiProblem, PartDto, ResponseDto, ResponseFailure,
    StreamEvent, UsageDto,
};
