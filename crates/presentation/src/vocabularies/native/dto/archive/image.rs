//! The images of prompts in the file of an exported agent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use tokenrail_domain::{ImageType, PromptImage, TurnImage};

use crate::vocabularies::prompts::prompt_images::ImageLimits;

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
        let media_type = ImageType::from_name(&media_type).ok_or("unknown image type")?;
        Ok(PromptImage { media_type, bytes })
    }
}

/// An image of a turn: in base64, or only its type and size if it is lost.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArchivedImage {
    media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost_bytes: Option<u64>,
}

impl ArchivedImage {
    pub(super) fn of(image: &TurnImage) -> Self {
        let (media_type, data, lost_bytes) = match image {
            TurnImage::File(image) => (image.media_type(), Some(STANDARD.encode(image.data())), None),
            TurnImage::Lost(PromptImage { media_type, bytes }) => (*media_type, None, Some(*bytes)),
        };
        Self { media_type: media_type.as_str().to_owned(), data, lost_bytes }
    }

    /// The image, whose type is recognised by its first bytes, as in a message.
    pub(super) fn into_image(self, limits: ImageLimits) -> Result<TurnImage, String> {
        let Self { media_type, data, lost_bytes } = self;
        match (data, lost_bytes) {
            (Some(data), None) => {
                limits.image(&data).map(TurnImage::File).map_err(|wrong| format!("an image {wrong}"))
            }
            (None, Some(bytes)) => Ok(TurnImage::Lost(ArchivedSummary { media_type, bytes }.into_image()?)),
            _ => Err("an image must have either data or lostBytes".to_owned()),
        }
    }
}
