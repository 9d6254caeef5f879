//! Turns, and the record of a turn.

#[cfg(test)]
use super::declarations::Declarations;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tokenrail_domain::{Agent, AgentId, ListedTurn, Turn, TurnOutcome, TurnResult, TurnState};
use utoipa::ToSchema;

use crate::hex::hex;
use crate::json::fields::nesting;
use crate::json::{IdText, IsoTime};
use crate::vocabularies::native::dto::agent::PROMPT;
use crate::vocabularies::native::dto::message::PromptImageDto;
use crate::vocabularies::native::dto::result_details::ResultDetailsDto;

/// One prompt and everything up to the agent's result.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Turn)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Turn", optional_fields))]
pub(crate) struct TurnDto<'a> {
    #[schema(value_type = String, format = "uuid")]
    agent_id: IdText,
    number: u32,
    /// The number of this turn. If the agent started this turn by itself: the number of the requested turn during whose
    /// run it started.
    run: u32,
    /// `queued`, `running`, or its outcome. A withdrawn turn is `cancelled` immediately.
    #[cfg_attr(test, ts(type = "\"queued\" | \"running\" | TurnOutcome"))]
    status: &'static str,
    /// `completed`, `failed`, `cancelled` or `interrupted`, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional, type = "TurnOutcome"))]
    outcome: Option<&'static str>,
    /// The prompt. In a list, only its beginning if it is long: see `truncated`.
    prompt: &'a str,
    /// The images of the prompt, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    #[cfg_attr(test, ts(as = "Option<Vec<PromptImageDto>>", optional))]
    images: Vec<PromptImageDto>,
    #[schema(value_type = String, format = DateTime)]
    asked_at: IsoTime,
    /// The number of its first event, once it has started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    first_sequence: Option<u64>,
    /// The number of its result, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_sequence: Option<u64>,
    /// In a list: `["prompt"]` if the prompt is cut; `GET /api/agents/{id}/turns/{n}` returns all of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    #[cfg_attr(test, ts(as = "Option<Vec<String>>", optional))]
    truncated: Vec<&'static str>,
}

impl<'a> From<&'a ListedTurn> for TurnDto<'a> {
    fn from(listed: &'a ListedTurn) -> Self {
        let ListedTurn { turn, truncated, ended_at: _, stop_reason: _ } = listed;
        Self { truncated: truncated.then_some(PROMPT).into_iter().collect(), ..Self::from(turn) }
    }
}

impl<'a> From<&'a Turn> for TurnDto<'a> {
    fn from(turn: &'a Turn) -> Self {
        let Turn {
            agent,
            number,
            run,
            prompt,
            images,
            state,
            asked_at,
            first_sequence,
            last_sequence,
            spool_offset: _,
            stop,
            base: _,
        } = turn;
        let (status, outcome) = match state {
            // It never runs. Its end is saved after the end of the turns before it.
            TurnState::Queued if stop.is_some() => (TurnOutcome::Cancelled.as_str(), None),
            TurnState::Queued => ("queued", None),
            TurnState::Running => ("running", None),
            TurnState::Ended(outcome) => (outcome.as_str(), Some(outcome.as_str())),
        };
        Self {
            agent_id: (*agent).into(),
            number: number.0,
            run: run.0,
            status,
            outcome,
            prompt,
            images: images.iter().map(PromptImageDto::from).collect(),
            asked_at: IsoTime(*asked_at),
            first_sequence: first_sequence.map(|first| first.0),
            last_sequence: last_sequence.map(|last| last.0),
            truncated: Vec::new(),
        }
    }
}

/// The beginning of a turn's record. Its lists follow, and are written while they are read.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnRecordDto<'a> {
    #[serde(flatten)]
    pub(crate) turn: TurnDto<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<&'a str>,
    pub(crate) agent_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_result: Option<AgentResultDto<'a>>,
}

impl<'a> TurnRecordDto<'a> {
    pub(crate) fn new(agent: &'a Agent, turn: &'a Turn, result: Option<&'a TurnResult>) -> Self {
        let agent_result = result.map(|result| AgentResultDto::new(agent, turn, result));
        let (session_id, agent_type) = (agent.session.as_deref(), agent.kind.as_str());
        Self { turn: turn.into(), session_id, agent_type, agent_result }
    }
}

