//! The images of prompts.

use tokenrail_domain::{Agent, AgentId, Copied, ImageFile, Replay, TurnNumber};

use crate::error::Refusal;
use crate::service::AgentService;

impl AgentService {
    /// One image of a turn's prompt, by its position from 0. A replay shows the images of its original.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::ImageUnknown`], [`Refusal::Store`].
    pub async fn prompt_image(
        &self,
        id: AgentId,
        turn: TurnNumber,
        position: u32,
    ) -> Result<ImageFile, Refusal> {
        let agent = self.get(id).await?;
        let of = match agent.copy {
            Some(Copied::Replay(replay)) => self.original(id, replay, (turn, position)).await?,
            Some(Copied::File) | None => id,
        };
        let image = self.core.outside.agents.prompt_image(of.turn(turn), position).await?;
        image.ok_or(Refusal::ImageUnknown)
    }

    /// The agent of which this one is a replay, directly or through other replays. A replay shows an image only if it
    /// has reached that turn.
    async fn original(
        &self,
        id: AgentId,
        mut replay: Replay,
        (turn, position): (TurnNumber, u32),
    ) -> Result<AgentId, Refusal> {
        let shown = self.turn(id, turn).await?.map_or(0, |turn| turn.images.len());
        if shown <= position as usize {
            return Err(Refusal::ImageUnknown);
        }
        loop {
            // Replays are newer than their originals, so this ends.
            match self.get(replay.of).await {
                Ok(Agent { copy: Some(Copied::Replay(next)), .. }) => replay = next,
                Ok(Agent { id, .. }) => return Ok(id),
                // It was purged.
                Err(Refusal::NotFound(_)) => return Err(Refusal::ImageUnknown),
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// Refuses images for agents of a type that cannot see them.
    pub(super) fn check_images(&self, kind: &str, images: &[ImageFile]) -> Result<(), Refusal> {
        let types = &self.core.outside.types;
        let accepts = match types.get(kind) {
            Some(kind) => kind.abilities.images,
            // This node does not know it. The node that runs the agent refuses them: see `add_images` in
            // `agent_task/order.rs`.
            None => self.core.membership.runs_elsewhere(kind),
        };
        if images.is_empty() || accepts {
            return Ok(());
        }
        let accepting = types.listed.iter().filter(|(_, kind)| kind.abilities.images);
        Err(Refusal::ImagesNotAccepted { accepting: accepting.map(|(name, _)| name.clone()).collect() })
    }
}
