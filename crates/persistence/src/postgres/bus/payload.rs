//! The text of a NOTIFY: a version, who sends it, and one word for each hint, with spaces between.
//!
//! ```text
//! 1 019abc… h019abd…:345 a019abd… i3
//! ```
//!
//! | word | means |
//! | --- | --- |
//! | `h` AGENT `:` HEAD | [`Hint::Head`] |
//! | `c` AGENT, `a` AGENT, `d` AGENT | [`Hint::Created`], [`Hint::Changed`], [`Hint::Deleted`] |
//! | `e` NODE, `i` NODE | [`Hint::Errand`], [`Hint::Letter`] |
//! | `m` | hints were lost at the sender |
//! | `k` NUMBER | a check, for the sender itself |
//!
//! Ids are 32 hexadecimal digits, numbers are decimal. A change that an older program would misunderstand gets another
//! version. A program takes whatever it does not understand for lost hints.

use std::fmt::{self, Write as _};

use tokenrail_domain::{AgentId, NodeId, Sequence};
use tokenrail_ports::Hint;
use uuid::Uuid;

const VERSION: &str = "1";

/// A part of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Hint(Hint),
    /// The sender could not keep its hints.
    Missed,
    /// The sender checks whether it hears itself.
    Check(u64),
}

/// Writes as few payloads of at most `bytes_max` as hold these words, in their order.
pub(super) fn write(from: Uuid, words: &[Word], bytes_max: usize) -> Vec<String> {
    let begin = format!("{VERSION} {}", from.simple());
    let mut payloads = Vec::new();
    let mut payload = begin.clone();
    for word in words {
        let word = format!(" {word}");
        if bytes_max < payload.len() + word.len() && begin.len() < payload.len() {
            payloads.push(std::mem::replace(&mut payload, begin.clone()));
        }
        payload.push_str(&word);
    }
    payloads.push(payload);
    payloads
}

/// Who has sent a payload, and its words. `None` if it is of another version, or malformed.
pub(super) fn read(payload: &str) -> Option<(Uuid, Vec<Word>)> {
    let mut parts = payload.split(' ');
    if parts.next()? != VERSION {
        return None;
    }
    let from = parts.next()?.parse().ok()?;
    let words: Option<Vec<Word>> = parts.map(word).collect();
    Some((from, words?))
}