/// The record of a turn.
#[derive(ToSchema)]
#[schema(as = TurnRecord, rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes an answer in the OpenAPI document; the writing is done by hand")]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "TurnRecord", rename_all = "camelCase", optional_fields))]
pub(crate) struct TurnRecordSchema {
    #[serde(flatten)]
    turn: TurnDto<'static>,
    #[schema(nullable = false)]
    session_id: Option<String>,
    agent_type: String,
    #[schema(value_type = Object, required = false)]
    #[cfg_attr(test, ts(optional, as = "Option<AgentResultDto>"))]
    agent_result: (),
    /// All events that are not deltas, each with its `metadata.parentId`.
    #[schema(value_type = Vec<Object>)]
    #[cfg_attr(test, ts(type = "AgentMessage[]"))]
    messages: (),
    /// The lines as printed: JSON as it is, other text as a string, bytes that are not UTF-8 as `{"hex": …}`.
    #[schema(value_type = Vec<serde_json::Value>)]
    #[cfg_attr(test, ts(type = "Json[]"))]
    raw_agent_messages: (),
    /// The turn as the AI SDK's UI message chunks.
    #[schema(rename = "aiSDKChunks", value_type = Vec<Object>)]
    #[cfg_attr(test, ts(rename = "aiSDKChunks", type = "Json[]"))]
    ai_sdk_chunks: (),
}

/// The result of the turn.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "AgentResult", optional_fields))]
pub(crate) struct AgentResultDto<'a> {
    agent_type: &'a str,
    turn: u32,
    #[cfg_attr(test, ts(type = "TurnOutcome"))]
    outcome: &'static str,
    text: &'a str,
    duration_ms: u64,
    message_count: u32,
    #[serde(flatten)]
    details: ResultDetailsDto<'a>,
}

impl<'a> AgentResultDto<'a> {
    fn new(agent: &'a Agent, turn: &Turn, result: &'a TurnResult) -> Self {
        // The other fields are the details.
        let TurnResult { outcome, text, duration_ms, message_count, .. } = result;
        Self {
            agent_type: &agent.kind,
            turn: turn.number.0,
            outcome: outcome.as_str(),
            text,
            duration_ms: *duration_ms,
            message_count: *message_count,
            details: result.into(),
        }
    }
}

/// The value of the `Link` header that names the page of an agent's turns after `last`.
pub(crate) fn next_turns(agent: AgentId, last: &Turn, limit: usize) -> String {
    format!("</api/agents/{agent}/turns?after={}&limit={limit}>; rel=\"next\"", last.number)
}

/// One line as an agent printed it. JSON is embedded unchanged, and other text is a string. Bytes that are not UTF-8
/// are an object with their hexadecimal digits, so that no byte is lost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawLineDto<'a> {
    pub(crate) line: &'a [u8],
    /// JSON that is nested more deeply becomes a string, because not every reader can parse it.
    pub(crate) depth: usize,
}

/// Bytes that are not UTF-8.
#[derive(Debug, Serialize)]
pub(crate) struct HexDto {
    hex: String,
}

impl HexDto {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self { hex: hex(bytes) }
    }
}

impl Serialize for RawLineDto<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Ok(text) = std::str::from_utf8(self.line) else {
            return HexDto::new(self.line).serialize(serializer);
        };
        let json = Some(text).filter(|text| nesting(text) <= self.depth);
        match json.and_then(|text| serde_json::from_str::<&RawValue>(text).ok()) {
            Some(json) => json.serialize(serializer),
            None => serializer.serialize_str(text),
        }
    }
}

/// Declares the types that the client library uses.
#[cfg(test)]
pub(super) fn declare(out: &mut Declarations) {
    out.of::<TurnDto<'_>>();
    out.of::<TurnRecordSchema>();
    out.of::<AgentResultDto<'_>>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_of_a_line_is_lost() {
        let shown = |line: &[u8]| serde_json::to_string(&RawLineDto { line, depth: 3 }).unwrap();
        assert_eq!(shown(br#"{ "a" : [1.50] }"#), r#"{ "a" : [1.50] }"#, "JSON as it came");
        assert_eq!(shown(br#"{"a":"\ud83e"}"#), r#"{"a":"\ud83e"}"#, "half a character, too");
        assert_eq!(shown(b"[[[[1]]]]"), r#""[[[[1]]]]""#, "nested too deeply");
        assert_eq!(shown(b"Segmentation \"fault\""), r#""Segmentation \"fault\"""#);
        assert_eq!(shown(b""), r#""""#);
        assert_eq!(shown(b"{\"a\":\"\xff\x00\"}"), r#"{"hex":"7b2261223a22ff00227d"}"#);
    }
}
