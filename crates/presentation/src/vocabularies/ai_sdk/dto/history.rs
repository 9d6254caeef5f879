//! Reads the parts of a conversation that the server uses. Clients send the whole conversation with each message,
//! although the agent already knows it. The server therefore uses only the newest user message, and the agent that the
//! responses name. It skips earlier messages, whatever they contain, in one pass and without a copy.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use tokenrail_domain::AgentId;

use super::id::is_id;
use crate::error::{Code, Problem};
use crate::json::readable::{Stumble, stumble};

/// The parts of a conversation that the server uses.
#[derive(Debug, Default)]
pub(super) struct History<'a> {
    /// The newest user message, and its index.
    pub(super) said: Option<(usize, &'a RawValue)>,
    /// The agent that the newest response names. Responses that name no agent are skipped.
    pub(super) agent: Option<AgentId>,
    /// Whether the message with the requested id is a user message.
    pub(super) is_of_user: bool,
}

/// A user message.
pub(super) struct SaidMessage {
    pub(super) id: Option<String>,
    pub(super) prompt: String,
}

/// The fields that are needed to classify a message.
#[derive(Deserialize)]
struct Glimpse<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    role: &'a RawValue,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    agent_id: &'a RawValue,
}

#[derive(Deserialize)]
struct UiMessage<'a> {
    id: Option<String>,
    #[serde(borrow)]
    parts: Option<Vec<UiPart<'a>>>,
    /// The text, as older clients and people with `curl` send it.
    content: Option<String>,
}

#[derive(Deserialize)]
struct UiPart<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// Reads a list of messages, and checks whether the message with the id `of` is a user message. Each message after the
/// newest user message must be readable, because an unreadable one might be a newer user message.
pub(super) fn read<'a>(messages: &'a RawValue, of: Option<&str>) -> Result<History<'a>, Problem> {
    let read = serde_json::Deserializer::from_str(messages.get()).deserialize_seq(Reader { of });
    let no_list = |_| Problem::field("messages", "must be a list of messages");
    let (history, unreadable) = read.map_err(no_list)?;
    match unreadable {
        Some(index) => Err(no_message(index)),
        None => Ok(history),
    }
}

fn no_message(index: usize) -> Problem {
    Problem::field(&format!("messages/{index}"), "must be a message")
}

struct Reader<'i> {
    of: Option<&'i str>,
}

impl<'de> Visitor<'de> for Reader<'_> {
    /// The number is the index of the first unreadable message after the newest user message.
    type Value = (History<'de>, Option<usize>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let (mut history, mut unreadable, mut index) = (History::default(), None, 0);
        while let Some(message) = list.next_element::<&'de RawValue>()? {
            match glimpse(message) {
                Some((role, Glimpse { id, .. })) if role == "user" => {
                    history.said = Some((index, message));
                    history.is_of_user |= self.of.is_some() && id.and_then(text).as_deref() == self.of;
                    unreadable = None;
                }
                Some((role, Glimpse { metadata, .. })) if role == "assistant" => {
                    history.agent = metadata.and_then(agent).or(history.agent);
                }
                Some(_) => {}
                None => unreadable = unreadable.or(Some(index)),
            }
            index += 1;
        }
        Ok((history, unreadable))
    }
}

/// Reads the role of a message and the fields that classify it. `None` if they cannot be read.
fn glimpse(message: &RawValue) -> Option<(String, Glimpse<'_>)> {
    let glimpse: Glimpse = serde_json::from_str(message.get()).ok()?;
    Some((text(glimpse.role)?, glimpse))
}

fn agent(metadata: &RawValue) -> Option<AgentId> {
    let Metadata { agent_id } = serde_json::from_str(metadata.get()).ok()?;
    text(agent_id)?.parse().ok()
}

fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// Returns the text of a message, whose JSON has at most `bytes` bytes. A message with a file is refused, because the
/// file would be lost. Other parts that are not text are skipped.
pub(super) fn said(index: usize, message: &RawValue, bytes: usize) -> Result<SaidMessage, Problem> {
    let message = message.get();
    if bytes < message.len() {
        return Err(Problem::new(Code::PayloadTooLarge, format!("must be at most {bytes} bytes")));
    }
    let wrong = |detail: &str| Problem::field(&format!("messages/{index}"), detail);
    let unread = || match stumble(message) {
        Some(Stumble::HalfPair) => wrong(&Stumble::HalfPair.to_string()),
        _ => no_message(index),
    };
    let UiMessage { id, parts, content } = serde_json::from_str(message).map_err(|_| unread())?;
    if id.as_deref().is_some_and(|id| is_id(id).is_some()) {
        return Err(wrong("the id must be 1 to 255 characters long"));
    }
    let mut texts: Vec<String> = content.into_iter().collect();
    if let Some(parts) = parts {
        if parts.iter().any(|part| part.kind == "file") {
            return Err(wrong("files are not supported; send text"));
        }
        let spoken = parts.iter().filter(|part| part.kind == "text").filter_map(|part| part.text);
        let spoken = spoken.map(|text| serde_json::from_str(text.get()));
        texts = spoken.collect::<Result<_, _>>().map_err(|_| unread())?;
    }
    let prompt = texts.join("\n");
    if prompt.trim().is_empty() {
        return Err(wrong("must contain text"));
    }
    Ok(SaidMessage { id, prompt })
}
