//! What is used of a conversation. Clients send the whole of it with each message, and the agent knows it: so only the
//! newest message of the user is understood. What is before it is skipped, whatever is in it, in one pass and without
//! a copy.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use tokenrail_domain::AgentId;

use super::id::is_id;
use crate::error::{Code, Problem};
use crate::json::readable::{Stumble, stumble};

/// What is used of the messages of a conversation.
#[derive(Debug, Default)]
pub(super) struct History<'a> {
    /// The newest message of the user, and its place.
    pub(super) said: Option<(usize, &'a RawValue)>,
    /// The agent that the newest answer names, of those that name one.
    pub(super) agent: Option<AgentId>,
    /// Whether the message that was asked about is one of the user.
    pub(super) is_of_user: bool,
}

/// What the user says.
pub(super) struct Said {
    pub(super) id: Option<String>,
    pub(super) prompt: String,
}

/// As much of a message as is needed to know what it is.
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
    /// As older clients and people with `curl` write it.
    content: Option<String>,
}

#[derive(Deserialize)]
struct UiPart<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// Reads a list of messages, and looks for the one with the id `of`. After the newest of the user there must be none
/// that cannot be read: it might be his.
pub(super) fn read<'a>(messages: &'a RawValue, of: Option<&str>) -> Result<History<'a>, Problem> {
    let read = serde_json::Deserializer::from_str(messages.get()).deserialize_seq(Reader { of });
    let no_list = |_| Problem::field("messages", "must be a list of message parts");
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
    /// With the place of a message that cannot be read, after the newest of the user.
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

/// A message with its role.
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

/// The text of a message. What is no text would be lost, so it is refused.
pub(super) fn said(index: usize, message: &RawValue, bytes: usize) -> Result<Said, Problem> {
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
    Ok(Said { id, prompt })
}
