//! Packed deltas: consecutive deltas of one part of a message in one frame.

#[cfg(test)]
use super::declarations::Declarations;
use serde::{Serialize, Serializer};
use tokenrail_domain::{AgentId, Event, EventBody, message_id};
use utoipa::ToSchema;

use crate::json::{IdText, IsoTime};
use crate::vocabularies::native::dto::message::AgentMessageDto;

/// With `packed=true`: consecutive deltas of one part of one message, as `to - from + 1` texts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentDeltas)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "AgentDeltas", optional_fields))]
pub(crate) struct DeltasDto<'a> {
    #[schema(value_type = String, format = "uuid")]
    agent_id: IdText,
    #[schema(value_type = String, format = "uuid")]
    message_id: IdText,
    /// The index of the block in its message.
    part: u32,
    /// `content_delta`, `thinking_delta` or `tool_input_delta`.
    #[cfg_attr(test, ts(type = "\"content_delta\" | \"thinking_delta\" | \"tool_input_delta\""))]
    event_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tool_call_id: Option<&'a str>,
    /// The tool name, if the first delta has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tool_name: Option<&'a str>,
    /// The number of the first delta.
    from: u64,
    /// The number of the last delta.
    to: u64,
    /// The time of the first delta.
    #[schema(value_type = String, format = DateTime)]
    created_at: IsoTime,
    /// For each delta, the milliseconds since the one before it, 0 for the first; absent if all have the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<i64>, required = false)]
    #[cfg_attr(test, ts(optional, type = "number[]"))]
    elapsed_ms: Option<Elapsed<'a>>,
    /// What each delta says, one after the other.
    #[schema(value_type = Vec<String>)]
    #[cfg_attr(test, ts(type = "string[]"))]
    texts: Texts<'a>,
}

/// One item of a page: an event, or packed deltas.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = AgentPageItem)]
pub(crate) enum PageItemDto<'a> {
    Event(&'a AgentMessageDto<'a>),
    Deltas(&'a DeltasDto<'a>),
}

/// The text of each delta.
#[derive(Debug)]
struct Texts<'a>(&'a [Event]);

/// The time between each delta and the one before it.
#[derive(Debug)]
struct Elapsed<'a>(&'a [Event]);

impl<'a> DeltasDto<'a> {
    /// Packs deltas of one kind, of one part of one message, with consecutive numbers. `None` if the first event is not
    /// a delta.
    pub(crate) fn new(agent: AgentId, run: &'a [Event]) -> Option<Self> {
        let (first, last) = (run.first()?, run.last()?);
        let (event_type, message, part, call, tool) = match &first.body {
            EventBody::TextDelta { message, part, .. } => ("content_delta", message, part, None, None),
            EventBody::ReasoningDelta { message, part, .. } => ("thinking_delta", message, part, None, None),
            EventBody::ToolInputDelta { message, part, call, tool, .. } => {
                ("tool_input_delta", message, part, Some(&**call), tool.as_deref())
            }
            _ => return None,
        };
        let same_time = run.iter().all(|event| event.at == first.at);
        Some(Self {
            agent_id: agent.into(),
            message_id: IdText(message_id(agent, first.turn, *message)),
            part: part.0,
            event_type,
            tool_call_id: call,
            tool_name: tool,
            from: first.sequence.0,
            to: last.sequence.0,
            created_at: IsoTime(first.at),
            elapsed_ms: (!same_time).then_some(Elapsed(run)),
            texts: Texts(run),
        })
    }
}

impl Serialize for Texts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().filter_map(|event| match &event.body {
            EventBody::TextDelta { text, .. } | EventBody::ReasoningDelta { text, .. } => Some(text),
            EventBody::ToolInputDelta { fragment, .. } => Some(fragment),
            _ => None,
        }))
    }
}

impl Serialize for Elapsed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The first delta is paired with itself, so its time is 0.
        let before = self.0.iter().take(1).chain(self.0);
        let pairs = before.zip(self.0);
        serializer.collect_seq(pairs.map(|(before, event)| event.at.0.saturating_sub(before.at.0)))
    }
}

/// Declares the types that the client library uses.
#[cfg(test)]
pub(super) fn declare(out: &mut Declarations) {
    out.of::<DeltasDto<'_>>();
}
