//! The letters that were sent, of which only the length and the hash are kept.

use std::hash::{DefaultHasher, Hasher as _};

/// What was sent. White space before it does not count as letters.
#[derive(Debug, Clone, Default)]
pub(super) struct SentText {
    /// With the white space.
    bytes: usize,
    letters: usize,
    hash: DefaultHasher,
}

impl SentText {
    pub(super) fn push(&mut self, text: &str) {
        self.bytes += text.len();
        let letters = if self.letters == 0 { text.trim_start() } else { text };
        self.letters += letters.len();
        write(&mut self.hash, letters);
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What follows it in a text. `None` if the text does not begin with it.
    pub(super) fn rest_of<'w>(&self, whole: &'w str) -> Option<&'w str> {
        let (begin, rest) = whole.split_at_checked(self.letters)?;
        let mut hash = DefaultHasher::new();
        write(&mut hash, begin);
        (hash.finish() == self.hash.finish()).then_some(rest)
    }
}

/// Adds a text to a hash, one byte at a time: it must not matter how a text was cut into pieces.
pub(super) fn write(hash: &mut DefaultHasher, text: &str) {
    for byte in text.bytes() {
        hash.write_u8(byte);
    }
}
