//! The dialect `agent`: one `agent:message` for each event, and what follows from it.

use tokenrail_domain::{AgentError, AgentId, Event, EventBody};

use super::Packed;
use crate::dto::{
    AgentErrorDto, AgentMessageDto, DeltasDto, Envelope, IsoTime, ResultDto, StreamComplete, StreamError,
    StreamMessage, StreamStatus,
};
use crate::frames::FrameWriter;

/// Appends the frames of one event, or the one of packed deltas.
pub(crate) fn frames(agent: AgentId, told: Packed<'_>, raw: bool, out: &mut FrameWriter) {
    match told {
        Packed::Event(event) => of_event(agent, event, raw, out),
        Packed::Deltas(run) => {
            if let (Some(deltas), Some(last)) = (DeltasDto::new(agent, run), run.last()) {
                frame(out, last, "agent:deltas", deltas);
            }
        }
    }
}

fn of_event(agent: AgentId, event: &Event, raw: bool, out: &mut FrameWriter) {
    let message = AgentMessageDto::new(agent, event, raw);
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
            frame(
                out,
                event,
                "agent:complete",
                StreamComplete { agent_id, sequence, result, timestamp: time },
            );
        }
        _ => {}
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

fn frame<P: serde::Serialize>(out: &mut FrameWriter, event: &Event, kind: &'static str, payload: P) {
    out.json(&Envelope { kind, payload, timestamp: event.at.0, session_id: None });
}
