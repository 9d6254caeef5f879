//! Messages from the server to the `converse` process: answers to permission requests, and further turns.

use serde::{Deserialize, Serialize};

/// The longest message: a pipe takes this many bytes in one piece.
pub(crate) const ANSWER_BYTES: usize = 4 << 10;

/// An answer to a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) request: String,
    /// `None` if none of the options is chosen.
    pub(crate) option: Option<String>,
}

/// A further run in the process of an earlier one: the content of `further.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FurtherTurn {
    /// The number of the run: the turn that it was started for.
    pub(crate) turn: u64,
    pub(crate) prompt: String,
    /// The offset in the spool at which the earlier turn ended. The output of this turn begins after it, with the line
    /// `OwnLine::Further`.
    pub(crate) behind: u64,
    /// How many bytes of standard error belong to earlier turns.
    pub(crate) stderr_begins: u64,
}

/// A message through the FIFO `answers`: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ConverseMessage {
    /// There is a further turn. Its prompt is in `further.json`, because it may be long.
    Further {
        further: u64,
    },
    Answer(Answer),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_from_a_further_turn() {
        let answer: ConverseMessage = serde_json::from_str(r#"{"request":"3-1","option":null}"#).unwrap();
        assert!(matches!(answer, ConverseMessage::Answer(_)));
        let further: ConverseMessage = serde_json::from_str(r#"{"further":4}"#).unwrap();
        assert!(matches!(further, ConverseMessage::Further { further: 4 }));
    }
}
