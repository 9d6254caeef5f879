//! The images of a prompt.

use serde_json::value::RawValue;
use tokenrail_domain::ImageFile;
use utoipa::ToSchema;

use crate::error::Problem;
use crate::json::fields::Fields;
use crate::vocabularies::prompts::prompt_images::ImageLimits;

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
