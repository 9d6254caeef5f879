//! Foreign JSON that is passed through without being read.

use std::fmt::{self, Write as _};

/// One JSON value, kept as the text in which it was received. The caller guarantees that it is valid JSON:
/// [`JsonText::new_unchecked`] is for text that a JSON parser has delimited or a serializer has written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonText(Box<str>);

impl JsonText {
    /// Takes text that is known to be one valid JSON value.
    pub fn new_unchecked(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The JSON `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// Writes `text` as a JSON string.
    pub fn string(text: &str) -> Self {
        let mut out = String::with_capacity(text.len() + 2);
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if c < ' ' => {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\u{:04x}", c as u32);
                }
                c => out.push(c),
            }
        }
        out.push('"');
        Self(out.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
