//! The id of a run. It contains everything that identifies the run, so the server stores nothing about it.

use std::fmt;
use std::str::FromStr;

use tokenrail_domain::{AgentId, ParseIdError, TurnNumber};

const PREFIX: &str = "run-";
const TOKENS: &str = "-tokens";
/// The length of an agent's id, in characters.
const ID_CHARS: usize = 36;

/// A run: a turn of an agent, and the form in which its stream started. The id contains the form, because a client that
/// resumes the stream need not name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunId {
    pub(crate) agent: AgentId,
    pub(crate) turn: TurnNumber,
    /// Whether text is sent in pieces as it arrives, instead of in whole items.
    pub(crate) tokens: bool,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agent, turn, tokens } = self;
        write!(f, "{PREFIX}{agent}-{turn}{}", if *tokens { TOKENS } else { "" })
    }
}

impl FromStr for RunId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let rest = text.strip_prefix(PREFIX).ok_or(ParseIdError)?;
        let (rest, tokens) = rest.strip_suffix(TOKENS).map_or((rest, false), |rest| (rest, true));
        let (agent, turn) = rest.split_at_checked(ID_CHARS).ok_or(ParseIdError)?;
        let turn = turn.strip_prefix('-').and_then(|turn| turn.parse().ok()).ok_or(ParseIdError)?;
        let run = Self { agent: agent.parse()?, turn: TurnNumber(turn), tokens };
        // An id has only one spelling.
        if run.to_string() == text { Ok(run) } else { Err(ParseIdError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_reads_back_and_has_one_spelling() {
        let agent = AgentId::new(tokenrail_domain::Timestamp(1_795_299_000_000), [7; 10]);
        for (turn, tokens) in [(1, true), (1, false), (4_000_000_000, true)] {
            let run = RunId { agent, turn: TurnNumber(turn), tokens };
            assert_eq!(run.to_string().parse(), Ok(run));
        }
        for wrong in [
            "",
            "run-",
            "run-x",
            &format!("run-{agent}"),
            &format!("run-{agent}-"),
            &format!("run-{agent}-01"),
            &format!("run-{agent}-+1"),
            &format!("{agent}-1"),
            &format!("run-{agent}-1-tokens-tokens"),
        ] {
            assert_eq!(wrong.parse::<RunId>(), Err(ParseIdError), "{wrong}");
        }
    }
}
