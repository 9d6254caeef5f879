//! Fields of foreign JSON objects.
//!
//! Every field stays an unparsed JSON value until it is used. A lone surrogate, a field with a changed type or a deep
//! nesting therefore affects only that field and not the whole line. (A tagged enum would be more readable, but serde
//! cannot keep raw values inside one.)

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_domain::JsonText;

use crate::text;

/// An unparsed JSON value. `None` if it is missing or null.
pub(crate) type Raw<'a> = Option<&'a RawValue>;

/// Defines objects of which every field is a [`Raw`] value. A field whose name differs from its name in JSON is
/// `name = "jsonName"`.
macro_rules! raw_structs {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident { $($(#[$of_field:meta])* $field:ident $(= $json:literal)?),* $(,)? }
    )*) => {$(
        #[derive(Default, serde::Deserialize)]
        $(#[$attribute])*
        $visibility struct $name<'a> {$(
            $(#[$of_field])*
            #[serde(borrow $(, rename = $json)?)]
            $visibility $field: crate::fields::Raw<'a>,
        )*}
    )*};
}
pub(crate) use raw_structs;

/// Parses an object. A missing value, or a value of another type, becomes an object without fields.
pub(crate) fn read<'a, T: Deserialize<'a> + Default>(raw: Raw<'a>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// Parses a string.
pub(crate) fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    text::decode(raw?.get())
}

/// Whether the field is present and true.
pub(crate) fn is_true(raw: Raw<'_>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

/// Parses a number.
pub(crate) fn number<'a, T: Deserialize<'a>>(raw: Raw<'a>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// Returns an object unchanged.
pub(crate) fn object(raw: Raw<'_>) -> Option<JsonText> {
    raw.filter(|raw| raw.get().starts_with('{')).map(|raw| JsonText::new_unchecked(raw.get()))
}

/// The elements of an array. Empty if the value is not an array.
pub(crate) fn elements(raw: Raw<'_>) -> Vec<&RawValue> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// Returns the input of a tool unchanged, nearly always an object. An empty object if the input is missing.
pub(crate) fn tool_input(raw: Raw<'_>) -> JsonText {
    JsonText::new_unchecked(raw.map_or("{}", RawValue::get))
}

/// Returns any value unchanged. An empty string if the value is missing.
pub(crate) fn as_given(raw: Raw<'_>) -> JsonText {
    raw.map_or_else(|| JsonText::string(""), |raw| JsonText::new_unchecked(raw.get()))
}

/// Parses further fields of a line whose head was parsed. The line is known to be an object.
pub(crate) fn reread<'a, T: Deserialize<'a> + Default>(line: &'a str) -> T {
    serde_json::from_str(line).unwrap_or_default()
}
