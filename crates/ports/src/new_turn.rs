//! A turn that is new to the store.

use tokenrail_domain::{ImageFile, Turn, TurnImage, TurnNumber};

/// A turn that is new to the store, with the images of its prompt. The store keeps the images as long as the agent, and
/// returns them with [`IAgentRepository::prompt_image`](crate::IAgentRepository::prompt_image).
#[derive(Debug, Clone, PartialEq)]
pub struct NewTurn {
    turn: Turn,
    images: Vec<TurnImage>,
    only_as: Option<TurnNumber>,
}

impl NewTurn {
    pub fn new(turn: Turn, images: Vec<ImageFile>) -> Self {
        Self::with_lost(turn, images.into_iter().map(TurnImage::File).collect())
    }

    /// An imported turn. The server that has exported it had lost some of the images.
    pub fn with_lost(turn: Turn, images: Vec<TurnImage>) -> Self {
        let turn = Turn { images: images.iter().map(TurnImage::summary).collect(), ..turn };
        Self { turn, images, only_as: None }
    }

    /// The same turn, but [`IAgentRepository::enqueue`](crate::IAgentRepository::enqueue) saves it only if it gets this
    /// number, so that two turns which follow the same one are not both accepted.
    #[must_use]
    pub fn only_as(self, number: Option<TurnNumber>) -> Self {
        Self { only_as: number, ..self }
    }

    /// Whether the turn must not get this number.
    pub fn refuses(&self, number: TurnNumber) -> bool {
        self.only_as.is_some_and(|only| only != number)
    }

    /// Its [`Turn::images`] are those of the files, and those that are lost. If there are neither, it is the turn of a
    /// replay, which shows the images of its original, or it has none.
    pub fn turn(&self) -> &Turn {
        &self.turn
    }

    /// The images that are not lost, with their positions in the prompt.
    pub fn images(&self) -> impl Iterator<Item = (u32, &ImageFile)> {
        (0..).zip(&self.images).filter_map(|(position, image)| Some((position, image.file()?)))
    }

    /// The positions of the images that are lost.
    pub fn lost_images(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.images).filter_map(|(position, image)| image.file().is_none().then_some(position))
    }

    pub fn into_parts(self) -> (Turn, Vec<TurnImage>) {
        (self.turn, self.images)
    }

    /// The size of its prompt and its images, in bytes.
    pub fn bytes(&self) -> usize {
        self.turn.prompt.len() + self.images().map(|(_, image)| image.data().len()).sum::<usize>()
    }
}

/// A turn without images of its own. If it is the turn of a replay, it may list those of its original.
impl From<Turn> for NewTurn {
    fn from(turn: Turn) -> Self {
        Self { turn, images: Vec::new(), only_as: None }
    }
}
