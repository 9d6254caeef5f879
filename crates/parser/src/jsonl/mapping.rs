//! The mapping of fields and kinds.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::path::Fields;
use crate::fields;

/// The mapping from the fields and kinds of a program's lines to events.
///
/// A field is named by its path from the top of the line: `text`, `message.content`. An empty path means that there is
/// no such field, and an empty list of kinds means that there is no such kind. The default is the recommended output
/// format for a program. In a configuration, a missing setting has its default value, and an unknown name is an error.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JsonlMapping {
    /// The kind of the line. If a line has no kind, its fields determine what it is.
    pub kind: String,
    /// The program's own conversation id, by which it can resume.
    pub session: String,
    /// The text of a message or of a piece of a message.
    pub text: String,
    /// The id of a tool call, in the call and in its result.
    pub call: String,
    pub tool: String,
    pub input: String,
    pub output: String,
    /// The final text, in the line that ends the turn.
    pub result: String,
    /// In an error: its text, or an object with a `message`. In a tool result or a result: whether it failed.
    pub error: String,
    /// The token usage of the turn: an object.
    pub usage: String,
    /// Kinds of lines with a piece of a message.
    pub deltas: Vec<String>,
    /// Kinds of lines with a piece of reasoning.
    pub reasoning: Vec<String>,
    /// Kinds of lines with a whole message. After pieces, the message repeats all of them.
    pub messages: Vec<String>,
    pub tool_calls: Vec<String>,
    pub tool_results: Vec<String>,
    /// Kinds of lines with an error that does not end the turn.
    pub errors: Vec<String>,
    /// Kinds of lines that end the turn. If the list is empty, exit code 0 ends the turn.
    pub results: Vec<String>,
}

impl Default for JsonlMapping {
    fn default() -> Self {
        let owned = str::to_owned;
        let one = |kind: &str| vec![kind.to_owned()];
        Self {
            kind: owned("type"),
            session: owned("session_id"),
            text: owned("text"),
            call: owned("id"),
            tool: owned("tool"),
            input: owned("input"),
            output: owned("output"),
            result: owned("result"),
            error: owned("error"),
            usage: owned("usage"),
            deltas: one("delta"),
            reasoning: one("reasoning"),
            messages: one("message"),
            tool_calls: one("tool_call"),
            tool_results: one("tool_result"),
            errors: one("error"),
            results: one("result"),
        }
    }
}

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Delta,
    Reasoning,
    Message,
    ToolCall,
    ToolResult,
    Error,
    Result,
    Other(String),
}

impl JsonlMapping {
    /// Determines what a line with these fields is.
    pub(super) fn kind_of(&self, line: &Fields<'_>) -> Kind {
        match fields::text(line.at(&self.kind)) {
            Some(kind) => self.named(kind),
            None if line.at(&self.result).is_some() => Kind::Result,
            None if line.at(&self.error).is_some_and(is_failure) => Kind::Error,
            None if line.at(&self.text).is_some() => Kind::Delta,
            None => Kind::Other("untyped".to_owned()),
        }
    }

    fn named(&self, kind: Cow<'_, str>) -> Kind {
        let is_in = |kinds: &[String]| kinds.iter().any(|known| *known == *kind);
        if is_in(&self.deltas) {
            Kind::Delta
        } else if is_in(&self.reasoning) {
            Kind::Reasoning
        } else if is_in(&self.messages) {
            Kind::Message
        } else if is_in(&self.tool_calls) {
            Kind::ToolCall
        } else if is_in(&self.tool_results) {
            Kind::ToolResult
        } else if is_in(&self.errors) {
            Kind::Error
        } else if is_in(&self.results) {
            Kind::Result
        } else {
            Kind::Other(kind.into_owned())
        }
    }
}

/// Whether the value of an error field means an error. `false`, `""` and the like mean that there is none.
pub(super) fn is_failure(error: &RawValue) -> bool {
    !matches!(error.get(), "false" | "\"\"" | "0" | "{}" | "[]")
}
