//! Ids, times and foreign JSON as JSON values, written without allocation.

use jiff::tz::TimeZone;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use tokenrail_domain::{AgentId, JsonText, Timestamp};
use uuid::Uuid;

use crate::json::readable::stumble;

/// An id: 36 characters, hyphenated lower-case hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Id", type = "string"))]
pub(crate) struct IdText(pub(crate) Uuid);

impl From<AgentId> for IdText {
    fn from(id: AgentId) -> Self {
        Self(id.as_uuid())
    }
}

impl Serialize for IdText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.hyphenated().encode_lower(&mut Uuid::encode_buffer()))
    }
}

/// A time: ISO 8601, UTC, with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(ts_rs::TS), ts(type = "string"))]
pub(crate) struct IsoTime(pub(crate) Timestamp);

/// The latest time that is written, in the last days of the year 9999. Later years have five digits.
const LAST_MS: i64 = 253_402_128_000_000;

impl IsoTime {
    fn write(self) -> [u8; 24] {
        let ms = self.0.0.clamp(0, LAST_MS);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        // Always in range after the clamp, so the epoch is never used.
        let time = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let time = TimeZone::UTC.to_datetime(time);
        digits(&mut text[0..4], time.year().unsigned_abs());
        digits(&mut text[5..7], u16::from(time.month().unsigned_abs()));
        digits(&mut text[8..10], u16::from(time.day().unsigned_abs()));
        digits(&mut text[11..13], u16::from(time.hour().unsigned_abs()));
        digits(&mut text[14..16], u16::from(time.minute().unsigned_abs()));
        digits(&mut text[17..19], u16::from(time.second().unsigned_abs()));
        digits(&mut text[20..23], time.millisecond().unsigned_abs());
        text
    }
}

fn digits(out: &mut [u8], mut number: u16) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

impl Serialize for IsoTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.write()).map_err(S::Error::custom)?)
    }
}

/// JSON from an agent or a client, unchanged. JSON that common parsers cannot read is a string that contains it, so
/// that a client can still read the values around it.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(test, derive(ts_rs::TS), ts(type = "unknown"))]
pub(crate) struct Json<'a>(pub(crate) &'a JsonText);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(self.0.as_str()) {
            Ok(raw) if stumble(raw.get()).is_none() => raw.serialize(serializer),
            // The creator of a `JsonText` vouches for it. Even if it is invalid JSON, the frame stays valid.
            _ => serializer.serialize_str(self.0.as_str()),
        }
    }
}

/// The output of a tool, for clients that accept only text: a string as it is, the texts of content blocks on separate
/// lines, and anything else as JSON.
pub(crate) fn plain_text(content: &JsonText) -> String {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Content {
        Text(String),
        Blocks(Vec<Block>),
    }

    #[derive(Deserialize)]
    struct Block {
        text: String,
    }

    match serde_json::from_str(content.as_str()) {
        Ok(Content::Text(text)) => text,
        Ok(Content::Blocks(blocks)) => {
            blocks.into_iter().map(|block| block.text).collect::<Vec<_>>().join("\n")
        }
        Err(_) => content.as_str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds_and_a_z() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_795_299_000_007, "2026-11-21T22:10:00.007Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (-1, "1970-01-01T00:00:00.000Z"),
            (i64::MAX, "9999-12-30T00:00:00.000Z"),
        ];
        for (ms, expected) in cases {
            let json = serde_json::to_string(&IsoTime(Timestamp(ms))).unwrap();
            assert_eq!(json, format!("\"{expected}\""), "{ms}");
        }
    }

    #[test]
    fn foreign_json_keeps_its_spelling_and_cannot_break_a_frame() {
        let written = |text: &str| serde_json::to_string(&Json(&JsonText::new_unchecked(text))).unwrap();
        assert_eq!(written(r#"{ "a" : 1.50 }"#), r#"{ "a" : 1.50 }"#);
        assert_eq!(written("{\"a\":"), r#""{\"a\":""#);
        assert_eq!(written("[1e400]"), r#""[1e400]""#, "who cannot read it reads the rest");
    }
}
