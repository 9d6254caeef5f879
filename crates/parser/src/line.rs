//! One line of output, before anything is known of its format.

use std::borrow::Cow;

use serde::Deserialize;
use tokenrail_domain::{ErrorClass, EventBody, JsonText, Notice, Said};

use crate::errors;

/// How much of a line that makes no sense is shown.
const SHOWN_CHARS_MAX: usize = 200;

/// The line as text, with U+FFFD for what is none.
pub(crate) fn text(line: &[u8]) -> Cow<'_, str> {
    // The strict check is several times faster than the lossy one, and nearly always enough.
    str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
}

/// The line without what JSON calls white space.
pub(crate) fn trimmed(line: &str) -> &str {
    line.trim_matches([' ', '\t', '\r', '\n'])
}

/// Reads a line that must be a JSON object; says so where it is not. An empty line says nothing.
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

/// A line that the format has no place for.
pub(crate) fn nonsense(line: &str) -> Said {
    let shown: String = line.chars().take(SHOWN_CHARS_MAX).collect();
    let more = if shown.len() < line.len() { " …" } else { "" };
    let text = format!("the agent printed a line that is no JSON object: {shown}{more}");
    let error = errors::agent_error(ErrorClass::Protocol, Some("line_invalid"), text);
    Said::Event(EventBody::Error(Box::new(error)))
}

/// Something that the agent says about itself: `data` is a JSON object.
pub(crate) fn notice(subtype: &str, data: JsonText) -> Said {
    let subtype = if Notice::is_about_a_question(subtype) {
        // These are ours: a question that nobody can answer must not look like one.
        format!("agent_{subtype}")
    } else {
        subtype.to_owned()
    };
    Said::Event(EventBody::Notice(Box::new(Notice { subtype, data })))
}
