//! The id of an interrupt. It contains everything that identifies the permission request, so the server stores nothing
//! about it.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use tokenrail_domain::{ParseIdError, TurnNumber};

/// A permission request of an agent, and its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InterruptId {
    pub(crate) turn: TurnNumber,
    pub(crate) request: String,
}

impl fmt::Display for InterruptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.turn, self.request)
    }
}

impl Serialize for InterruptId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for InterruptId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let (turn, request) = text.split_once(':').ok_or(ParseIdError)?;
        let turn = TurnNumber(turn.parse().map_err(|_| ParseIdError)?);
        let read = Self { turn, request: request.to_owned() };
        if read.to_string() == text { Ok(read) } else { Err(ParseIdError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back() {
        let id = InterruptId { turn: TurnNumber(3), request: "2-1:x".into() };
        assert_eq!((id.to_string().as_str(), "3:2-1:x".parse()), ("3:2-1:x", Ok(id)));
        for wrong in ["", "3", "x:1", "03:1", "-1:1"] {
            assert_eq!(wrong.parse::<InterruptId>(), Err(ParseIdError), "{wrong}");
        }
    }
}
