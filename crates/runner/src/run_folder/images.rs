//! The images of a prompt, as files of the run folder: the messages to the `converse` process are too short for them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use tokenrail_domain::ImageFile;

use super::folder::RunFolder;

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
            new_private_file(&self.image_path(file))?.write_all(image.data())?;
        }
        Ok(refs)
    }

    pub(crate) fn image_path(&self, image: &ImageRef) -> PathBuf {
        self.path().join(&image.file)
    }

    /// Reads an image, and removes its file: it is needed once, and an idle process may keep the folder for long.
    pub(crate) fn take_image(&self, image: &ImageRef) -> io::Result<Vec<u8>> {
        let path = self.image_path(image);
        let mut bytes = Vec::new();
        let file =
            OpenOptions::new().read(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(&path);
        file?.read_to_end(&mut bytes)?;
        fs::remove_file(path)?;
        Ok(bytes)
    }
}

/// A file that did not exist before. An idle agent of the same user can write to the folder, and could put a link in
/// the place of the file. What is left of an earlier attempt is replaced.
fn new_private_file(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
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

    #[test]
    fn an_image_is_neither_written_nor_read_through_a_link() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(place.path());
        let other = place.path().join("other");
        fs::write(&other, "precious").unwrap();
        let files = [image(ImageType::Png, "one")];
        let [file] = &ImageRef::of(3, &files)[..] else { panic!() };
        std::os::unix::fs::symlink(&other, folder.image_path(file)).unwrap();
        folder.write_images(3, &files).unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"precious");
        fs::remove_file(folder.image_path(file)).unwrap();
        std::os::unix::fs::symlink(&other, folder.image_path(file)).unwrap();
        folder.take_image(file).unwrap_err();
    }
}
