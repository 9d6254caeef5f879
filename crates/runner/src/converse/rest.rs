//! Between two turns: the program waits for a while for what it is asked next.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::Answer;
use crate::process::RunFolder;

/// The next turn of a run, as it stands in the run folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NextTurn {
    pub(crate) turn: u64,
    pub(crate) prompt: String,
    /// Where in the spool its output begins: how many bytes are of earlier turns.
    pub(crate) begins: u64,
}

/// What comes through the FIFO of the run folder: one line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Told {
    /// There is a next turn. What is asked stands in a file, for it may be long.
    Next {
        next: u64,
    },
    Answer(Answer),
}

/// Whether the program rests, and until when.
#[derive(Debug)]
pub(super) struct Rest {
    folder: RunFolder,
    /// The turn that runs, or has been the last.
    turn: u64,
    /// None where it does not rest at all: with its turn the program ends.
    most: Option<Duration>,
    until: Option<Instant>,
}

impl Rest {
    pub(super) fn new(folder: RunFolder, turn: u64, most_ms: u64) -> Self {
        let most = (0 < most_ms).then_some(Duration::from_millis(most_ms));
        Self { folder, turn, most, until: None }
    }

    /// Begins to rest; false where the program is not to.
    pub(super) fn begin(&mut self, now: Instant) -> bool {
        self.until = self.most.and_then(|most| now.checked_add(most));
        self.is_resting()
    }

    pub(super) fn end(&mut self) {
        self.until = None;
    }

    pub(super) fn is_resting(&self) -> bool {
        self.until.is_some()
    }

    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// The next turn, which begins with that; none where the program does not rest any more, or has taken it already.
    pub(super) fn take_next(&mut self) -> Option<NextTurn> {
        self.until?;
        // What cannot be read was not written to the end: whoever writes it says so again.
        let next: NextTurn = self.folder.read(RunFolder::NEXT).ok().flatten()?;
        if next.turn <= self.turn {
            return None;
        }
        (self.turn, self.until) = (next.turn, None);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(most_ms: u64) -> (tempfile::TempDir, Rest) {
        let folder = tempfile::tempdir().unwrap();
        let rest = Rest::new(RunFolder::at(folder.path()), 3, most_ms);
        (folder, rest)
    }

    fn write(rest: &Rest, turn: u64) {
        let next = NextTurn { turn, prompt: "And now?".to_owned(), begins: 7 };
        rest.folder.write(RunFolder::NEXT, &next).unwrap();
    }

    #[test]
    fn a_turn_is_taken_once_and_only_by_a_program_that_rests() {
        let (_folder, mut rest) = rest(1000);
        write(&rest, 4);
        assert_eq!(rest.take_next(), None, "its turn has not ended");
        assert!(rest.begin(Instant::now()));
        assert_eq!(rest.take_next().unwrap().turn, 4);
        assert!(!rest.is_resting());
        assert!(rest.begin(Instant::now()));
        assert_eq!(rest.take_next(), None, "it was asked that already");
        write(&rest, 5);
        rest.end();
        assert_eq!(rest.take_next(), None, "it rests no more");
    }

    #[test]
    fn a_program_that_is_not_to_rest_does_not() {
        let (_folder, mut rest) = rest(0);
        assert!(!rest.begin(Instant::now()));
        assert_eq!(rest.until(), None);
    }

    #[test]
    fn an_answer_is_told_from_a_next_turn() {
        let answer: Told = serde_json::from_str(r#"{"request":"3-1","option":null}"#).unwrap();
        assert!(matches!(answer, Told::Answer(_)));
        let next: Told = serde_json::from_str(r#"{"next":4}"#).unwrap();
        assert!(matches!(next, Told::Next { next: 4 }));
    }
}
