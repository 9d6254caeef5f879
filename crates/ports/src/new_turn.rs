//! A turn that is new to the store.

use tokenrail_domain::{ImageFile, Turn};

/// A turn that is new to the store, with the images of its prompt. The store keeps the images as long as the agent, and
/// returns them with [`IAgentRepository::prompt_image`](crate::IAgentRepository::prompt_image).
#[derive(Debug, Clone, PartialEq)]
pub struct NewTurn {
    turn: Turn,
    images: Vec<ImageFile>,
}

impl NewTurn {
    pub fn new(turn: Turn, images: Vec<ImageFile>) -> Self {
        let turn = Turn { images: images.iter().map(ImageFile::summary).collect(), ..turn };
        Self { turn, images }
    }

    /// Its [`Turn::images`] are those of the files. If there are no files, it is the turn of a replay, which shows the
    /// images of its original, or it has none.
    pub fn turn(&self) -> &Turn {
        &self.turn
    }

    pub fn images(&self) -> &[ImageFile] {
        &self.images
    }

    pub fn into_parts(self) -> (Turn, Vec<ImageFile>) {
        (self.turn, self.images)
    }

    /// The size of its prompt and its images, in bytes.
    pub fn bytes(&self) -> usize {
        self.turn.prompt.len() + self.images.iter().map(|image| image.data().len()).sum::<usize>()
    }
}

/// A turn without images of its own. If it is the turn of a replay, it may list those of its original.
impl From<Turn> for NewTurn {
    fn from(turn: Turn) -> Self {
        Self { turn, images: Vec::new() }
    }
}
