//! Numbers and ids. Only an agent's id is random. Every other id is computed from it. An event therefore has the same
//! id live, on replay, after a restart and after compaction, and no id is stored.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// The id of an agent: a UUID version 7, so that ids sort by launch time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(Uuid);

impl AgentId {
    /// Builds the id from the launch time and 80 random bits. The upper six bits are not used.
    pub fn new(created_at: Timestamp, random: [u8; 10]) -> Self {
        Self(
            uuid::Builder::from_unix_timestamp_millis(created_at.0.max(0).unsigned_abs(), &random)
                .into_uuid(),
        )
    }

    pub fn as_uuid(self) -> Uuid {
        self.0
    }

    /// One turn of this agent.
    pub fn turn(self, number: TurnNumber) -> TurnId {
        TurnId { agent: self, number }
    }

    /// Takes an id as stored. The inverse of [`AgentId::as_uuid`].
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text is not an agent id. An agent id has 36 characters of hyphenated hexadecimal, as in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseIdError;

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an agent id")
    }
}

impl std::error::Error for ParseIdError {}

impl FromStr for AgentId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        // `Uuid` also parses braces, URNs and bare hexadecimal. An agent id has only one spelling.
        if text.len() != 36 {
            return Err(ParseIdError);
        }
        Uuid::try_parse(text).map(Self).map_err(|_| ParseIdError)
    }
}

/// The number of an event in its agent's journal: 1, 2, 3 … without a gap. As a cursor it means "everything after
/// this event". 0 is the cursor before the first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sequence(pub u64);

impl Sequence {
    /// The cursor before the first event.
    pub const START: Self = Self(0);
}

/// The number of a turn of its agent, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TurnNumber(pub u32);

impl TurnNumber {
    pub const FIRST: Self = Self(1);
}

/// One turn of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnId {
    pub agent: AgentId,
    pub number: TurnNumber,
}

