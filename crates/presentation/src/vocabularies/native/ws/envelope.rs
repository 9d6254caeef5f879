//! Frames that are not about events of a journal, in their envelope.

use bytes::Bytes;
use serde::Serialize;
use tokenrail_application::{LifecycleEvent, Needs, UpdateCause};
use tokenrail_domain::Timestamp;

use crate::frames;
use crate::json::IsoTime;
use crate::vocabularies::native::dto::agent::AgentDto;
use crate::vocabularies::native::dto::frames::{AgentCreated, AgentDeleted, AgentUpdated, Envelope};

/// The frame of a lifecycle event.
pub(super) fn lifecycle_frame(event: &LifecycleEvent) -> Bytes {
    match event {
        LifecycleEvent::Created { agent, at } => {
            let created =
                AgentCreated { agent: AgentDto::listed(agent, Needs::default()), timestamp: IsoTime(*at) };
            envelope("agent:created", created, *at)
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
            envelope("agent:updated", updated, *at)
        }
        LifecycleEvent::Deleted { agent, at } => {
            let deleted = AgentDeleted { agent_id: (*agent).into(), timestamp: IsoTime(*at) };
            envelope("agent:deleted", deleted, *at)
        }
    }
}

/// A frame in the envelope of the protocol.
pub(super) fn envelope<P: Serialize>(kind: &'static str, payload: P, at: Timestamp) -> Bytes {
    frames::json(&Envelope { kind, payload, timestamp: at.0, session_id: None })
}
