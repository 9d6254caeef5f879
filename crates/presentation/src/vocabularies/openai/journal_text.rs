//! Texts that the journal has: where they are, and how they are read.

use std::borrow::Cow;

use tokenrail_domain::{ContentBlock, Event, EventBody, MessageOrdinal, Part, Sequence};

use crate::json::plain_text;
use crate::vocabularies::turns::said_words::WordKind;

/// A text in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JournalText {
    /// The first and the last event that have a part of it. Others may be between them.
    pub(crate) first: Sequence,
    pub(crate) last: Sequence,
    pub(crate) what: TextPart,
}

/// What an event has of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextPart {
    /// A delta of this part of a message.
    Words { message: MessageOrdinal, part: Part, kind: WordKind },
    /// Text or reasoning: this block of a complete message.
    Block(Part),
    /// A fragment of the input of a tool call. The first event says of which one.
    Fragment,
    /// The whole input of a tool call, or of this block of a complete message.
    Input(Option<Part>),
    /// The name of the tool of a call or a fragment, or of this block of a complete message.
    Tool(Option<Part>),
    /// The result of a tool call.
    Result,
    /// The text that comes with the result of a turn.
    Ending,
}

impl JournalText {
    /// A text that one event has.
    pub(crate) fn in_event(event: Sequence, what: TextPart) -> Self {
        Self { first: event, last: event, what }
    }
}

/// Reads a text.
#[derive(Debug)]
pub(crate) struct TextReader {
    text: JournalText,
    next: Sequence,
    /// The tool call whose fragments are read.
    call: Option<String>,
}

impl TextReader {
    pub(crate) fn new(text: JournalText) -> Self {
        Self { text, next: text.first, call: None }
    }

    /// The event that is read next. `None` after the last one.
    pub(crate) fn wanted(&self) -> Option<Sequence> {
        (self.next <= self.text.last).then_some(self.next)
    }

    /// Appends what these events have of the text, as the inside of a JSON string, until `out` has at least `enough`
    /// bytes. The first event must be the one that is wanted.
    pub(crate) fn read(&mut self, events: &[Event], enough: usize, out: &mut Vec<u8>) {
        for event in events {
            if enough <= out.len() || self.text.last < event.sequence {
                return;
            }
            self.next = event.sequence.next();
            if let Some(text) = self.part_in(event) {
                push_escaped(&text, out);
            }
        }
    }

    fn part_in<'e>(&mut self, event: &'e Event) -> Option<Cow<'e, str>> {
        let text: &str = match (self.text.what, &event.body) {
            (TextPart::Words { kind: WordKind::Text, .. }, EventBody::TextDelta { message, part, text })
            | (
                TextPart::Words { kind: WordKind::Reasoning, .. },
                EventBody::ReasoningDelta { message, part, text },
            ) if self.is_of((*message, *part)) => text,
            (TextPart::Block(part), body) => match block(body, part)? {
                ContentBlock::Text(text) | ContentBlock::Reasoning(text) => text,
                ContentBlock::ToolUse { .. } | ContentBlock::Other(_) => return None,
            },
            (TextPart::Fragment, EventBody::ToolInputDelta { call, fragment, .. })
                if self.call.get_or_insert_with(|| call.clone()) == call =>
            {
                fragment
            }
            (TextPart::Input(None), EventBody::ToolCall(made)) => made.input.as_str(),
            (TextPart::Tool(None), EventBody::ToolCall(made)) => &made.tool,
            (TextPart::Tool(None), EventBody::ToolInputDelta { tool, .. }) => tool.as_deref()?,
            (TextPart::Input(Some(part)) | TextPart::Tool(Some(part)), body) => match block(body, part)? {
                ContentBlock::ToolUse { input, .. } if matches!(self.text.what, TextPart::Input(_)) => {
                    input.as_str()
                }
                ContentBlock::ToolUse { tool, .. } => tool,
                _ => return None,
            },
            (TextPart::Result, EventBody::ToolResult(result)) => {
                return Some(Cow::Owned(plain_text(&result.content)));
            }
            (TextPart::Ending, EventBody::TurnResult(result)) => &result.text,
            _ => return None,
        };
        Some(Cow::Borrowed(text))
    }

    fn is_of(&self, place: (MessageOrdinal, Part)) -> bool {
        matches!(self.text.what, TextPart::Words { message, part, .. } if (message, part) == place)
    }
}

fn block(body: &EventBody, part: Part) -> Option<&ContentBlock> {
    match body {
        EventBody::Message(message) => message.blocks.get(part.0 as usize),
        _ => None,
    }
}

/// Appends the inside of a JSON string.
pub(crate) fn push_escaped(text: &str, out: &mut Vec<u8>) {
    let begin = out.len();
    // Writing text to memory cannot fail.
    if serde_json::to_writer(&mut *out, text).is_ok() {
        out.pop();
        out.remove(begin);
    }
}
