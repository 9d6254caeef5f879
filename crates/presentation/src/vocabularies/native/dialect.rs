//! The dialects of the WebSocket, by name.

use crate::error::{Code, FieldProblem, Problem};
use crate::query::{Query, refused_name};

/// A set of WebSocket frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Dialect {
    #[default]
    Agent,
    Message,
    Stream,
}

impl Dialect {
    const ALL: [Self; 3] = [Self::Agent, Self::Message, Self::Stream];

    fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Message => "message",
            Self::Stream => "stream",
        }
    }

    /// Returns the dialect with this name.
    ///
    /// # Errors
    /// [`Problem`] with the unknown name and the known names.
    pub(crate) fn from_name(name: &str) -> Result<Self, Problem> {
        let dialect = Self::ALL.into_iter().find(|dialect| dialect.as_str() == name);
        dialect.ok_or_else(|| unknown(name, &Self::ALL.map(Self::as_str)))
    }

    /// Checks that a request for events over HTTP names no unsupported dialect. Over HTTP there is only one.
    ///
    /// # Errors
    /// [`Problem`] with the unknown name and the one known name.
    pub(crate) fn over_http(query: &Query) -> Result<(), Problem> {
        match query.get("dialect") {
            Some(name) if name != Self::Agent.as_str() => Err(unknown(name, &[Self::Agent.as_str()])),
            _ => Ok(()),
        }
    }
}

fn unknown(name: &str, known: &[&str]) -> Problem {
    let (name, known) = (refused_name(name), known.join(", "));
    let detail = format!("unknown dialect {name}; must be one of: {known}");
    let error = FieldProblem { pointer: None, parameter: Some("dialect"), detail };
    let sentence = format!("unknown dialect {name}; supported dialects: {known}");
    Problem { errors: vec![error], ..Problem::new(Code::DialectUnknown, sentence) }
}
