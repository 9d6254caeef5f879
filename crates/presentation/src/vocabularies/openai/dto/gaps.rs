//! Gaps in JSON, for what the journal has. The JSON around a gap is written at once. The gap is filled while the JSON
//! is sent, so nothing long is held.

use std::io;

use serde::{Serialize, Serializer};
use serde_json::ser::Formatter;

/// Marks a gap. In JSON, it can be nowhere else: strings contain it only as an escape.
const MARK: u8 = 0;
/// The tag of the first kind of gap. The others follow it.
const FIRST_TAG: u8 = b'a';

/// What belongs into a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gap {
    /// The name of the tool that an item calls.
    Name,
    /// What an item says, thinks, or calls its tool with.
    Text,
    /// The result of the call of an item.
    Result,
    /// The name and the arguments of the call of an item, on one line.
    Line,
    /// All items.
    Items,
    /// What all items say.
    Said,
    /// The same, with what was discarded after clients had received it.
    Streamed,
    /// What all items think and do.
    Done,
}

impl Gap {
    const ALL: [Self; 8] = [
        Self::Name,
        Self::Text,
        Self::Result,
        Self::Line,
        Self::Items,
        Self::Said,
        Self::Streamed,
        Self::Done,
    ];

    /// What encloses the gap in JSON.
    fn enclosure(self) -> [u8; 2] {
        match self {
            Self::Items => *b"[]",
            Self::Name
            | Self::Text
            | Self::Result
            | Self::Line
            | Self::Said
            | Self::Streamed
            | Self::Done => *b"\"\"",
        }
    }
}

impl Serialize for Gap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&[*self as u8])
    }
}

/// A text that is given, or one that the journal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum GapText<'a> {
    Given(&'a str),
    Gap(Gap),
}

/// Writes JSON without white space, with its gaps. Nothing else that is written here consists of bytes.
struct WithGaps;

impl Formatter for WithGaps {
    fn write_byte_array<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: &[u8]) -> io::Result<()> {
        let gap = value.first().and_then(|index| Gap::ALL.get(usize::from(*index)));
        let gap = *gap.ok_or(io::ErrorKind::InvalidData)?;
        let [open, close] = gap.enclosure();
        writer.write_all(&[open, MARK, FIRST_TAG + gap as u8, close])
    }
}

/// Appends the JSON of a value, with marks for its gaps.
pub(crate) fn write_with_gaps<T: Serialize>(value: &T, out: &mut Vec<u8>) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(out, WithGaps))
}

/// Divides JSON at its gaps: what is before each gap, and the gap. The last part has none.
pub(crate) fn divided(mut json: &[u8]) -> impl Iterator<Item = (&[u8], Option<Gap>)> {
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let Some(mark) = json.iter().position(|byte| *byte == MARK) else {
            is_over = true;
            return Some((json, None));
        };
        let before = &json[..mark];
        let tag = json.get(mark + 1).and_then(|tag| tag.checked_sub(FIRST_TAG));
        json = json.get(mark + 2..).unwrap_or_default();
        Some((before, tag.and_then(|index| Gap::ALL.get(usize::from(index))).copied()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_found_in_their_order_whatever_surrounds_them() {
        let odd = "\0a \"\\\u{1}";
        let value = (odd, Gap::ALL, GapText::Given(odd), GapText::Gap(Gap::Name));
        let mut json = Vec::new();
        write_with_gaps(&value, &mut json).unwrap();
        let parts: Vec<_> = divided(&json).collect();
        let found: Vec<_> = parts.iter().filter_map(|(_, gap)| *gap).collect();
        assert_eq!(found, [&Gap::ALL[..], &[Gap::Name]].concat());
        let whole: Vec<u8> = parts.iter().flat_map(|(before, _)| before.iter().copied()).collect();
        let expected = serde_json::json!([odd, ["", "", "", "", [], "", "", ""], odd, ""]);
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&whole).unwrap(), expected);
    }
}
