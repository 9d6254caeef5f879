//! Offsets: positions in a stream.

use std::fmt;

use serde::{Serialize, Serializer};
use tokenrail_domain::Sequence;

/// The length of an offset. All offsets have the same length, so that clients can compare them as text.
const DIGITS: usize = 20;

/// The position after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offset(pub(super) Sequence);

/// Where a client begins to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadFrom {
    After(Offset),
    /// Only what comes later.
    Now,
}

impl ReadFrom {
    pub(super) const START: Self = Self::After(Offset(Sequence::START));

    /// Reads the parameter `offset`. `None` if the server has never returned it.
    pub(super) fn read(text: &str) -> Option<Self> {
        match text {
            "-1" => Some(Self::START),
            "now" => Some(Self::Now),
            // A position has only one spelling.
            _ if text.len() != DIGITS || !text.bytes().all(|byte| byte.is_ascii_digit()) => None,
            _ => text.parse().ok().map(|number| Self::After(Offset(Sequence(number)))),
        }
    }

    /// The number after which to read. `None` for the newest.
    pub(super) fn since(self) -> Option<Sequence> {
        match self {
            Self::After(Offset(sequence)) => Some(sequence),
            Self::Now => None,
        }
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$}", self.0.0)
    }
}

impl Serialize for Offset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_reads_back_has_one_spelling_and_sorts_as_text() {
        let numbers = [0, 1, 9, 10, 99, 100, u64::MAX - 1, u64::MAX];
        let texts = numbers.map(|number| Offset(Sequence(number)).to_string());
        assert!(texts.is_sorted());
        for (number, text) in numbers.into_iter().zip(&texts) {
            let read = ReadFrom::read(text);
            assert_eq!(read, Some(ReadFrom::After(Offset(Sequence(number)))), "{text}");
            assert_eq!(read.unwrap().since(), Some(Sequence(number)));
        }
        assert_eq!(ReadFrom::read("-1"), Some(ReadFrom::START));
        assert_eq!(ReadFrom::read("now").unwrap().since(), None);
        let long = format!("0{}", texts[1]);
        for wrong in
            ["", "1", "-2", "NOW", "0000000000000000000x", "99999999999999999999", &texts[1][1..], &long]
        {
            assert_eq!(ReadFrom::read(wrong), None, "{wrong}");
        }
    }
}
