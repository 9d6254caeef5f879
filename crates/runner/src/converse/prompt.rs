//! The prompt of a turn, as conversations send it.

use std::io::{self, ErrorKind};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::run_folder::{ImageRef, RunFolder};

/// The prompt of a turn.
#[derive(Debug, Default)]
pub(super) struct EncodedPrompt {
    pub(super) text: String,
    pub(super) images: Vec<EncodedImage>,
}

/// An image of a prompt, ready for a message in JSON.
#[derive(Debug)]
pub(super) struct EncodedImage {
    pub(super) media_type: String,
    /// The file in base64.
    pub(super) data: String,
}

impl EncodedPrompt {
    /// Takes the images of a prompt out of the run folder.
    pub(super) fn read(folder: &RunFolder, text: String, images: &[ImageRef]) -> io::Result<Self> {
        let encoded = |image: &ImageRef| {
            let data = STANDARD.encode(folder.take_image(image)?);
            Ok(EncodedImage { media_type: image.media_type.clone(), data })
        };
        Ok(Self { text, images: images.iter().map(encoded).collect::<io::Result<_>>()? })
    }

    /// The size of its images in a message.
    pub(super) fn image_bytes(&self) -> usize {
        self.images.iter().map(|image| image.data.len()).sum()
    }
}

/// The prompt of a turn whose program reads the images itself.
#[derive(Debug, Default)]
pub(super) struct FilePrompt {
    pub(super) text: String,
    /// The paths of the images.
    pub(super) files: Vec<String>,
}

impl FilePrompt {
    /// The images stay in the run folder, which is removed after the turn.
    pub(super) fn new(folder: &RunFolder, text: String, images: &[ImageRef]) -> io::Result<Self> {
        let not_text = || io::Error::new(ErrorKind::InvalidInput, "the path of an image is not valid UTF-8");
        let path = |image| folder.image_path(image).into_os_string().into_string().map_err(|_| not_text());
        Ok(Self { text, files: images.iter().map(path).collect::<io::Result<_>>()? })
    }
}

/// A prompt without images.
impl From<String> for EncodedPrompt {
    fn from(text: String) -> Self {
        Self { text, images: Vec::new() }
    }
}

#[cfg(test)]
impl EncodedPrompt {
    /// A prompt with one image, whose data stays as it is.
    pub(super) fn with_image(text: &str, media_type: &str, data: &str) -> Self {
        let image = EncodedImage { media_type: media_type.to_owned(), data: data.to_owned() };
        Self { text: text.to_owned(), images: vec![image] }
    }
}
