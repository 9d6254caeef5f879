//! The images of a prompt.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use tokenrail_domain::{ImageFile, ImageType};
use utoipa::ToSchema;

use crate::config::PresentationConfig;
use crate::error::Problem;
use crate::json::fields::Fields;

/// An image of a prompt.
#[derive(ToSchema)]
#[schema(as = NewImage, rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the body in the OpenAPI document; the reading is done by hand")]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "NewImage", rename_all = "camelCase", optional_fields))]
pub(crate) struct ImageBody {
    /// Not used: the server recognises the type of an image by its first bytes.
    #[schema(nullable = false)]
    media_type: Option<String>,
    /// A PNG, JPEG, GIF or WebP file in base64.
    #[schema(min_length = 1)]
    data: String,
}

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

/// Reads the field `images`. What is wrong with it is recorded in `fields`.
pub(super) fn images(
    fields: &mut Fields,
    limits: ImageLimits,
    depth: usize,
) -> Result<Vec<ImageFile>, Problem> {
    let Some(given) = fields.given("images", "must be a list of images") else { return Ok(Vec::new()) };
    let Ok(given) = serde_json::from_str::<Vec<&RawValue>>(given.get()) else {
        fields.refuse("images", "must be a list of images");
        return Ok(Vec::new());
    };
    if let Err(wrong) = limits.check_count(given.len()) {
        fields.refuse("images", wrong);
        return Ok(Vec::new());
    }
    let mut images = Vec::new();
    for (position, given) in given.into_iter().enumerate() {
        let place = format!("images/{position}");
        if !given.get().starts_with('{') {
            fields.refuse(&place, "must be an object");
            continue;
        }
        let mut of_image = Fields::read(given.get().as_bytes(), depth)?;
        of_image.text("mediaType", |_| None);
        let data = of_image.required_text("data", |_| None);
        if of_image.are_good() {
            match limits.image(&data) {
                Ok(image) => images.push(image),
                Err(wrong) => of_image.refuse("data", wrong),
            }
        }
        fields.refuse_all(&place, of_image);
    }
    if let Err(wrong) = limits.check_sum(&images) {
        fields.refuse("images", wrong);
    }
    Ok(images)
}
