//! Lines that a conversation adds to the spool by itself.
//!
//! Each is a JSON object that begins with [`PREFIX`]. The parsers of the spoken formats read them.

use serde::Serialize;
use serde_json::value::RawValue;

/// How each of these lines begins, and no line of a program.
pub(super) const PREFIX: &[u8] = b"{\"tokenrail\":\"";

/// The line of a program that waits for a further turn: its turn says nothing more.
pub(crate) const RESTS: &[u8] = b"{\"tokenrail\":\"rests\"}";

/// The line with which a further turn begins: the program is asked for it.
pub(crate) fn further_line(turn: u64) -> Vec<u8> {
    format!("{{\"tokenrail\":\"further\",\"turn\":{turn}}}").into_bytes()
}

/// A line of the conversation's own.
#[derive(Debug, Serialize)]
#[serde(tag = "tokenrail", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum OwnLine {
    /// A request went to the program: what an answer with this id answers.
    Sent { id: u64, method: &'static str },
    /// The program asks whether it may do something.
    PermissionRequest {
        request_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<String>,
        tool_name: String,
        input: Box<RawValue>,
        options: Vec<Choosable>,
    },
    /// The question is not open any more.
    PermissionResolved {
        request_id: String,
        /// None where nothing was chosen.
        #[serde(skip_serializing_if = "Option::is_none")]
        option_id: Option<String>,
        by: ResolvedBy,
    },
    /// The turn has ended, and the program waits for a further one: [`RESTS`].
    Rests {},
    /// The program is asked for a further turn: [`further_line`].
    Further { turn: u64 },
    /// Which agent takes a further turn: it has said so in an earlier one, whose lines nobody reads again.
    Agent { name: String },
    /// The program is asked to end its turn: what it says from here on may have been cut.
    Cancel {},
    /// The agent has forgotten its session, and begins another one.
    SessionLost {
        session_id: String,
        /// Why it cannot go on with it.
        text: String,
    },
    /// The turn cannot go on.
    Error { class: &'static str, code: &'static str, text: String },
}

/// One of the answers to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Choosable {
    pub(super) option_id: String,
    pub(super) name: String,
    pub(super) kind: OptionKind,
}

impl Choosable {
    pub(super) fn new(id: &str, name: &str, kind: OptionKind) -> Self {
        Self { option_id: id.to_owned(), name: name.to_owned(), kind }
    }
}

/// What an answer means, as the Agent Client Protocol has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OptionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
}

/// Who has settled a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ResolvedBy {
    User,
    /// Nobody has answered in time, or too many questions were open.
    Timeout,
    /// The turn was cancelled.
    Cancel,
    /// The program does not want to know any more.
    Agent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_reader_of_a_spool_looks_for_is_what_is_written() {
        assert_eq!(serde_json::to_vec(&OwnLine::Rests {}).unwrap(), RESTS);
        assert_eq!(serde_json::to_vec(&OwnLine::Further { turn: 4 }).unwrap(), further_line(4));
    }
}
