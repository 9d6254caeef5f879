//! One event of an exported agent, to write and to read.

mod result;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokenrail_domain::{
    CompleteMessage, ContentBlock, Event, EventBody, MessageOrdinal, MessageOutcome, Notice, Part, Sequence,
    ToolCall, ToolResult, TurnNumber, UnifiedPatch, Usage,
};

use self::result::{ErrorBody, ResultBody};
use super::image::ArchivedSummary;
use super::{At, GivenJson};
use crate::hex::hex;
use crate::vocabularies::prompts::prompt_images::ImageLimits;

/// One event of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ArchivedEvent {
    sequence: u64,
    turn: u32,
    at: At,
    body: Body,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<Raw>,
}

/// Raw lines: text, or hexadecimal digits if the bytes are not UTF-8.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Raw {
    Text(String),
    Bytes { hex: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Body {
    UserMessage {
        content: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<ArchivedSummary>,
    },
    TextDelta {
        message: u32,
        part: u32,
        text: String,
    },
    ReasoningDelta {
        message: u32,
        part: u32,
        text: String,
    },
    ToolInputDelta {
        message: u32,
        part: u32,
        call: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        fragment: String,
    },
    Message {
        message: u32,
        blocks: Vec<Block>,
        #[serde(skip_serializing_if = "Option::is_none")]
        first_sequence: Option<u64>,
        outcome: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    ToolCall {
        call: String,
        tool: String,
        input: GivenJson,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    ToolResult {
        call: String,
        content: GivenJson,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
        /// A unified diff. Archives of earlier versions have none.
        #[serde(skip_serializing_if = "Option::is_none")]
        patch: Option<String>,
    },
    Usage {
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_reason: Option<String>,
        usage: GivenJson,
    },
    Notice {
        subtype: String,
        data: GivenJson,
    },
    Abandoned {
        message: u32,
    },
    Error(ErrorBody),
    Result(Box<ResultBody>),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Block {
    Text(String),
    Reasoning(String),
    ToolUse { call: String, tool: String, input: GivenJson },
    Other(GivenJson),
}

impl From<&Event> for ArchivedEvent {
    fn from(event: &Event) -> Self {
        let Event { sequence, at, turn, body, raw } = event;
        let raw = raw.as_ref().map(|raw| match std::str::from_utf8(raw) {
            Ok(text) => Raw::Text(text.to_owned()),
            Err(_) => Raw::Bytes { hex: hex(raw) },
        });
        Self { sequence: sequence.0, turn: turn.0, at: At(*at), body: body.into(), raw }
    }
}

impl ArchivedEvent {
    /// Returns the event.
    ///
    /// # Errors
    /// What is wrong with the event.
    pub(crate) fn into_event(self, limits: ImageLimits) -> Result<Event, String> {
        let Self { sequence, turn, at, body, raw } = self;
        if let Body::UserMessage { images, .. } = &body {
            limits.check_count(images.len()).map_err(|wrong| format!("images {wrong}"))?;
        }
        let raw = match raw {
            None => None,
            Some(Raw::Text(text)) => Some(Bytes::from(text)),
            Some(Raw::Bytes { hex }) => Some(unhex(&hex).ok_or("raw.hex must be hexadecimal")?),
        };
        let (sequence, turn, at, body) = (Sequence(sequence), TurnNumber(turn), at.0, body.into_body()?);
        Ok(Event { sequence, at, turn, body, raw })
    }
}

fn unhex(digits: &str) -> Option<Bytes> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

impl From<&EventBody> for Body {
    fn from(body: &EventBody) -> Self {
        match body {
            EventBody::UserMessage { content, images } => Self::UserMessage {
                content: content.clone(),
                images: images.iter().map(ArchivedSummary::of).collect(),
            },
            EventBody::TextDelta { message, part, text } => {
                Self::TextDelta { message: message.0, part: part.0, text: text.clone() }
            }
            EventBody::ReasoningDelta { message, part, text } => {
                Self::ReasoningDelta { message: message.0, part: part.0, text: text.clone() }
            }
            EventBody::ToolInputDelta { message, part, call, tool, fragment } => Self::ToolInputDelta {
                message: message.0,
                part: part.0,
                call: call.clone(),
                tool: tool.clone(),
                fragment: fragment.clone(),
            },
            EventBody::Message(message) => (&**message).into(),
            EventBody::ToolCall(made) => {
                let ToolCall { call, tool, input, parent_call } = (**made).clone();
                Self::ToolCall { call, tool, input: GivenJson(input), parent: parent_call }
            }
            EventBody::ToolResult(result) => {
                let ToolResult { call, content, is_error, parent_call, patch } = (**result).clone();
                let patch = patch.map(|patch| patch.as_str().to_owned());
                Self::ToolResult { call, content: GivenJson(content), is_error, parent: parent_call, patch }
            }
            EventBody::Usage(usage) => {
                let Usage { stop_reason, usage } = (**usage).clone();
                Self::Usage { stop_reason, usage: GivenJson(usage) }
            }
            EventBody::Notice(notice) => {
                let Notice { subtype, data } = (**notice).clone();
                Self::Notice { subtype, data: GivenJson(data) }
            }
            EventBody::Abandoned { message } => Self::Abandoned { message: message.0 },
            EventBody::Error(error) => Self::Error((&**error).into()),
            EventBody::TurnResult(result) => Self::Result(Box::new((&**result).into())),
        }
    }
}

impl From<&CompleteMessage> for Body {
    fn from(complete: &CompleteMessage) -> Self {
        let CompleteMessage { message, blocks, first_sequence, outcome, parent_call } = complete;
        let block = |block: &ContentBlock| match block.clone() {
            ContentBlock::Text(text) => Block::Text(text),
            ContentBlock::Reasoning(text) => Block::Reasoning(text),
            ContentBlock::ToolUse { call, tool, input } => {
                Block::ToolUse { call, tool, input: GivenJson(input) }
            }
            ContentBlock::Other(given) => Block::Other(GivenJson(given)),
        };
        Self::Message {
            message: message.0,
            blocks: blocks.iter().map(block).collect(),
            first_sequence: first_sequence.map(|first| first.0),
            outcome: outcome.as_str().to_owned(),
            parent: parent_call.clone(),
        }
    }
}

fn read_patch(text: &str) -> Result<UnifiedPatch, String> {
    let longest = UnifiedPatch::BYTES_MAX;
    UnifiedPatch::read(text).ok_or_else(|| {
        format!("patch must be a unified diff with file names, and at most {longest} bytes long")
    })
}

impl Body {
    fn into_body(self) -> Result<EventBody, String> {
        Ok(match self {
            Self::UserMessage { content, images } => {
                let images = images.into_iter().map(ArchivedSummary::into_image);
                EventBody::UserMessage { content, images: images.collect::<Result<_, _>>()? }
            }
            Self::TextDelta { message, part, text } => {
                EventBody::TextDelta { message: MessageOrdinal(message), part: Part(part), text }
            }
            Self::ReasoningDelta { message, part, text } => {
                EventBody::ReasoningDelta { message: MessageOrdinal(message), part: Part(part), text }
            }
            Self::ToolInputDelta { message, part, call, tool, fragment } => {
                let (message, part) = (MessageOrdinal(message), Part(part));
                EventBody::ToolInputDelta { message, part, call, tool, fragment }
            }
            Self::Message { message, blocks, first_sequence, outcome, parent } => {
                EventBody::Message(Box::new(CompleteMessage {
                    message: MessageOrdinal(message),
                    blocks: blocks.into_iter().map(ContentBlock::from).collect(),
                    first_sequence: first_sequence.map(Sequence),
                    outcome: MessageOutcome::from_name(&outcome).ok_or("unknown outcome")?,
                    parent_call: parent,
                }))
            }
            Self::ToolCall { call, tool, input, parent } => {
                EventBody::ToolCall(Box::new(ToolCall { call, tool, input: input.0, parent_call: parent }))
            }
            Self::ToolResult { call, content, is_error, parent, patch } => {
                let patch = patch.map(|text| read_patch(&text)).transpose()?;
                let result = ToolResult { call, content: content.0, is_error, parent_call: parent, patch };
                EventBody::ToolResult(Box::new(result))
            }
            Self::Usage { stop_reason, usage } => {
                EventBody::Usage(Box::new(Usage { stop_reason, usage: usage.0 }))
            }
            Self::Notice { subtype, data } => EventBody::Notice(Box::new(Notice { subtype, data: data.0 })),
            Self::Abandoned { message } => EventBody::Abandoned { message: MessageOrdinal(message) },
            Self::Error(error) => EventBody::Error(Box::new(error.into_error()?)),
            Self::Result(result) => EventBody::TurnResult(Box::new(result.into_result()?)),
        })
    }
}

impl From<Block> for ContentBlock {
    fn from(block: Block) -> Self {
        match block {
            Block::Text(text) => Self::Text(text),
            Block::Reasoning(text) => Self::Reasoning(text),
            Block::ToolUse { call, tool, input } => Self::ToolUse { call, tool, input: input.0 },
            Block::Other(given) => Self::Other(given.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokenrail_domain::{Timestamp, TurnOutcome};
    use tokenrail_ports::testing::samples::{every_body, result};

    use super::*;

    #[test]
    fn a_patch_that_is_none_is_refused_and_a_result_without_one_is_read() {
        let limits = ImageLimits { prompt_images: 8, image_bytes: 5 << 20, prompt_image_bytes: 20 << 20 };
        let read = |patch: &str| {
            let body = format!(r#"{{"toolResult":{{"call":"c","content":"ok","isError":false{patch}}}}}"#);
            let event = format!(r#"{{"sequence":1,"turn":1,"at":"2026-11-26T05:49:27.000Z","body":{body}}}"#);
            let event: ArchivedEvent = serde_json::from_str(&event).unwrap();
            event.into_event(limits).map(|event| event.body)
        };
        let EventBody::ToolResult(result) = read("").unwrap() else { panic!("no result") };
        assert_eq!(result.patch, None);
        assert!(read(r#","patch":"hello""#).unwrap_err().starts_with("patch must be a unified diff"));
    }

    #[test]
    fn every_event_reads_back_as_it_was() {
        let mut bodies = every_body();
        bodies.push(EventBody::TurnResult(Box::new(result(TurnOutcome::Failed))));
        let limits = ImageLimits { prompt_images: 8, image_bytes: 5 << 20, prompt_image_bytes: 20 << 20 };
        let raws = [None, Some(&b"{\"a\":1}\n\xff\x00"[..]), Some(b"plain \"text\"")];
        for (number, body) in bodies.into_iter().enumerate() {
            for raw in raws {
                let event = Event {
                    sequence: Sequence(number as u64),
                    at: Timestamp(1_795_299_000_007),
                    turn: TurnNumber(3),
                    body: body.clone(),
                    raw: raw.map(Bytes::from_static),
                };
                let text = serde_json::to_string(&ArchivedEvent::from(&event)).unwrap();
                let back: ArchivedEvent = serde_json::from_reader(text.as_bytes()).unwrap();
                assert_eq!(back.into_event(limits).unwrap(), event, "{text}");
            }
        }
    }
}
