//! The images of prompts in the file of an exported agent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use tokenrail_domain::{ImageFile, ImageType, PromptImage};

use crate::vocabularies::native::dto::requests::ImageLimits;

/// What an event has of an image.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ArchivedSummary {
    media_type: String,
    bytes: u64,
}

impl ArchivedSummary {
    pub(super) fn of(image: &PromptImage) -> Self {
        let PromptImage { media_type, bytes } = *image;
        Self { media_type: media_type.as_str().to_owned(), bytes }
    }

    pub(super) fn into_image(self) -> Result<PromptImage, String> {
        let Self { media_type, bytes } = self;
        let media_type = ImageType::from_name(&media_type).ok_or("unknown type of an image")?;
        Ok(PromptImage { media_type, bytes })
    }
}

/// An image of a turn, in base64.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArchivedImage {
    media_type: String,
    data: String,
}

impl ArchivedImage {
    pub(super) fn of(image: &ImageFile) -> Self {
        Self { media_type: image.media_type().as_str().to_owned(), data: STANDARD.encode(image.data()) }
    }

    /// The image, whose type is recognised by its first bytes, as in a message.
    pub(super) fn into_file(self, limits: ImageLimits) -> Result<ImageFile, String> {
        limits.image(&self.data).map_err(|wrong| format!("an image {wrong}"))
    }
}
