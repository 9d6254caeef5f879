//! The frames that the server sends over a WebSocket.

#[cfg(test)]
use super::declarations::Declarations;
use std::collections::BTreeMap;

use serde::Serialize;
use tokenrail_domain::{AgentId, Event, TurnNumber, TurnResult};

use crate::json::{IdText, IsoTime};
use crate::vocabularies::native::dto::agent::AgentDto;
use crate::vocabularies::native::dto::message::AgentMessageDto;
use crate::vocabularies::native::dto::permission::PermissionStateDto;
use crate::vocabularies::native::dto::result_details::ResultDetailsDto;

/// The envelope of every frame.
#[derive(Debug, Serialize)]
pub(crate) struct Envelope<P> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) payload: P,
    /// Milliseconds since the epoch. If an event caused the frame, this is the time of the event.
    pub(crate) timestamp: i64,
    /// The conversation, in the dialects that name it: the agent.
    #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<IdText>,
}

/// The number of the event that a frame follows from.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub(crate) struct EventNumber(Option<u64>);

impl EventNumber {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn of(event: &Event) -> Self {
        Self(Some(event.sequence.0))
    }

    fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

/// `agent:message`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct StreamMessage<'a> {
    pub(crate) agent_id: IdText,
    pub(crate) sequence: u64,
    pub(crate) message: AgentMessageDto<'a>,
    pub(crate) timestamp: IsoTime,
}

/// `agent:status`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct StreamStatus {
    pub(crate) agent_id: IdText,
    #[serde(skip_serializing_if = "EventNumber::is_none")]
    #[cfg_attr(test, ts(type = "number"))]
    pub(crate) sequence: EventNumber,
    #[cfg_attr(test, ts(type = "AgentStatus"))]
    pub(crate) status: &'static str,
    pub(crate) timestamp: IsoTime,
}

/// `agent:error`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub(crate) struct StreamError<'a> {
    pub(crate) agent_id: IdText,
    #[serde(skip_serializing_if = "EventNumber::is_none")]
    #[cfg_attr(test, ts(type = "number"))]
    pub(crate) sequence: EventNumber,
    /// The error message.
    pub(crate) error: &'a str,
    #[cfg_attr(test, ts(type = "ErrorClass"))]
    pub(crate) class: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<&'a str>,
    /// Seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after: Option<f64>,
    pub(crate) recoverable: bool,
    pub(crate) timestamp: IsoTime,
}

/// `agent:complete`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct StreamComplete<'a> {
    pub(crate) agent_id: IdText,
    #[serde(skip_serializing_if = "EventNumber::is_none")]
    #[cfg_attr(test, ts(type = "number"))]
    pub(crate) sequence: EventNumber,
    pub(crate) result: ResultDto<'a>,
    pub(crate) timestamp: IsoTime,
}

/// How a turn ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "TurnResult", optional_fields))]
pub(crate) struct ResultDto<'a> {
    #[cfg_attr(test, ts(type = "TurnOutcome"))]
    status: &'static str,
    /// Milliseconds.
    duration: u64,
    message_count: u32,
    turn: u32,
    text: &'a str,
    #[serde(flatten)]
    details: ResultDetailsDto<'a>,
}

impl<'a> ResultDto<'a> {
    pub(crate) fn new(turn: TurnNumber, result: &'a TurnResult) -> Self {
        // The other fields are the details.
        let TurnResult { outcome, text, duration_ms, message_count, .. } = result;
        Self {
            status: outcome.as_str(),
            duration: *duration_ms,
            message_count: *message_count,
            turn: turn.0,
            text,
            details: result.into(),
        }
    }
}

/// `agent:created`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct AgentCreated<'a> {
    pub(crate) agent: AgentDto<'a>,
    pub(crate) timestamp: IsoTime,
}

/// `agent:updated`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub(crate) struct AgentUpdated {
    pub(crate) agent_id: IdText,
    #[cfg_attr(test, ts(type = "AgentStatus"))]
    pub(crate) status: &'static str,
    /// How many permission requests of the agent are open.
    pub(crate) open_questions: usize,
    /// When the oldest of them was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waiting_since: Option<IsoTime>,
    /// `true` if the agent's name, `pinned` or `archived` may have changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) edited: Option<bool>,
    pub(crate) timestamp: IsoTime,
}

/// `agent:deleted`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct AgentDeleted {
    pub(crate) agent_id: IdText,
    pub(crate) timestamp: IsoTime,
}

/// `subscribed`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Subscribed {
    pub(crate) agent_id: IdText,
    /// The newest event.
    pub(crate) head: u64,
    #[cfg_attr(test, ts(type = "AgentStatus"))]
    pub(crate) status: &'static str,
}

/// `unsubscribed`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Unsubscribed {
    pub(crate) agent_id: IdText,
}

/// `permission`: the state of a permission request that this connection answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionFrame {
    pub(crate) agent_id: IdText,
    #[serde(flatten)]
    pub(crate) state: PermissionStateDto,
}

/// `heartbeat`: for each agent that is followed, the number up to which its events have been sent.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Heads {
    #[serde(serialize_with = "heads")]
    #[cfg_attr(test, ts(type = "Record<Id, number>"))]
    pub(crate) heads: BTreeMap<AgentId, u64>,
}

fn heads<S: serde::Serializer>(heads: &BTreeMap<AgentId, u64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(heads.iter().map(|(agent, head)| (IdText::from(*agent), head)))
}

/// `error`: a problem with a frame of the client or with a subscription.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub(crate) struct ErrorFrame<'a> {
    #[cfg_attr(test, ts(type = "ProblemCode"))]
    pub(crate) code: &'static str,
    pub(crate) message: &'a str,
    pub(crate) retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<IdText>,
    /// The id of the permission request that this connection answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<u64>,
}

/// Declares the types that the client library uses.
#[cfg(test)]
pub(super) fn declare(out: &mut Declarations) {
    out.of::<StreamMessage<'_>>();
    out.of::<StreamStatus>();
    out.of::<StreamError<'_>>();
    out.of::<StreamComplete<'_>>();
    out.of::<ResultDto<'_>>();
    out.of::<AgentCreated<'_>>();
    out.of::<AgentUpdated>();
    out.of::<AgentDeleted>();
    out.of::<Subscribed>();
    out.of::<Unsubscribed>();
    out.of::<Heads>();
    out.of::<ErrorFrame<'_>>();
}
