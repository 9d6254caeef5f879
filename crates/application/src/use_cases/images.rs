//! The images of prompts.

use tokenrail_domain::{AgentId, Copied, ImageFile, TurnNumber};

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
        let of = match self.get(id).await?.copy {
            Some(Copied::Replay(replay)) => replay.of,
            Some(Copied::File) | None => id,
        };
        let image = self.core.outside.agents.prompt_image(of, turn, position).await?;
        image.ok_or(Refusal::ImageUnknown)
    }

    /// Refuses images for agents of a type that cannot see them.
    pub(super) fn check_images(&self, kind: &str, images: &[ImageFile]) -> Result<(), Refusal> {
        let types = &self.core.outside.types;
        if images.is_empty() || types.get(kind).is_some_and(|kind| kind.abilities.images) {
            return Ok(());
        }
        let accepting = types.listed.iter().filter(|(_, kind)| kind.abilities.images);
        Err(Refusal::ImagesNotAccepted { accepting: accepting.map(|(name, _)| name.clone()).collect() })
    }
}
