//! The images of prompts: the list in the row of a turn, and the checksum of an image.

use std::collections::BTreeSet;

use tokenrail_domain::{ImageFile, ImageType, PromptImage, TurnNumber};
use tokenrail_ports::{NewTurn, StoreError};

use super::checksum::Checksum;

/// Marks an image that had been lost before its agent was imported, so that a later loss is noticed.
const LOST: &str = " lost";

/// The column `images` of `turns`: types and sizes. `None` if there are no images.
pub(crate) fn listed(images: &[PromptImage]) -> Option<String> {
    joined(images.iter().map(in_list))
}

/// The same for an imported turn, of which images may be lost.
pub(crate) fn listed_of_import(turn: &NewTurn) -> Option<String> {
    let lost: BTreeSet<u32> = turn.lost_images().collect();
    joined((0..).zip(&turn.turn().images).map(|(position, image)| {
        let mark = if lost.contains(&position) { LOST } else { "" };
        in_list(image) + mark
    }))
}

fn in_list(PromptImage { media_type, bytes }: &PromptImage) -> String {
    format!("{} {bytes}", media_type.as_str())
}

fn joined(images: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = images.collect();
    (!all.is_empty()).then(|| all.join(","))
}

/// The inverse of [`listed`], and of [`listed_of_import`].
///
/// # Errors
/// The part of the list that was not written here.
pub(crate) fn summaries(listed: &str) -> Result<Vec<PromptImage>, &str> {
    let summary = |part: &str| {
        let (media_type, bytes) = part.strip_suffix(LOST).unwrap_or(part).split_once(' ')?;
        Some(PromptImage { media_type: ImageType::from_name(media_type)?, bytes: bytes.parse().ok()? })
    };
    listed.split(',').map(|part| summary(part).ok_or(part)).collect()
}

/// The place of an image: its turn, and its position in the prompt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImagePlace {
    pub(crate) turn: TurnNumber,
    pub(crate) position: u32,
}

impl ImagePlace {
    /// The checksum of the row of an image at this place.
    pub(crate) fn checksum(self, media_type: &str, data: &[u8]) -> Checksum {
        let Self { turn, position } = self;
        let numbers = Checksum::new().number(turn.0.into()).number(position.into());
        numbers.bytes(media_type.as_bytes()).bytes(data)
    }

    /// The stored image at this place.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the checksum differs, or the data is not an image of this type.
    pub(crate) fn open(
        self,
        media_type: &str,
        data: Vec<u8>,
        checksum: u32,
    ) -> Result<ImageFile, StoreError> {
        let what = || format!("image {} of turn {}", self.position, self.turn);
        self.checksum(media_type, &data).check(Some(checksum), what)?;
        match ImageFile::new(data.into()) {
            Some(image) if image.media_type().as_str() == media_type => Ok(image),
            _ => Err(StoreError::Corrupt(format!("{}: not an image of the type {media_type}", what()))),
        }
    }
}
