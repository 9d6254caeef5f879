//! Responses, the events of their streams, models, and errors.

use serde::Serialize;
use tokenrail_domain::{Agent, JsonText, Turn, TurnResult};
use utoipa::ToSchema;

use super::gaps::{Gap, GapText};
use super::items::OutputItem;
use crate::json::{Json, TokenUsage};
use crate::vocabularies::openai::response_id::ResponseId;

/// A response. The fields that a client could have set, and that mean nothing here, have OpenAI's defaults.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ResponseDto {
    pub(crate) id: String,
    object: &'static str,
    /// Seconds since the epoch.
    pub(crate) created_at: i64,
    pub(crate) completed_at: Option<i64>,
    pub(crate) status: &'static str,
    background: bool,
    pub(crate) error: Option<ResponseFailure>,
    pub(crate) incomplete_details: Option<Incomplete>,
    instructions: (),
    max_output_tokens: (),
    metadata: Metadata,
    pub(crate) model: String,
    output: Gap,
    parallel_tool_calls: bool,
    previous_response_id: Option<String>,
    reasoning: Effort,
    store: bool,
    temperature: (),
    text: TextConfig,
    tool_choice: &'static str,
    tools: [(); 0],
    top_p: (),
    truncation: &'static str,
    pub(crate) usage: Option<UsageDto>,
}

impl ResponseDto {
    /// A response of which nothing is known yet but its turn.
    pub(crate) fn new(agent: &Agent, turn: &Turn) -> Self {
        let id = ResponseId { agent: turn.agent, turn: turn.number };
        let model = match &agent.model {
            Some(model) => format!("{}/{model}", agent.kind),
            None => agent.kind.clone(),
        };
        Self {
            id: id.to_string(),
            object: "response",
            created_at: turn.asked_at.0.div_euclid(1000),
            completed_at: None,
            status: "queued",
            background: true,
            error: None,
            incomplete_details: None,
            instructions: (),
            max_output_tokens: (),
            metadata: Metadata(agent.metadata.clone()),
            model,
            output: Gap::Items,
            parallel_tool_calls: true,
            previous_response_id: id.previous().map(|previous| previous.to_string()),
            reasoning: Effort::default(),
            store: true,
            temperature: (),
            text: TextConfig { format: TextFormat { kind: "text" } },
            tool_choice: "auto",
            tools: [],
            top_p: (),
            truncation: "disabled",
            usage: None,
        }
    }
}

/// The metadata of the agent. An empty object if it has none.
#[derive(Debug, Clone)]
struct Metadata(Option<JsonText>);

impl Serialize for Metadata {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(metadata) => Json(metadata).serialize(serializer),
            None => serializer.collect_map(std::iter::empty::<(&str, &str)>()),
        }
    }
}

#[derive(Debug, Clone, Default, Serialize)]
struct Effort {
    effort: (),
    summary: (),
}

#[derive(Debug, Clone, Serialize)]
struct TextConfig {
    format: TextFormat,
}

#[derive(Debug, Clone, Serialize)]
struct TextFormat {
    #[serde(rename = "type")]
    kind: &'static str,
}

/// Why a response has failed.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ResponseFailure {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl ResponseFailure {
    /// `class` is the class of the agent's error.
    pub(crate) fn new(class: &str, message: &str) -> Self {
        let code = match class {
            "rate_limit" => "rate_limit_exceeded",
            "invalid_request" => "invalid_prompt",
            _ => "server_error",
        };
        Self { code, message: message.to_owned() }
    }
}

/// Why a response is incomplete.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Incomplete {
    pub(crate) reason: &'static str,
}

/// The tokens of a response.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct UsageDto {
    pub(super) input_tokens: u64,
    pub(super) input_tokens_details: InputTokens,
    pub(super) output_tokens: u64,
    pub(super) output_tokens_details: OutputTokens,
    pub(super) total_tokens: u64,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct InputTokens {
    pub(super) cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct OutputTokens {
    pub(super) reasoning_tokens: u64,
}

impl UsageDto {
    /// The usage in the result of the turn. If the result has none, it is the sum of its messages.
    pub(crate) fn of(result: &TurnResult, sum: TokenUsage) -> Self {
        let mut usage = sum;
        if let Some(whole) = &result.usage {
            usage = TokenUsage::default();
            usage.add(whole);
        }
        let TokenUsage { input, output, cached, cache_written } = usage;
        Self {
            input_tokens: input,
            input_tokens_details: InputTokens { cached_tokens: cached, cache_write_tokens: cache_written },
            output_tokens: output,
            output_tokens_details: OutputTokens { reasoning_tokens: 0 },
            total_tokens: usage.total(),
        }
    }
}

/// One event of a stream. Fields that its type does not have are absent.
#[derive(Debug, Default, Serialize)]
pub(crate) struct StreamEvent<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) sequence_number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response: Option<&'a ResponseDto>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) item_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content_index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary_index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) item: Option<OutputItem<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) part: Option<PartDto<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delta: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<GapText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<GapText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) logprobs: Option<[(); 0]>,
}

/// The only part of a message or a thought.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum PartDto<'a> {
    Text {
        #[serde(rename = "type")]
        kind: &'static str,
        text: GapText<'a>,
        annotations: [(); 0],
        logprobs: [(); 0],
    },
    Summary {
        #[serde(rename = "type")]
        kind: &'static str,
        text: GapText<'a>,
    },
}

impl<'a> PartDto<'a> {
    pub(crate) fn text(text: GapText<'a>) -> Self {
        Self::Text { kind: "output_text", text, annotations: [], logprobs: [] }
    }

    pub(crate) fn summary(text: GapText<'a>) -> Self {
        Self::Summary { kind: "summary_text", text }
    }
}

/// An agent type as a model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiModel)]
pub(crate) struct ModelDto {
    id: String,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
}

impl ModelDto {
    pub(crate) fn new(id: &str) -> Self {
        Self { id: id.to_owned(), object: "model", created: 0, owned_by: "tokenrail" }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

/// A response was deleted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiDeleted)]
#[expect(clippy::struct_field_names, reason = "the names are those of the protocol")]
pub(crate) struct Deleted {
    id: String,
    object: &'static str,
    deleted: bool,
}

impl Deleted {
    pub(crate) fn new(id: String) -> Self {
        Self { id, object: "response", deleted: true }
    }
}

/// Why a request was refused.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiProblem)]
pub(crate) struct OpenAiProblem<'a> {
    pub(crate) error: OpenAiError<'a>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiError)]
pub(crate) struct OpenAiError<'a> {
    pub(crate) message: &'a str,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// The parameter that is wrong.
    pub(crate) param: Option<&'a str>,
    pub(crate) code: &'static str,
}
