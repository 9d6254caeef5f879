//! What a runner is asked to do for a turn.

use std::path::PathBuf;

use tokenrail_domain::{Agent, AgentError, ErrorClass, SessionId, Turn};
use tokenrail_ports::{StoreError, TurnOrder};

use super::AgentTask;
use crate::core::SaveError;
use crate::outside::AgentType;

/// The order of a turn, without what only the start of an agent needs: earlier turns and images.
pub(super) fn order(agent: &Agent, turn: &Turn) -> TurnOrder {
    TurnOrder {
        agent: agent.id,
        run: turn.run,
        prompt: turn.prompt.clone(),
        images: Vec::new(),
        model: agent.model.clone(),
        cwd: PathBuf::from(&agent.cwd),
        session: agent.session.as_deref().and_then(|stored| SessionId::new(stored).ok()),
        options: agent.options.clone(),
        history: Vec::new(),
    }
}

impl AgentTask {
    /// Adds the images of the prompt to the order of a turn. Returns the error of the turn if the store has
    /// lost one, or it is damaged: an agent must not answer a prompt of which it sees only a part.
    pub(super) async fn add_images(
        &self,
        order: &mut TurnOrder,
        (turn, kind): (&Turn, Option<&AgentType>),
    ) -> Result<Result<(), AgentError>, SaveError> {
        // The node that has accepted the prompt may not have had the agent type.
        if !turn.images.is_empty() && kind.is_some_and(|kind| !kind.abilities.images) {
            return Ok(Err(images_not_accepted()));
        }
        for (position, _) in (0..).zip(&turn.images) {
            let agents = &self.core.outside.agents;
            match self.patiently(|| agents.prompt_image(self.agent.turn(turn.number), position)).await {
                Ok(Some(image)) => order.images.push(image),
                Ok(None) => return Ok(Err(image_missing())),
                Err(SaveError::Refused(error @ StoreError::Corrupt(_))) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(agent = %self.agent, error, "cannot read an image of a prompt");
                    return Ok(Err(image_missing()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Ok(()))
    }
}

fn image_missing() -> AgentError {
    let text = "an image of the prompt is lost or corrupt in the database; send the message again";
    AgentError::new(ErrorClass::Process, Some("image_missing"), text)
}

fn images_not_accepted() -> AgentError {
    let text = "agents of this type accept no images; send the message without them";
    AgentError::new(ErrorClass::Process, Some("images_not_accepted"), text)
}
