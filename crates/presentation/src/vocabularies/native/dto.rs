//! Every JSON name of the native vocabulary, in and out.

pub(crate) mod agent;
pub(crate) mod agent_type;
pub(crate) mod archive;
pub(crate) mod changes;
pub(crate) mod client;
#[cfg(test)]
mod declarations;
pub(crate) mod deltas;
pub(crate) mod frames;
pub(crate) mod message;
pub(crate) mod message_frames;
pub(crate) mod node;
pub(crate) mod permission;
pub(crate) mod question;
pub(crate) mod requests;
mod result_details;
pub(crate) mod socket_io;
pub(crate) mod stream_frames;
pub(crate) mod turn;
#[cfg(test)]
mod typescript;

use tokenrail_domain::{AgentId, Event};

use self::message::AgentMessageDto;

/// Serializes one event as clients see it, without its raw lines.
pub fn event_json(agent: AgentId, event: &Event) -> String {
    serde_json::to_string(&AgentMessageDto::new(agent, event, false)).unwrap_or_default()
}
