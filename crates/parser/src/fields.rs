//! Fields of foreign JSON objects.
//!
//! Every field is an unread JSON value until somebody asks for it: so a lone surrogate, a field that has changed
//! its type or a deep nesting costs that field and not the line. (A tagged enum would read better, but serde
//! cannot keep raw values inside one.)

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_domain::JsonText;

use crate::text;

/// A JSON value that is not read yet; none where it is missing or null.
pub(crate) type Raw<'a> = Option<&'a RawValue>;

/// Reads an object; what is missing, or is something else, reads as an object without fields.
pub(crate) fn read<'a, T: Deserialize<'a> + Default>(raw: Raw<'a>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// Reads a string.
pub(crate) fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    text::decode(raw?.get())
}

/// Whether the field is there and true.
pub(crate) fn is_true(raw: Raw<'_>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

/// Reads a number.
pub(crate) fn number<'a, T: Deserialize<'a>>(raw: Raw<'a>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// Takes an object as it is.
pub(crate) fn object(raw: Raw<'_>) -> Option<JsonText> {
    raw.filter(|raw| raw.get().starts_with('{')).map(|raw| JsonText::new_unchecked(raw.get()))
}

/// The elements of an array; of anything else, none.
pub(crate) fn elements(raw: Raw<'_>) -> Vec<&RawValue> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// Takes the input of a tool as it is, nearly always an object; an empty one where there is none.
pub(crate) fn tool_input(raw: Raw<'_>) -> JsonText {
    JsonText::new_unchecked(raw.map_or("{}", RawValue::get))
}

/// Takes any value as it is; an empty string where there is none.
pub(crate) fn as_given(raw: Raw<'_>) -> JsonText {
    raw.map_or_else(|| JsonText::string(""), |raw| JsonText::new_unchecked(raw.get()))
}

/// Reads the rest of a line whose head was read: it is an object.
pub(crate) fn reread<'a, T: Deserialize<'a> + Default>(line: &'a str) -> T {
    serde_json::from_str(line).unwrap_or_default()
}
