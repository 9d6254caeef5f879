//! The current state of one message, for a client that was disconnected.

use tokenrail_application::{AgentFilter, MessageStatus};
use tokenrail_domain::{AgentId, MessageOrdinal, MessageOutcome, Timestamp, TurnNumber, message_of};
use uuid::Uuid;

use crate::api::Api;
use crate::error::Problem;
use crate::json::IdText;
use crate::vocabularies::native::dto::client::{AskedStatus, unknown_message};
use crate::vocabularies::native::dto::message_frames::MessageStatusFrame;

/// The current state of a message.
pub(crate) struct Answer {
    agent: AgentId,
    message: Uuid,
    status: MessageStatus,
}

impl Answer {
    pub(crate) fn dto(&self) -> MessageStatusFrame<'_> {
        MessageStatusFrame {
            agent_id: self.agent.into(),
            sequence: self.status.sequence.0,
            message_id: IdText(self.message),
            state: self.status.outcome.map_or("streaming", MessageOutcome::as_str),
            content: self.status.text.as_str().into(),
        }
    }
}

/// The current state of a message. It belongs to the named agent; if none is named, the followed agents and then other
/// agents are searched.
///
/// # Errors
/// [`Problem`] if there is no such message, or the store fails.
pub(crate) async fn message_status(
    api: &Api,
    mut followed: impl Iterator<Item = AgentId>,
    asked: AskedStatus,
) -> Result<Answer, Problem> {
    let AskedStatus { message, agent } = asked;
    let place = |agent| message_of(agent, message).map(|(turn, ordinal)| (agent, turn, ordinal));
    let known = match agent {
        Some(agent) => place(agent),
        None => match followed.find_map(place) {
            Some(place) => Some(place),
            None => launched_with(api, message).await?,
        },
    };
    let (agent, turn, ordinal) = known.ok_or_else(unknown_message)?;
    let status = api.service().message_status(agent, turn, ordinal).await?;
    Ok(Answer { agent, message, status: status.ok_or_else(unknown_message)? })
}

/// Searches the agents that were launched in the millisecond that the message's id contains.
async fn launched_with(
    api: &Api,
    message: Uuid,
) -> Result<Option<(AgentId, TurnNumber, MessageOrdinal)>, Problem> {
    let launched_ms = message.as_u64_pair().0 >> 16;
    let later = AgentId::new(Timestamp((launched_ms as i64).saturating_add(1)), [0; 10]);
    let limit = api.config().list_agents;
    let filter = AgentFilter { before: Some(later), limit, ..AgentFilter::default() };
    let agents = api.service().list(filter).await?;
    let place = |agent| message_of(agent, message).map(|(turn, ordinal)| (agent, turn, ordinal));
    Ok(agents.items.iter().find_map(|listed| place(listed.agent.id)))
}
