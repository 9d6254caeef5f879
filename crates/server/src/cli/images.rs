//! The images of a prompt, from files.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::{Value, json};
use tokenrail_domain::ImageFile;

use super::{Exit, Failure};

/// A larger file is no image that a server accepts. The limit of the server is `limits.image_bytes`.
const FILE_BYTES: u64 = 256 << 20;

#[derive(Debug, Args)]
pub(crate) struct ImageArgs {
    /// Send an image with the text: a PNG, JPEG, GIF or WebP file. Repeat the option for several images
    #[arg(long = "image", value_name = "FILE")]
    images: Vec<PathBuf>,
}

impl ImageArgs {
    /// The field `images` of a request. `None` without images.
    ///
    /// # Errors
    /// If a file cannot be read, or is not an image.
    pub(crate) fn read(&self) -> Result<Option<Value>, Failure> {
        if self.images.is_empty() {
            return Ok(None);
        }
        let images = self.images.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Value::Array(images)))
    }
}

fn read(path: &Path) -> Result<Value, Failure> {
    let refused = |why: String| Failure::new(Exit::Usage, format!("--image {}: {why}", path.display()));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| refused(error.to_string()))?;
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| refused(error.to_string()))?;
    if FILE_BYTES < bytes.len() as u64 {
        return Err(refused("the file is too large for a message".to_owned()));
    }
    let Some(image) = ImageFile::new(bytes.into()) else {
        return Err(refused("the file is not a PNG, JPEG, GIF or WebP image".to_owned()));
    };
    Ok(json!({ "mediaType": image.media_type().as_str(), "data": STANDARD.encode(image.data()) }))
}
