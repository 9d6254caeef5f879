//! Lenient decoding of JSON strings.
//!
//! Agents cut their output between the halves of a surrogate pair: `"\ud83d"` arrives in one line and `"\ude00"` in the
//! next. A strict parser rejects both lines. This module joins the halves. A half that stays alone becomes U+FFFD.

use std::borrow::Cow;

use memchr::memchr;

/// Decodes one whole JSON string, quotes included. `None` if `raw` is not a string.
///
/// `raw` must be text that a JSON parser has delimited. For other text, the result is unspecified, but there is no
/// panic.
pub(crate) fn decode(raw: &str) -> Option<Cow<'_, str>> {
    let mut joiner = SurrogateJoiner::default();
    let mut text = joiner.push(raw)?;
    if let Some(lone) = joiner.finish() {
        text.to_mut().push(lone);
    }
    Some(text)
}

/// Decodes a sequence of JSON strings that form one text, and joins surrogate pairs across them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SurrogateJoiner {
    /// The high surrogate at the end of the text so far.
    high: Option<u16>,
}

impl SurrogateJoiner {
    /// Decodes the next piece, quotes included. `None` if it is not a string. A high surrogate at its end is held back
    /// until the next piece.
    pub(crate) fn push<'a>(&mut self, raw: &'a str) -> Option<Cow<'a, str>> {
        let body = raw.strip_prefix('"')?.strip_suffix('"')?;
        if body.is_empty() || (self.high.is_none() && memchr(b'\\', body.as_bytes()).is_none()) {
            return Some(Cow::Borrowed(body));
        }
        let mut out = String::with_capacity(body.len());
        let mut rest = body;
        while let Some(at) = memchr(b'\\', rest.as_bytes()) {
            self.plain(&rest[..at], &mut out);
            let (unit, length) = escape(&rest.as_bytes()[at + 1..]);
            self.unit(unit, &mut out);
            rest = &rest[at + 1 + length..];
        }
        self.plain(rest, &mut out);
        Some(Cow::Owned(out))
    }

    /// Ends the text. Returns U+FFFD if a half was held back.
    pub(crate) fn finish(&mut self) -> Option<char> {
        self.high.take().map(|_| char::REPLACEMENT_CHARACTER)
    }

    fn plain(&mut self, text: &str, out: &mut String) {
        if !text.is_empty() {
            out.extend(self.finish());
            out.push_str(text);
        }
    }

    fn unit(&mut self, unit: u16, out: &mut String) {
        match (self.high.take(), unit) {
            (Some(high), 0xdc00..0xe000) => out.extend(char::decode_utf16([high, unit]).flatten()),
            (before, 0xd800..0xdc00) => {
                out.extend(before.map(|_| char::REPLACEMENT_CHARACTER));
                self.high = Some(unit);
            }
            (before, _) => {
                out.extend(before.map(|_| char::REPLACEMENT_CHARACTER));
                out.push(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
    }
}

/// Decodes one escape, without its backslash. Returns the UTF-16 unit and the number of bytes read.
fn escape(bytes: &[u8]) -> (u16, usize) {
    let simple = match bytes.first() {
        Some(&byte @ (b'"' | b'\\' | b'/')) => byte,
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'u') => return unicode(bytes),
        // A JSON parser rejects this.
        _ => return (0xfffd, 0),
    };
    (u16::from(simple), 1)
}

/// Decodes `u` and four hexadecimal digits.
fn unicode(bytes: &[u8]) -> (u16, usize) {
    let digits = bytes.get(1..5).unwrap_or_default();
    let mut unit = 0;
    for &digit in digits {
        let Some(value) = char::from(digit).to_digit(16) else { return (0xfffd, 1) };
        unit = unit << 4 | value as u16;
    }
    if digits.is_empty() { (0xfffd, 1) } else { (unit, 5) }
}

#[cfg(test)]
mod tests;
