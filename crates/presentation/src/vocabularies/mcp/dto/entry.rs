//! Entries: what an agent has said and done, in few words, because a model has to read them.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokenrail_domain::cut;

use crate::vocabularies::turns::permission_notices::AcceptedAnswers;

/// The maximum length of a tool's input or result, and of the error of a turn. An agent's own text is longer.
pub(super) const FIELD_BYTES: usize = 4096;
/// The maximum length of a piece of a text, which cannot be cut: the next page begins after it.
pub(crate) const PIECE_BYTES: usize = 200_000;

/// One entry. Consecutive pieces of a text are one entry with the number of the last piece.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct EntryDto {
    /// The number of the event in the agent's journal.
    pub(crate) seq: u64,
    pub(crate) turn: u32,
    #[serde(flatten)]
    pub(crate) said: SaidDto,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum SaidDto {
    /// What a client said to the agent.
    Prompt {
        #[serde(flatten)]
        text: Shortened,
    },
    /// Text of the agent. `message` tells the messages of a turn apart.
    Text {
        message: u32,
        #[serde(flatten)]
        text: Shortened,
    },
    /// The agent withdraws the text of a message, and sends it again.
    Retracted {
        message: u32,
    },
    ToolCall {
        tool: String,
        call_id: String,
        #[serde(flatten)]
        input: Shortened,
    },
    ToolResult {
        call_id: String,
        is_error: bool,
        #[serde(flatten)]
        text: Shortened,
    },
    PermissionRequest(Box<AskedDto>),
    PermissionResolved {
        request_id: String,
    },
    Error {
        #[serde(flatten)]
        text: Shortened,
    },
    TurnEnd {
        outcome: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// What the agent has said, if no entry before has it: some agents send their text only with the result.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Whether the error or the text is cut.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
}

/// A text that may be cut.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Shortened {
    pub(crate) text: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl Shortened {
    /// A text that is not cut yet.
    pub(crate) fn whole(text: String) -> Self {
        Self { text, truncated: false }
    }

    fn shorten(&mut self, bytes: usize) {
        self.truncated |= cut(&mut self.text, bytes);
    }

    /// The text, with a mark if it is cut.
    pub(crate) fn shown(&self) -> String {
        format!("{}{}", self.text, if self.truncated { " […]" } else { "" })
    }
}

/// A request of an agent: it asks whether it may do something, or a question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct AskedDto {
    pub(crate) request_id: String,
    pub(crate) tool: String,
    #[serde(flatten)]
    pub(super) input: Shortened,
    pub(super) options: Vec<OptionDto>,
    /// What it accepts besides one option: `note`, `text`, `several`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    accepts: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OptionDto {
    #[serde(rename(deserialize = "optionId"))]
    pub(super) option_id: String,
    pub(super) name: String,
    kind: String,
}

/// The request as the journal has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AskedNotice {
    request_id: String,
    tool_name: String,
    #[serde(default)]
    input: Option<Box<RawValue>>,
    #[serde(default)]
    options: Vec<OptionDto>,
    #[serde(default)]
    accepts: AcceptedAnswers,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SettledNotice {
    request_id: String,
}

impl AskedDto {
    /// Reads the data of a notice, with as much of the input as an entry has. `None` if it is malformed.
    pub(crate) fn read(data: &str) -> Option<Self> {
        let mut asked = Self::whole(data)?;
        asked.input.shorten(FIELD_BYTES);
        Some(asked)
    }

    /// The same with the whole input.
    pub(crate) fn whole(data: &str) -> Option<Self> {
        let AskedNotice { request_id, tool_name, input, options, accepts } =
            serde_json::from_str(data).ok()?;
        let accepted =
            [("note", accepts.note), ("text", accepts.text), ("several", accepts.several)].into_iter();
        Some(Self {
            request_id,
            tool: tool_name,
            input: Shortened::whole(input.map(|input| input.get().to_owned()).unwrap_or_default()),
            options,
            accepts: accepted.filter_map(|(name, is_accepted)| is_accepted.then_some(name)).collect(),
        })
    }
}

impl AskedDto {
    /// Whether it accepts this besides one option.
    pub(super) fn accepts(&self, what: &str) -> bool {
        self.accepts.contains(&what)
    }

    /// Whether a form can have an answer.
    pub(super) fn fits_a_form(&self) -> bool {
        !self.options.is_empty() || self.accepts("text")
    }

    /// The options with which a note may be sent: those that reject.
    pub(super) fn with_note(&self) -> Vec<String> {
        let rejecting = self.options.iter().filter(|option| option.kind.starts_with("reject_"));
        let ids = rejecting.map(|option| option.option_id.clone());
        ids.filter(|_| self.accepts("note")).collect()
    }

    /// The option that rejects once.
    pub(super) fn rejecting(&self) -> Option<String> {
        let option = self.options.iter().find(|option| option.kind == "reject_once");
        option.map(|option| option.option_id.clone())
    }
}

/// The id of the request that a notice settles. `None` if it is malformed.
pub(crate) fn settled(data: &str) -> Option<String> {
    serde_json::from_str(data).ok().map(|SettledNotice { request_id }| request_id)
}

/// About what the names of an entry's fields take.
const FRAME_BYTES: usize = 100;

impl SaidDto {
    /// Cuts what is too long: the input or the result of a tool, and a text of more than `text_bytes`.
    pub(crate) fn shorten(&mut self, text_bytes: usize) {
        match self {
            Self::Prompt { text } | Self::Error { text } | Self::Text { text, .. } => {
                text.shorten(text_bytes);
            }
            Self::ToolCall { input: text, .. } | Self::ToolResult { text, .. } => text.shorten(FIELD_BYTES),
            Self::PermissionRequest(asked) => asked.input.shorten(FIELD_BYTES),
            Self::TurnEnd { error, text, truncated, .. } => {
                *truncated |= error.as_mut().is_some_and(|error| cut(error, FIELD_BYTES));
                *truncated |= text.as_mut().is_some_and(|text| cut(text, text_bytes));
            }
            Self::Retracted { .. } | Self::PermissionResolved { .. } => {}
        }
    }

    /// The text that [`SaidDto::shorten`] may cut. `None` if there is none.
    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Self::Prompt { text }
            | Self::Error { text }
            | Self::Text { text, .. }
            | Self::ToolCall { input: text, .. }
            | Self::ToolResult { text, .. } => Some(text.text),
            Self::PermissionRequest(asked) => Some(asked.input.text),
            Self::TurnEnd { error, text, .. } => error.or(text),
            Self::Retracted { .. } | Self::PermissionResolved { .. } => None,
        }
    }

    /// Its approximate size in JSON. A piece of a text that joins the entry before it adds only its text.
    pub(crate) fn bytes(&self, joins: bool) -> usize {
        let text = match self {
            Self::Text { text, .. } if joins => return text.text.len(),
            Self::Prompt { text } | Self::Error { text } | Self::Text { text, .. } => text.text.len(),
            Self::ToolCall { input, tool, call_id } => input.text.len() + tool.len() + call_id.len(),
            Self::ToolResult { text, call_id, .. } => text.text.len() + call_id.len(),
            Self::PermissionRequest(asked) => {
                let options = asked.options.iter().map(|option| option.option_id.len() + option.name.len());
                asked.input.text.len() + options.sum::<usize>()
            }
            Self::Retracted { .. } | Self::PermissionResolved { .. } => 0,
            Self::TurnEnd { error, text, .. } => {
                error.as_ref().map_or(0, String::len) + text.as_ref().map_or(0, String::len)
            }
        };
        FRAME_BYTES + text
    }
}