/// What numbers that count from 1 have in common.
macro_rules! counted {
    ($number:ident) => {
        impl $number {
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }

            /// The previous number; as a cursor, the one after which this number is the next. 0 stays 0.
            #[must_use]
            pub fn before(self) -> Self {
                Self(self.0.saturating_sub(1))
            }
        }

        impl fmt::Display for $number {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counted!(Sequence);
counted!(TurnNumber);

/// The number of a message in its turn, from 0, in the order in which the parser opened the messages. Parsers are
/// deterministic, so the same output always gives the same numbers. A restarted server relies on that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MessageOrdinal(pub u32);

/// Milliseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Milliseconds from `earlier` to `self`. 0 if the clock went back.
    pub fn ms_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

/// The id that the deltas of a message and its complete event share: a UUID version 7. Its time is the agent's launch
/// time, since the id must be known before the first delta.
pub fn message_id(agent: AgentId, turn: TurnNumber, message: MessageOrdinal) -> Uuid {
    let launched_at = agent.0.as_u128() >> 80;
    // The upper bit keeps messages apart from the sequences of events.
    let salt = 1 << 63 | u64::from(turn.0) << 32 | u64::from(message.0);
    derive(agent, launched_at as u64, salt)
}

/// The message of the agent with this id: the inverse of [`message_id`]. `None` if the id is not a message id of this
/// agent.
///
/// An id lacks six bits of its input. For about one id in a thousand, this leaves two candidates. One of the two has a
/// turn number far beyond any that an agent reaches, so the smaller candidate is right.
pub fn message_of(agent: AgentId, id: Uuid) -> Option<(TurnNumber, MessageOrdinal)> {
    let high = id.as_u64_pair().0;
    if high >> 16 != agent.0.as_u64_pair().0 >> 16 {
        // A message id contains its agent's launch time.
        return None;
    }
    let messages = salts_of(agent, id).filter(|salt| salt >> 63 == 1).map(|salt| {
        let turn = TurnNumber((salt >> 32) as u32 & (u32::MAX >> 1));
        (turn, MessageOrdinal(salt as u32))
    });
    messages.filter(|(turn, message)| message_id(agent, *turn, *message) == id).min()
}

/// The event of the agent with this id: the inverse of [`event_id`](crate::event_id) for an event that does not
/// complete a message. `None` if the id is not such an id.
pub fn event_of(agent: AgentId, id: Uuid) -> Option<Sequence> {
    let at_ms = id.as_u64_pair().0 >> 16;
    let sequences = salts_of(agent, id).filter(|salt| salt >> 63 == 0);
    // As with messages, the smallest candidate is right.
    sequences.filter(|sequence| derive(agent, at_ms, *sequence) == id).min().map(Sequence)
}

/// The possible inputs of an id: one for each value of the six missing bits.
fn salts_of(agent: AgentId, id: Uuid) -> impl Iterator<Item = u64> {
    let (high, low) = id.as_u64_pair();
    // The first word of the random part, without the six bits for version and variant.
    let known = (high & 0xfff) << 48 | (low & u64::MAX >> 2) >> 16;
    let unknown = (0..64_u64).map(move |bits| known | bits >> 2 << 60 | (bits & 0b11) << 46);
    unknown.map(move |first| unmix(unmix(first) ^ agent.0.as_u64_pair().1))
}

/// A UUID version 7 with this time. Its random bits are computed from the agent and the salt.
pub(crate) fn derive(agent: AgentId, at_ms: u64, salt: u64) -> Uuid {
    let (high, low) = agent.0.as_u64_pair();
    let first = mix(low ^ mix(salt));
    let second = mix(first ^ high);
    let mut random = [0; 10];
    random[..8].copy_from_slice(&first.to_be_bytes());
    random[8..].copy_from_slice(&second.to_be_bytes()[..2]);
    uuid::Builder::from_unix_timestamp_millis(at_ms, &random).into_uuid()
}

/// The finalizer of `SplitMix64`: a bijection in which each input bit changes about half of the output bits.
/// Constants from Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The inverse of [`mix`]: the same steps in reverse, with the inverses of the factors modulo 2^64.
fn unmix(mut z: u64) -> u64 {
    z = (z ^ (z >> 31) ^ (z >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    z = (z ^ (z >> 27) ^ (z >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    (z ^ (z >> 30) ^ (z >> 60)).wrapping_sub(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn derived_ids_are_version_7_and_differ() {
        let agents =
            [AgentId::new(Timestamp(1_795_299_000_000), [7; 10]), AgentId::new(Timestamp(0), [0; 10])];
        let mut seen = HashSet::new();
        for agent in agents {
            for turn in 1..4 {
                for message in 0..500 {
                    let id = message_id(agent, TurnNumber(turn), MessageOrdinal(message));
                    assert_eq!(id.get_version_num(), 7);
                    let named = message_of(agent, id);
                    assert_eq!(named, Some((TurnNumber(turn), MessageOrdinal(message))));
                    assert!(seen.insert(id), "{id} twice");
                }
            }
            for sequence in 1..2000 {
                assert!(seen.insert(derive(agent, 5, sequence)), "sequence {sequence} twice");
            }
        }
    }

    #[test]
    fn an_id_that_is_no_message_of_the_agent_names_none() {
        let agent = AgentId::new(Timestamp(1_795_299_000_000), [7; 10]);
        let other = AgentId::new(Timestamp(1_795_299_000_000), [8; 10]);
        let id = message_id(agent, TurnNumber(3), MessageOrdinal(4));
        assert_eq!(message_of(other, id), None, "another agent, launched at the same time");
        assert_eq!(message_of(agent, agent.as_uuid()), None);
        assert_eq!(
            message_of(agent, derive(agent, 1_795_299_000_000, 5)),
            None,
            "an event that is no message"
        );
        assert_eq!(message_of(agent, Uuid::nil()), None);
    }

    #[test]
    fn an_id_has_one_spelling() {
        let id = AgentId::new(Timestamp(1), [1; 10]);
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "x", &format!("{{{id}}}"), &id.as_uuid().simple().to_string()] {
            assert_eq!(wrong.parse::<AgentId>(), Err(ParseIdError), "{wrong}");
        }
    }
}
