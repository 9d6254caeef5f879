//! The images of a prompt, as files of the run folder: the messages to the `converse` process are too short for them.

use std::fs;
use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};
use tokenrail_domain::ImageFile;

use super::folder::{RunFolder, private_file};

/// An image of a prompt that is in a file of the run folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImageRef {
    file: String,
    pub(crate) media_type: String,
}

impl ImageRef {
    /// The images of the prompt of this turn, in order.
    pub(crate) fn of(turn: u64, images: &[ImageFile]) -> Vec<Self> {
        let name = |(position, image): (usize, &ImageFile)| Self {
            file: format!("image-{turn}-{position}"),
            media_type: image.media_type().as_str().to_owned(),
        };
        images.iter().enumerate().map(name).collect()
    }
}

impl RunFolder {
    /// Writes the images of a turn's prompt, and returns where they are.
    pub(crate) fn write_images(&self, turn: u64, images: &[ImageFile]) -> io::Result<Vec<ImageRef>> {
        let refs = ImageRef::of(turn, images);
        for (image, file) in images.iter().zip(&refs) {
            private_file(&self.path().join(&file.file))?.write_all(image.data())?;
        }
        Ok(refs)
    }

    /// Reads an image, and removes its file: it is needed once, and an idle process may keep the folder for long.
    pub(crate) fn take_image(&self, image: &ImageRef) -> io::Result<Vec<u8>> {
        let path = self.path().join(&image.file);
        let bytes = fs::read(&path)?;
        fs::remove_file(path)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use tokenrail_domain::ImageType;
    use tokenrail_ports::testing::samples::image;

    use super::*;

    #[test]
    fn an_image_can_be_taken_once_and_only_this_user_can_read_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(place.path());
        let files = [image(ImageType::Png, "one"), image(ImageType::Gif, "two")];
        let refs = folder.write_images(3, &files).unwrap();
        assert_eq!(refs, ImageRef::of(3, &files));
        for (file, image) in files.iter().zip(&refs) {
            let mode = fs::metadata(place.path().join(&image.file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            assert_eq!(folder.take_image(image).unwrap(), &file.data()[..]);
            assert_eq!(image.media_type, file.media_type().as_str());
            folder.take_image(image).unwrap_err();
        }
    }
}
