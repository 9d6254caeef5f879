//! The limits of the images of a prompt, in whatever form a vocabulary receives them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokenrail_domain::{ImageFile, ImageType};

use crate::config::PresentationConfig;

/// The maximum number and sizes of the images of one prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImageLimits {
    pub(crate) prompt_images: usize,
    pub(crate) image_bytes: usize,
    pub(crate) prompt_image_bytes: usize,
}

impl From<&PresentationConfig> for ImageLimits {
    fn from(config: &PresentationConfig) -> Self {
        let PresentationConfig { prompt_images, image_bytes, prompt_image_bytes, .. } = *config;
        Self { prompt_images, image_bytes, prompt_image_bytes }
    }
}

/// How many bytes of JSON an image may have besides its data: its braces, names and media type.
const ROOM_BYTES: usize = 1 << 10;

impl ImageLimits {
    /// The longest JSON of all images of a prompt.
    pub(crate) fn json_bytes(self) -> usize {
        let base64 = |bytes: usize| bytes.div_ceil(3).saturating_mul(4);
        let all = base64(self.image_bytes).saturating_mul(self.prompt_images);
        // Each image is padded.
        let padding = self.prompt_images.saturating_mul(4);
        let all = all.min(base64(self.prompt_image_bytes).saturating_add(padding));
        all.saturating_add(ROOM_BYTES.saturating_mul(self.prompt_images))
    }

    /// What is wrong with so many images.
    pub(crate) fn check_count(self, count: usize) -> Result<(), String> {
        let Self { prompt_images, .. } = self;
        if prompt_images < count {
            return Err(format!("must contain at most {prompt_images} images (limits.prompt_images)"));
        }
        Ok(())
    }

    /// What is wrong with so many bytes of all images together.
    pub(crate) fn check_sum<'a>(self, images: impl IntoIterator<Item = &'a ImageFile>) -> Result<(), String> {
        let Self { prompt_image_bytes: most, .. } = self;
        let sum: usize = images.into_iter().map(|image| image.data().len()).sum();
        if most < sum {
            return Err(format!("must have at most {most} bytes in total (limits.prompt_image_bytes)"));
        }
        Ok(())
    }

    /// Reads an image in base64, or says what is wrong with it.
    pub(crate) fn image(self, data: &str) -> Result<ImageFile, String> {
        let Self { image_bytes, .. } = self;
        let Ok(file) = STANDARD.decode(data) else { return Err("must be base64, with padding".to_owned()) };
        if image_bytes < file.len() {
            return Err(format!("must be at most {image_bytes} bytes (limits.image_bytes)"));
        }
        let known = ImageType::ALL.map(ImageType::as_str).join(", ");
        ImageFile::new(file.into()).ok_or_else(|| format!("must be a file of one of these types: {known}"))
    }
}
