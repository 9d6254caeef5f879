//! Frames that are not about events of a journal, in their envelope.

use bytes::Bytes;
use serde::Serialize;
use tokenrail_application::{AgentService, LifecycleEvent, Needs, UpdateCause};
use tokenrail_domain::{AgentId, Timestamp};

use crate::fold::Frames;
use crate::frames::{self, FrameWriter};
use crate::json::IsoTime;
use crate::vocabularies::native::dto::agent::AgentDto;
use crate::vocabularies::native::dto::frames::{AgentCreated, AgentDeleted, AgentUpdated, Envelope};
use crate::vocabularies::native::native_frame::{Native, NativeFrame};

/// The frame of a lifecycle event.
pub(super) fn lifecycle_frame(service: &AgentService, event: &LifecycleEvent) -> Bytes {
    let mut out = FrameWriter::default();
    tell_lifecycle(service, event, &mut out);
    out.into_bytes()
}

/// Passes the frame of a lifecycle event to `out`.
pub(crate) fn tell_lifecycle(service: &AgentService, event: &LifecycleEvent, out: &mut impl Frames<Native>) {
    match event {
        LifecycleEvent::Created { agent, at } => {
            let home = service.home_of(&agent.agent);
            let agent = AgentDto::listed(agent, Needs::default(), home);
            frame(out, "agent:created", AgentCreated { agent, timestamp: IsoTime(*at) }, *at);
        }
        LifecycleEvent::Updated { agent, status, needs, cause, at } => {
            let Needs { open_questions, waiting_since } = *needs;
            let updated = AgentUpdated {
                agent_id: (*agent).into(),
                status: status.as_str(),
                open_questions,
                waiting_since: waiting_since.map(IsoTime),
                edited: (*cause == UpdateCause::Edit).then_some(true),
                timestamp: IsoTime(*at),
            };
            frame(out, "agent:updated", updated, *at);
        }
        LifecycleEvent::Deleted { agent, at } => {
            let deleted = AgentDeleted { agent_id: (*agent).into(), timestamp: IsoTime(*at) };
            frame(out, "agent:deleted", deleted, *at);
        }
    }
}

fn frame<P: Serialize>(out: &mut impl Frames<Native>, kind: &'static str, payload: P, at: Timestamp) {
    out.frame(NativeFrame::Whole { at, session: None, kind, payload: &payload });
}

pub(super) fn deleted_frame(agent: AgentId, at: Timestamp) -> Bytes {
    envelope("agent:deleted", AgentDeleted { agent_id: agent.into(), timestamp: IsoTime(at) }, at)
}

/// A frame in the envelope of the protocol.
pub(super) fn envelope<P: Serialize>(kind: &'static str, payload: P, at: Timestamp) -> Bytes {
    frames::json(&Envelope { kind, payload, timestamp: at.0, session_id: None })
}
