//! The dialect `agent`: one `agent:message` for each event, and the frames that follow from the event.

use serde::Serialize;
use tokenrail_application::RenderingKey;
use tokenrail_domain::{AgentError, AgentId, Event, EventBody};

use crate::fold::{Begins, Fold, Frames};
use crate::json::{AgentErrorDto, IsoTime};
use crate::vocabularies::native::Detail;
use crate::vocabularies::native::dto::deltas::DeltasDto;
use crate::vocabularies::native::dto::frames::{
    ResultDto, StreamComplete, StreamError, StreamMessage, StreamStatus,
};
use crate::vocabularies::native::dto::message::AgentMessageDto;
use crate::vocabularies::native::frame::{Native, NativeFrame};

/// The fold of the dialect `agent`. The frames of an event follow from that event alone.
#[derive(Debug)]
pub(crate) struct AgentFold {
    agent: AgentId,
    detail: Detail,
}

impl AgentFold {
    pub(crate) fn new(agent: AgentId, detail: Detail) -> Self {
        Self { agent, detail }
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
        Some(RenderingKey::of::<Self>([self.detail as u8, form]))
    }

    fn event<T: Frames<Native>>(&mut self, event: &Event, out: &mut T) {
        let agent = self.agent;
        let message = AgentMessageDto::new(agent, event, self.detail.has_raw());
        let (sequence, time) = (event.sequence.0, IsoTime(event.at));
        let agent_id = agent.into();
        frame(out, event, "agent:message", StreamMessage { agent_id, sequence, message, timestamp: time });
        let status = |status| StreamStatus { agent_id, sequence, status, timestamp: time };
        match &event.body {
            // Each turn begins with its user message.
            EventBody::UserMessage { .. } => frame(out, event, "agent:status", status("running")),
            EventBody::Error(error) => {
                frame(out, event, "agent:error", stream_error(agent, event, error));
            }
            EventBody::TurnResult(result) => {
                frame(out, event, "agent:status", status(result.outcome.as_str()));
                let result = ResultDto::new(event.turn, result);
                let complete = StreamComplete { agent_id, sequence, result, timestamp: time };
                frame(out, event, "agent:complete", complete);
            }
            _ => {}
        }
    }

    fn deltas<T: Frames<Native>>(&mut self, run: &[Event], out: &mut T) {
        if let (Some(deltas), Some(last)) = (DeltasDto::new(self.agent, run), run.last()) {
            frame(out, last, "agent:deltas", deltas);
        }
    }
}

fn stream_error<'a>(agent: AgentId, event: &Event, error: &'a AgentError) -> StreamError<'a> {
    let AgentErrorDto { class, code, message, retry_after, recoverable } = AgentErrorDto::from(error);
    StreamError {
        agent_id: agent.into(),
        sequence: event.sequence.0,
        error: message.unwrap_or_default(),
        class,
        code,
        retry_after,
        recoverable,
        timestamp: IsoTime(event.at),
    }
}

fn frame<P: Serialize>(out: &mut impl Frames<Native>, event: &Event, kind: &'static str, payload: P) {
    out.frame(NativeFrame::Whole { at: event.at, session: None, kind, payload: &payload });
}
