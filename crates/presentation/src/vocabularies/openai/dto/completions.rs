//! Chat completions: whole, and as chunks of a stream.

use serde::Serialize;
use utoipa::ToSchema;

use super::gaps::{Gap, GapText};
use super::responses::{ResponseDto, UsageDto};

/// Separates the texts of messages that become one text.
pub(crate) const BETWEEN: &str = "\n\n";

/// A whole chat completion.
#[derive(Debug, Serialize)]
pub(crate) struct CompletionDto {
    id: String,
    object: &'static str,
    /// Seconds since the epoch.
    created: i64,
    model: String,
    choices: [ChoiceDto; 1],
    usage: Option<CompletionUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CompletionFailure>,
}

#[derive(Debug, Serialize)]
struct ChoiceDto {
    index: u32,
    message: AnswerDto,
    finish_reason: &'static str,
    logprobs: (),
}

/// What the agent has said, in one text, and what it has thought and done, in another.
#[derive(Debug, Serialize)]
struct AnswerDto {
    role: &'static str,
    content: Option<Gap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Gap>,
    /// Why there is no answer. Libraries for agents would ask again if it were absent too.
    refusal: Option<String>,
}

/// A part of a chat completion.
#[derive(Debug, Serialize)]
pub(crate) struct ChunkDto<'a> {
    pub(crate) id: &'a str,
    pub(crate) object: &'static str,
    pub(crate) created: i64,
    pub(crate) model: &'a str,
    pub(crate) choices: &'a [ChunkChoice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<CompletionUsage>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct ChunkChoice<'a> {
    pub(crate) index: u32,
    pub(crate) delta: ChunkDelta<'a>,
    pub(crate) finish_reason: Option<&'static str>,
    pub(crate) logprobs: (),
}

/// What a chunk adds.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ChunkDelta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_content: Option<GapText<'a>>,
}

/// The last part of the stream of a turn that has no answer.
#[derive(Debug, Serialize)]
pub(crate) struct FailedChunk {
    pub(crate) error: CompletionFailure,
}

/// Why a turn has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CompletionFailure {
    message: String,
    #[serde(rename = "type")]
    kind: &'static str,
    param: (),
    code: &'static str,
}

/// The tokens of a turn.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CompletionUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptTokens,
    completion_tokens_details: CompletionTokens,
}

#[derive(Debug, Clone, Serialize)]
struct PromptTokens {
    cached_tokens: u64,
}

#[derive(Debug, Clone, Serialize)]
struct CompletionTokens {
    reasoning_tokens: u64,
}

impl From<&UsageDto> for CompletionUsage {
    fn from(usage: &UsageDto) -> Self {
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.total_tokens,
            prompt_tokens_details: PromptTokens { cached_tokens: usage.input_tokens_details.cached_tokens },
            completion_tokens_details: CompletionTokens {
                reasoning_tokens: usage.output_tokens_details.reasoning_tokens,
            },
        }
    }
}

impl CompletionDto {
    /// The completion with this id, from a response that has ended. `has_done`: whether its agent has thought or done
    /// anything.
    pub(crate) fn new(id: String, response: &ResponseDto, has_done: bool) -> Self {
        let (message, finish_reason, error) = match response.finish() {
            Ok(reason) => (AnswerDto::new(has_done), reason, None),
            Err(failure) => (AnswerDto::refusal(failure.message.clone()), "stop", Some(failure)),
        };
        let choices = [ChoiceDto { index: 0, message, finish_reason, logprobs: () }];
        Self {
            id,
            object: "chat.completion",
            created: response.created_at,
            model: response.model.clone(),
            choices,
            usage: response.usage.as_ref().map(CompletionUsage::from),
            error,
        }
    }
}

impl ResponseDto {
    /// Why a response that has ended has ended. A failed or cancelled one is an error, so that no client takes a part
    /// of an answer for the whole.
    pub(crate) fn finish(&self) -> Result<&'static str, CompletionFailure> {
        match (&self.error, self.status, &self.incomplete_details) {
            (Some(failure), ..) => {
                Err(CompletionFailure::new("server_error", failure.code, failure.message.clone()))
            }
            (_, "cancelled", _) => {
                let message = "the turn was cancelled".to_owned();
                Err(CompletionFailure::new("invalid_request_error", "cancelled", message))
            }
            (.., Some(why)) if why.reason == "max_output_tokens" => Ok("length"),
            (.., Some(_)) => Ok("content_filter"),
            (.., None) => Ok("stop"),
        }
    }
}

impl CompletionFailure {
    fn new(kind: &'static str, code: &'static str, message: String) -> Self {
        Self { message, kind, param: (), code }
    }
}

impl AnswerDto {
    fn new(has_done: bool) -> Self {
        let reasoning_content = has_done.then_some(Gap::Done);
        Self { role: "assistant", content: Some(Gap::Said), reasoning_content, refusal: None }
    }

    fn refusal(why: String) -> Self {
        Self { role: "assistant", content: None, reasoning_content: None, refusal: Some(why) }
    }
}

/// A chat completion was deleted, with its conversation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiCompletionDeleted)]
pub(crate) struct CompletionDeleted {
    id: String,
    object: &'static str,
    deleted: bool,
}

impl CompletionDeleted {
    pub(crate) fn new(id: String) -> Self {
        Self { id, object: "chat.completion.deleted", deleted: true }
    }
}
