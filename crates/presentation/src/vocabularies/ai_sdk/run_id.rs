//! The id of one response.

use std::fmt;
use std::str::FromStr;

use tokenrail_domain::{AgentId, TurnNumber};

use crate::vocabularies::ai_sdk::fold::SdkVersion;

/// The id of one response: `run-<agent>-<turn>`, followed by `-v<version>` if the client has named its version. The id
/// contains the version because the index of a chunk is meaningful only for one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunId {
    pub(crate) agent: AgentId,
    pub(crate) turn: TurnNumber,
    pub(crate) version: SdkVersion,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run-{}-{}", self.agent, self.turn)?;
        match self.version.as_str() {
            Some(version) => write!(f, "-v{version}"),
            None => Ok(()),
        }
    }
}

/// The text is not a valid [`RunId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRunId;

impl FromStr for RunId {
    type Err = NoRunId;

    fn from_str(text: &str) -> Result<Self, NoRunId> {
        /// The length of an agent's id, in bytes.
        const AGENT: usize = 36;
        let (agent, rest) =
            text.strip_prefix("run-").and_then(|rest| rest.split_at_checked(AGENT)).ok_or(NoRunId)?;
        let rest = rest.strip_prefix('-').ok_or(NoRunId)?;
        let (turn, version) = match rest.split_once("-v") {
            Some((turn, version)) => (turn, Some(version)),
            None => (rest, None),
        };
        Ok(Self {
            agent: agent.parse().map_err(|_| NoRunId)?,
            turn: TurnNumber(turn.parse().map_err(|_| NoRunId)?),
            version: SdkVersion::from_name(version).map_err(|_| NoRunId)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_run_is_read_as_it_was_written() {
        let agent = "0195bd2f-0a00-7000-8000-000000000000";
        for version in SdkVersion::ALL {
            let id = RunId { agent: agent.parse().unwrap(), turn: TurnNumber(12), version };
            assert_eq!(id.to_string().parse(), Ok(id), "{id}");
        }
        for wrong in [
            "",
            "run-",
            "run-é",
            &format!("run-{agent}"),
            &format!("run-{agent}-"),
            &format!("run-{agent}-1-v8"),
            agent,
        ] {
            assert_eq!(wrong.parse::<RunId>(), Err(NoRunId), "{wrong}");
        }
    }
}
