//! One line of output, before its format is known.

use std::borrow::Cow;

use serde::Deserialize;
use tokenrail_domain::{ErrorClass, EventBody, JsonText, Notice, Said};

use crate::errors;

/// The maximum number of characters shown of an invalid line.
const SHOWN_CHARS_MAX: usize = 200;

/// The line as text, with U+FFFD in place of invalid UTF-8.
pub(crate) fn text(line: &[u8]) -> Cow<'_, str> {
    // The strict check is several times faster than the lossy one, and nearly always succeeds.
    str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
}

/// The line without leading and trailing JSON white space.
pub(crate) fn trimmed(line: &str) -> &str {
    line.trim_matches([' ', '\t', '\r', '\n'])
}

/// Parses a line that must be a JSON object. If it is not one, an error is emitted. An empty line emits nothing.
pub(crate) fn object<'a, T: Deserialize<'a>>(line: &'a str, said: &mut Vec<Said>) -> Option<T> {
    if line.is_empty() {
        return None;
    }
    match serde_json::from_str(line) {
        Ok(read) if line.starts_with('{') => Some(read),
        _ => {
            said.push(nonsense(line));
            None
        }
    }
}

/// The error for a line that is not valid in the format.
pub(crate) fn nonsense(line: &str) -> Said {
    let shown: String = line.chars().take(SHOWN_CHARS_MAX).collect();
    let more = if shown.len() < line.len() { " …" } else { "" };
    let text = format!("the agent printed a line that is not a JSON object: {shown}{more}");
    let error = errors::agent_error(ErrorClass::Protocol, Some("line_invalid"), text);
    Said::Event(EventBody::Error(Box::new(error)))
}

/// A notice: information that the agent reports about itself. `data` is a JSON object.
pub(crate) fn notice(subtype: &str, data: JsonText) -> Said {
    let subtype = if Notice::is_about_a_question(subtype) {
        // These subtypes are reserved for Tokenrail: a notice of the agent must not look like a permission request,
        // because it cannot be answered.
        format!("agent_{subtype}")
    } else {
        subtype.to_owned()
    };
    Said::Event(EventBody::Notice(Box::new(Notice { subtype, data })))
}
