//! Numbers, texts and flags in the streams.

use tokenrail_domain::{JsonText, MessageOrdinal, Part};

use super::MalformedBatch;
use super::bytes_io::put_varint;
use super::streams::{StreamReaders, Streams};

pub(super) fn narrow(number: u64) -> Result<u32, MalformedBatch> {
    u32::try_from(number).map_err(|_| MalformedBatch)
}

impl Streams {
    pub(super) fn number(&mut self, number: u64) {
        put_varint(&mut self.numbers, number);
    }

    pub(super) fn maybe_number(&mut self, number: Option<u64>) {
        self.number(u64::from(number.is_some()));
        if let Some(number) = number {
            self.number(number);
        }
    }

    pub(super) fn code<T: PartialEq + Copy>(&mut self, all: &[T], one: T) {
        // Every value is in its own list; the length says "unknown" to a reader.
        self.number(all.iter().position(|it| *it == one).unwrap_or(all.len()) as u64);
    }

    pub(super) fn place(&mut self, message: MessageOrdinal, part: Part) {
        self.number(u64::from(message.0));
        self.number(u64::from(part.0));
    }

    pub(super) fn text(&mut self, text: &str) {
        put_varint(&mut self.lengths, text.len() as u64);
        self.texts.extend_from_slice(text.as_bytes());
    }

    pub(super) fn maybe_text(&mut self, text: Option<&str>) {
        self.number(u64::from(text.is_some()));
        if let Some(text) = text {
            self.text(text);
        }
    }

    /// A delta's text: 0 and the text itself, or its position in the raw line, plus 1.
    pub(super) fn delta_text(&mut self, text: &str, raw: Option<&[u8]>) {
        match raw.and_then(|raw| find(raw, text.as_bytes(), self.text_at)) {
            None => {
                self.number(0);
                self.text(text);
            }
            Some(at) => {
                self.text_at = at;
                self.number(at as u64 + 1);
                put_varint(&mut self.lengths, text.len() as u64);
            }
        }
    }
}

impl StreamReaders {
    pub(super) fn number(&mut self) -> Result<u64, MalformedBatch> {
        self.numbers.varint()
    }

    pub(super) fn flag(&mut self) -> Result<bool, MalformedBatch> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(MalformedBatch),
        }
    }

    pub(super) fn maybe_number(&mut self) -> Result<Option<u64>, MalformedBatch> {
        if self.flag()? { self.number().map(Some) } else { Ok(None) }
    }

    pub(super) fn code<T: Copy>(&mut self, all: &[T]) -> Result<T, MalformedBatch> {
        let at = usize::try_from(self.number()?).map_err(|_| MalformedBatch)?;
        all.get(at).copied().ok_or(MalformedBatch)
    }

    pub(super) fn message(&mut self) -> Result<MessageOrdinal, MalformedBatch> {
        self.number().and_then(narrow).map(MessageOrdinal)
    }

    pub(super) fn place(&mut self) -> Result<(MessageOrdinal, Part), MalformedBatch> {
        Ok((self.message()?, Part(narrow(self.number()?)?)))
    }

    pub(super) fn text(&mut self) -> Result<String, MalformedBatch> {
        let length = self.lengths.varint()?;
        self.texts.string(length)
    }

    pub(super) fn maybe_text(&mut self) -> Result<Option<String>, MalformedBatch> {
        if self.flag()? { self.text().map(Some) } else { Ok(None) }
    }

    pub(super) fn json(&mut self) -> Result<JsonText, MalformedBatch> {
        self.text().map(JsonText::new_unchecked)
    }

    pub(super) fn delta_text(&mut self, raw: Option<&[u8]>) -> Result<String, MalformedBatch> {
        let Some(at) = self.number()?.checked_sub(1) else { return self.text() };
        let at = usize::try_from(at).map_err(|_| MalformedBatch)?;
        let length = usize::try_from(self.lengths.varint()?).map_err(|_| MalformedBatch)?;
        let end = at.checked_add(length).ok_or(MalformedBatch)?;
        let text = raw.and_then(|raw| raw.get(at..end)).ok_or(MalformedBatch)?;
        std::str::from_utf8(text).map(str::to_owned).map_err(|_| MalformedBatch)
    }
}

/// Checks first the position at which the previous text was found. A single letter occurs at many positions, and a
/// repeated position packs best.
fn find(raw: &[u8], text: &[u8], likely: usize) -> Option<usize> {
    if text.is_empty() {
        return None;
    }
    if raw.get(likely..).is_some_and(|rest| rest.starts_with(text)) {
        return Some(likely);
    }
    raw.windows(text.len()).position(|window| window == text)
}
