//! The ids of a response and of its items. They contain everything that identifies the turn, so the server stores
//! nothing about a response, and finds the conversation again when a client repeats its items.

use std::fmt;
use std::str::FromStr;

use tokenrail_domain::{AgentId, ParseIdError, TurnNumber};
use uuid::Uuid;

const PREFIX: &str = "resp_";
/// The prefix of the same turn as a chat completion.
const COMPLETION: &str = "chatcmpl-";
/// The length of an agent's id without hyphens, in characters.
const AGENT_CHARS: usize = 32;
/// The length of the number of a turn, in hexadecimal digits.
const TURN_CHARS: usize = 8;

/// The prefixes of the ids of items.
pub(crate) const MESSAGE: &str = "msg_";
pub(crate) const REASONING: &str = "rs_";
pub(crate) const CALL: &str = "mcp_";

/// A response: a turn of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResponseId {
    pub(crate) agent: AgentId,
    pub(crate) turn: TurnNumber,
}

impl ResponseId {
    /// The response before this one in its conversation.
    pub(crate) fn previous(self) -> Option<Self> {
        (1 < self.turn.0).then(|| Self { turn: self.turn.before(), ..self })
    }

    /// The id of the same turn as a chat completion.
    pub(crate) fn completion(self) -> String {
        format!("{COMPLETION}{}", self.bare())
    }

    /// The turn of a chat completion.
    ///
    /// # Errors
    /// [`ParseIdError`] if the id is not an id of a chat completion.
    pub(crate) fn of_completion(id: &str) -> Result<Self, ParseIdError> {
        Self::read(id.strip_prefix(COMPLETION).ok_or(ParseIdError)?)
    }

    /// The id of an item of this response: its prefix, the response, and its position.
    pub(crate) fn item(self, prefix: &str, position: usize) -> String {
        format!("{prefix}{}_{position}", self.bare())
    }

    /// The response of which an item is a part. `None` if the id is not an id of an item.
    pub(crate) fn of_item(id: &str) -> Option<Self> {
        let rest = [MESSAGE, REASONING, CALL].into_iter().find_map(|prefix| id.strip_prefix(prefix))?;
        let (response, position) = rest.split_once('_')?;
        position.parse::<u32>().ok()?;
        Self::read(response).ok()
    }

    fn bare(self) -> String {
        format!("{}{:08x}", self.agent.as_uuid().simple(), self.turn.0)
    }

    fn read(bare: &str) -> Result<Self, ParseIdError> {
        let (agent, turn) = bare.split_at_checked(AGENT_CHARS).ok_or(ParseIdError)?;
        if turn.len() != TURN_CHARS {
            return Err(ParseIdError);
        }
        let agent = Uuid::try_parse(agent).map_err(|_| ParseIdError)?;
        let turn = u32::from_str_radix(turn, 16).map_err(|_| ParseIdError)?;
        let id = Self { agent: AgentId::from_uuid(agent), turn: TurnNumber(turn) };
        // An id has only one spelling.
        if id.bare() == bare { Ok(id) } else { Err(ParseIdError) }
    }
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.bare())
    }
}

impl FromStr for ResponseId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        Self::read(text.strip_prefix(PREFIX).ok_or(ParseIdError)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_has_one_spelling() {
        let agent = AgentId::new(tokenrail_domain::Timestamp(1_795_299_000_000), [7; 10]);
        for turn in [1, 12, u32::MAX] {
            let id = ResponseId { agent, turn: TurnNumber(turn) };
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(ResponseId::of_completion(&id.completion()), Ok(id));
            assert_eq!(ResponseId::of_completion(&id.to_string()), Err(ParseIdError));
            for prefix in [MESSAGE, REASONING, CALL] {
                assert_eq!(ResponseId::of_item(&id.item(prefix, 3)), Some(id));
            }
        }
        let id = ResponseId { agent, turn: TurnNumber(10) };
        assert_eq!(id.previous(), Some(ResponseId { turn: TurnNumber(9), ..id }));
        assert_eq!(ResponseId { turn: TurnNumber(1), ..id }.previous(), None);
        let good = id.to_string();
        for wrong in
            ["", "resp_", "resp_é", &good[5..], &good[..44], &format!("{good}0"), &good.to_uppercase()]
        {
            assert_eq!(wrong.parse::<ResponseId>(), Err(ParseIdError), "{wrong}");
        }
        let upper = good.replace("0000000a", "0000000A");
        assert_eq!(upper.parse::<ResponseId>(), Err(ParseIdError));
        for wrong in ["msg_1", "msg_", "rs_x_1", &good, &format!("{}x", id.item(MESSAGE, 1))] {
            assert_eq!(ResponseId::of_item(wrong), None, "{wrong}");
        }
    }
}
