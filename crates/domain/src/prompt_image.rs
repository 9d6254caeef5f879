//! The images of a prompt.

use std::fmt;

use bytes::Bytes;

/// The types of images that a prompt may have: those that all models read. A browser runs no script in any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageType {
    Png,
    Jpeg,
    Gif,
    Webp,
}

impl ImageType {
    /// The store keeps positions in this list, so a new type comes last.
    pub const ALL: [Self; 4] = [Self::Png, Self::Jpeg, Self::Gif, Self::Webp];

    /// The media type, which is also the name in the API and the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    /// The inverse of [`ImageType::as_str`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The type of a file with these bytes, by its signature. `None` if it is none of these types.
    pub fn of(file: &[u8]) -> Option<Self> {
        match file {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }
}

/// What the journal has of an image of a prompt. The store keeps the image itself with the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptImage {
    pub media_type: ImageType,
    /// The size of the image.
    pub bytes: u64,
}

/// An image itself: the bytes of a file whose signature is known.
#[derive(Clone, PartialEq, Eq)]
pub struct ImageFile {
    media_type: ImageType,
    data: Bytes,
}

impl ImageFile {
    /// Recognises a file by its signature. `None` if it is not an image of a known type.
    pub fn new(data: Bytes) -> Option<Self> {
        Some(Self { media_type: ImageType::of(&data)?, data })
    }

    pub fn media_type(&self) -> ImageType {
        self.media_type
    }

    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// The same image. Its data keeps `held` until nobody uses the data any more: for example a place in a limit for
    /// memory.
    #[must_use]
    pub fn holding<T: Send + 'static>(self, held: T) -> Self {
        let Self { media_type, data } = self;
        Self { media_type, data: Bytes::from_owner(Holding { data, _held: held }) }
    }

    /// What the journal has of it.
    pub fn summary(&self) -> PromptImage {
        PromptImage { media_type: self.media_type, bytes: self.data.len() as u64 }
    }
}

/// An image of a turn: the image itself, or what is known of it if the store has lost it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnImage {
    File(ImageFile),
    Lost(PromptImage),
}

impl TurnImage {
    /// What the journal has of it.
    pub fn summary(&self) -> PromptImage {
        match self {
            Self::File(image) => image.summary(),
            Self::Lost(summary) => *summary,
        }
    }

    /// The image. `None` if it is lost.
    pub fn file(&self) -> Option<&ImageFile> {
        match self {
            Self::File(image) => Some(image),
            Self::Lost(_) => None,
        }
    }
}

/// The data of an image, and what it keeps.
struct Holding<T> {
    data: Bytes,
    _held: T,
}

impl<T> AsRef<[u8]> for Holding<T> {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

/// Without the bytes, which nobody reads in a log.
impl fmt::Debug for ImageFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ImageFile").field(&self.summary()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_file_is_recognised_by_its_signature() {
        let known: [(&[u8], _); 6] = [
            (b"\x89PNG\r\n\x1a\nrest", ImageType::Png),
            (b"\xff\xd8\xff\xe0", ImageType::Jpeg),
            (b"GIF87a", ImageType::Gif),
            (b"GIF89a;", ImageType::Gif),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", ImageType::Webp),
            (b"\xff\xd8\xff", ImageType::Jpeg),
        ];
        for (file, kind) in known {
            assert_eq!(ImageType::of(file), Some(kind), "{file:?}");
        }
    }

    #[test]
    fn other_files_are_no_images() {
        let others: [&[u8]; 7] = [
            b"",
            b"\x89PNG\r\n",
            b"GIF88a",
            b"<svg xmlns='http://www.w3.org/2000/svg'/>",
            b"RIFF1234WAVE",
            b"%PDF-1.7",
            b"BM",
        ];
        for file in others {
            assert_eq!(ImageFile::new(Bytes::copy_from_slice(file)), None, "{file:?}");
        }
    }

    #[test]
    fn an_image_holds_something_until_its_data_is_used_no_more() {
        let held = Arc::new(());
        let image = ImageFile::new(Bytes::from_static(b"GIF89a;")).unwrap();
        let holding = image.clone().holding(Arc::clone(&held));
        assert_eq!(holding, image);
        let data = holding.data().clone();
        drop(holding);
        assert_eq!(Arc::strong_count(&held), 2);
        drop(data);
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    fn names_read_back() {
        for kind in ImageType::ALL {
            assert_eq!(ImageType::from_name(kind.as_str()), Some(kind));
        }
        assert_eq!(ImageType::from_name("image/svg+xml"), None);
    }
}
