//! The dialect `agent`: one `agent:message` for each event, and the frames that follow from the event.

use serde::Serialize;
use tokenrail_application::RenderingKey;
use tokenrail_domain::{AgentError, AgentId, Event, EventBody};

use crate::fold::{Begins, Fold, Frames};
use crate::json::{AgentErrorDto, IsoTime};
use crate::vocabularies::native::Detail;
use crate::vocabularies::native::dto::deltas::DeltasDto;
use crate::vocabularies::native::dto::frames::{
    EventNumber, ResultDto, StreamComplete, StreamError, StreamMessage, StreamStatus,
};
use crate::vocabularies::native::dto::message::AgentMessageDto;
use crate::vocabularies::native::native_frame::{Native, NativeFrame};

const MESSAGE: &str = "agent:message";
const STATUS: &str = "agent:status";
const ERROR: &str = "agent:error";
const COMPLETE: &str = "agent:complete";

/// The frames that follow from an event.
pub(crate) const WHAT_FOLLOWS: [&str; 3] = [STATUS, ERROR, COMPLETE];

/// The fold of the dialect `agent`. The frames of an event follow from that event alone.
#[derive(Debug)]
pub(crate) struct AgentFold {
    agent: AgentId,
    detail: Detail,
    order: Order,
}

/// In which order an event has its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// First the event, then what follows from it. All have its number.
    EventFirst,
    /// The event comes last, and only it has the number. A client that resumes after the last number that it has got
    /// misses nothing, even if the connection has ended between two frames of one event.
    NumberLast,
}

impl AgentFold {
    pub(crate) fn new(agent: AgentId, detail: Detail) -> Self {
        Self { agent, detail, order: Order::EventFirst }
    }

    /// For clients that keep the last number that they have got, and do not know which frames belong together.
    pub(crate) fn number_last(agent: AgentId, detail: Detail) -> Self {
        Self { agent, detail, order: Order::NumberLast }
    }

    pub(crate) fn detail(&self) -> Detail {
        self.detail
    }
}

impl Fold for AgentFold {
    type Vocabulary = Native;

    fn begins(&self) -> Begins {
        Begins::Anywhere
    }

    fn shared(&self, form: u8) -> Option<RenderingKey> {
        Some(RenderingKey::of::<Self>([2 * self.detail as u8 + self.order as u8, form]))
    }

    fn event<T: Frames<Native>>(&mut self, event: &Event, out: &mut T) {
        match self.order {
            Order::EventFirst => {
                self.message(event, out);
                self.what_follows(event, EventNumber::of(event), out);
            }
            Order::NumberLast => {
                self.what_follows(event, EventNumber::NONE, out);
                self.message(event, out);
            }
        }
    }

    fn deltas<T: Frames<Native>>(&mut self, run: &[Event], out: &mut T) {
        if let (Some(deltas), Some(last)) = (DeltasDto::new(self.agent, run), run.last()) {
            frame(out, last, "agent:deltas", deltas);
        }
    }
}

impl AgentFold {
    fn message<T: Frames<Native>>(&self, event: &Event, out: &mut T) {
        let message = AgentMessageDto::new(self.agent, event, self.detail.has_raw());
        let (agent_id, sequence, timestamp) = (self.agent.into(), event.sequence.0, IsoTime(event.at));
        frame(out, event, MESSAGE, StreamMessage { agent_id, sequence, message, timestamp });
    }

    fn what_follows<T: Frames<Native>>(&self, event: &Event, sequence: EventNumber, out: &mut T) {
        let (agent_id, timestamp) = (self.agent.into(), IsoTime(event.at));
        let status = |status| StreamStatus { agent_id, sequence, status, timestamp };
        match &event.body {
            // Each turn begins with its user message.
            EventBody::UserMessage { .. } => frame(out, event, STATUS, status("running")),
            EventBody::Error(error) => {
                frame(out, event, ERROR, stream_error(self.agent, event, sequence, error));
            }
            EventBody::TurnResult(result) => {
                frame(out, event, STATUS, status(result.outcome.as_str()));
                let result = ResultDto::new(event.turn, result);
                frame(out, event, COMPLETE, StreamComplete { agent_id, sequence, result, timestamp });
            }
            _ => {}
        }
    }
}

fn stream_error<'a>(
    agent: AgentId,
    event: &Event,
    sequence: EventNumber,
    error: &'a AgentError,
) -> StreamError<'a> {
    let AgentErrorDto { class, code, message, retry_after, recoverable } = AgentErrorDto::from(error);
    StreamError {
        agent_id: agent.into(),
        sequence,
        error: message.unwrap_or_default(),
        class,
        code,
        retry_after,
        recoverable,
        timestamp: IsoTime(event.at),
    }
}

/// For a WebSocket, `out` is a `FrameWriter` (`frames.rs` of this crate), which `native/transport.rs` extends.
fn frame<P: Serialize>(out: &mut impl Frames<Native>, event: &Event, kind: &'static str, payload: P) {
    out.frame(NativeFrame::Whole { at: event.at, session: None, kind, payload: &payload });
}
