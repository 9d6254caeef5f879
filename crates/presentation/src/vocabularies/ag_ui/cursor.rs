//! The position of an event in its thread.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use tokenrail_domain::{ParseIdError, Sequence};

/// The position of an event of AG-UI in its thread: the event of the journal that it came from, and its number among
/// those that came from it, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadCursor {
    pub(crate) sequence: Sequence,
    pub(crate) number: u32,
}

impl ThreadCursor {
    /// Before everything.
    pub(crate) const START: Self = Self { sequence: Sequence::START, number: 0 };
}

impl fmt::Display for ThreadCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.sequence, self.number)
    }
}

impl Serialize for ThreadCursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for ThreadCursor {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let (sequence, number) = text.split_once('.').ok_or(ParseIdError)?;
        let read = Self {
            sequence: Sequence(sequence.parse().map_err(|_| ParseIdError)?),
            number: number.parse().map_err(|_| ParseIdError)?,
        };
        // A cursor has only one spelling. Sequences fit into the integers of the store.
        let is_good = read.to_string() == text && i64::try_from(read.sequence.0).is_ok();
        if is_good { Ok(read) } else { Err(ParseIdError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_has_only_one_spelling() {
        let cursor = ThreadCursor { sequence: Sequence(12), number: 3 };
        assert_eq!((cursor.to_string().as_str(), "12.3".parse()), ("12.3", Ok(cursor)));
        for wrong in
            ["", ".", "1", "1.", ".1", "01.1", "1.01", "+1.1", "1.1.1", "-1.1", "99999999999999999999.1"]
        {
            assert_eq!(wrong.parse::<ThreadCursor>(), Err(ParseIdError), "{wrong}");
        }
        let later = ThreadCursor { sequence: Sequence(12), number: 10 };
        assert!(cursor < later && later < ThreadCursor { sequence: Sequence(13), number: 1 });
    }
}
