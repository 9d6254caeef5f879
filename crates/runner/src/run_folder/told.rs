//! What the server tells a conversation: answers to its questions, and further turns.

use serde::{Deserialize, Serialize};

/// The longest answer: what a pipe takes in one piece.
pub(crate) const ANSWER_BYTES: usize = 4 << 10;

/// An answer, as it comes through the run folder: one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) request: String,
    /// None where none of the options is chosen.
    pub(crate) option: Option<String>,
}

/// A further turn of a run, as it stands in the run folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FurtherTurn {
    pub(crate) turn: u64,
    pub(crate) prompt: String,
    /// Behind how many bytes of the spool its output begins; with the line that says that the program was asked.
    pub(crate) behind: u64,
    /// How many bytes of standard error are of earlier turns.
    pub(crate) stderr_begins: u64,
}

/// What comes through the FIFO of the run folder: one line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Told {
    /// There is a further turn. What is asked stands in a file, for it may be long.
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
        let answer: Told = serde_json::from_str(r#"{"request":"3-1","option":null}"#).unwrap();
        assert!(matches!(answer, Told::Answer(_)));
        let further: Told = serde_json::from_str(r#"{"further":4}"#).unwrap();
        assert!(matches!(further, Told::Further { further: 4 }));
    }
}