fn word(text: &str) -> Option<Word> {
    let mut letters = text.chars();
    let kind = letters.next()?;
    let rest = letters.as_str();
    let agent = || rest.parse().ok().map(AgentId::from_uuid);
    let node = || rest.parse().ok().map(NodeId);
    Some(match kind {
        'h' => {
            let (agent, head) = rest.split_once(':')?;
            let agent = AgentId::from_uuid(agent.parse().ok()?);
            Word::Hint(Hint::Head { agent, head: Sequence(head.parse().ok()?) })
        }
        'c' => Word::Hint(Hint::Created(agent()?)),
        'a' => Word::Hint(Hint::Changed(agent()?)),
        'd' => Word::Hint(Hint::Deleted(agent()?)),
        'e' => Word::Hint(Hint::Errand(node()?)),
        'i' => Word::Hint(Hint::Letter(node()?)),
        'm' if rest.is_empty() => Word::Missed,
        'k' => Word::Check(rest.parse().ok()?),
        _ => return None,
    })
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, agent) = match self {
            Self::Hint(Hint::Head { agent, head: _ }) => ('h', agent),
            Self::Hint(Hint::Created(agent)) => ('c', agent),
            Self::Hint(Hint::Changed(agent)) => ('a', agent),
            Self::Hint(Hint::Deleted(agent)) => ('d', agent),
            Self::Hint(Hint::Errand(node)) => return write!(f, "e{node}"),
            Self::Hint(Hint::Letter(node)) => return write!(f, "i{node}"),
            Self::Missed => return f.write_char('m'),
            Self::Check(number) => return write!(f, "k{number}"),
        };
        write!(f, "{kind}{}", agent.as_uuid().simple())?;
        match self {
            Self::Hint(Hint::Head { agent: _, head }) => write!(f, ":{head}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokenrail_domain::Timestamp;

    use super::*;

    fn some_words() -> Vec<Word> {
        let agent = AgentId::new(Timestamp(1_795_299_000_000), [9; 10]);
        vec![
            Word::Check(7),
            Word::Hint(Hint::Head { agent, head: Sequence(345) }),
            Word::Hint(Hint::Head { agent, head: Sequence(u64::MAX) }),
            Word::Hint(Hint::Created(agent)),
            Word::Hint(Hint::Changed(agent)),
            Word::Hint(Hint::Deleted(agent)),
            Word::Hint(Hint::Errand(NodeId(3))),
            Word::Hint(Hint::Letter(NodeId(u64::MAX))),
            Word::Missed,
        ]
    }

    const FROM: Uuid = Uuid::from_u128(0x019a_bcde_f012_7345_8678_9abc_def0_1234);

    #[test]
    fn a_payload_is_read_as_it_was_written() {
        let payloads = write(FROM, &some_words(), 7900);
        let [payload] = payloads.as_slice() else { panic!("{payloads:?}") };
        assert_eq!(read(payload), Some((FROM, some_words())));
    }

    /// Other versions of the program read it. A change of the text needs another version.
    #[test]
    fn the_text_of_version_1_stays() {
        let agent = AgentId::from_uuid(Uuid::from_u128(0x019a_0000_0000_7000_8000_0000_0000_0001));
        let words = [
            Word::Check(5),
            Word::Hint(Hint::Head { agent, head: Sequence(345) }),
            Word::Hint(Hint::Created(agent)),
            Word::Hint(Hint::Changed(agent)),
            Word::Hint(Hint::Deleted(agent)),
            Word::Hint(Hint::Errand(NodeId(3))),
            Word::Hint(Hint::Letter(NodeId(4))),
            Word::Missed,
        ];
        let id = "019a0000000070008000000000000001";
        let text = format!("1 019abcdef012734586789abcdef01234 k5 h{id}:345 c{id} a{id} d{id} e3 i4 m");
        assert_eq!(write(FROM, &words, 7900), [text]);
    }

    #[test]
    fn payloads_have_a_bound_and_keep_everything_in_order() {
        let agent = |n| AgentId::new(Timestamp(1_795_299_000_000), [n; 10]);
        let heads = (0..=255).map(|n| Word::Hint(Hint::Head { agent: agent(n), head: Sequence(u64::MAX) }));
        let words: Vec<Word> = heads.collect();
        for bytes_max in [1, 100, 150, 1000, 7900] {
            let payloads = write(FROM, &words, bytes_max);
            let longest = payloads.iter().map(String::len).max().unwrap();
            assert!(longest <= bytes_max.max(90), "{longest} of {bytes_max}");
            let read: Vec<Word> = payloads.iter().flat_map(|payload| read(payload).unwrap().1).collect();
            assert_eq!(read, words);
        }
        assert_eq!(write(FROM, &words, 7900).len(), 2);
    }

    #[test]
    fn what_makes_no_sense_is_not_read() {
        let id = "019a0000000070008000000000000001";
        assert_eq!(
            read(&format!("1 {id} e3")),
            Some((Uuid::try_parse(id).unwrap(), vec![Word::Hint(Hint::Errand(NodeId(3)))]))
        );
        let wrong = [
            String::new(),
            "1".to_owned(),
            "hello".to_owned(),
            format!("2 {id} e3"),
            format!("11 {id} e3"),
            format!("1 {id}0 e3"),
            format!("1 {id} e3 "),
            format!("1 {id}  e3"),
            format!("1 {id} e"),
            format!("1 {id} e-3"),
            format!("1 {id} e99999999999999999999"),
            format!("1 {id} z3"),
            format!("1 {id} m1"),
            format!("1 {id} h{id}"),
            format!("1 {id} h{id}:"),
            format!("1 {id} h{id}:x"),
            format!("1 {id} h:3"),
            format!("1 {id} ü"),
        ];
        for payload in wrong {
            assert_eq!(read(&payload), None, "{payload:?}");
        }
    }
}
