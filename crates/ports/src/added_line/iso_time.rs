//! A time in a line that clients receive: ISO 8601, UTC, with milliseconds, like all times of the protocol.

use std::borrow::Cow;

use serde::{Deserialize as _, Deserializer, Serializer};
use tokenrail_domain::Timestamp;

#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
pub(super) fn serialize<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match time.and_then(|time| jiff::Timestamp::from_millisecond(time.0).ok()) {
        Some(time) => serializer.collect_str(&format_args!("{time:.3}")),
        None => serializer.serialize_none(),
    }
}

/// A text that is not a time counts as absent.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<Cow<'de, str>>::deserialize(deserializer)?;
    let time = text.and_then(|text| text.parse::<jiff::Timestamp>().ok());
    Ok(time.map(|time| Timestamp(time.as_millisecond())))
}
