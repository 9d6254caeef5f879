//! Folds events into the messages that a user sees.

use std::collections::BTreeMap;

use crate::{
    CompleteMessage, ContentBlock, EventBody, JsonText, MessageOrdinal, MessageOutcome, Part, Sequence,
};

/// The open messages of one turn: messages that have deltas and are not complete.
///
/// It is a fold over recorded events, so a restarted server rebuilds the same state from the journal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Assembler {
    open: BTreeMap<MessageOrdinal, OpenMessage>,
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct OpenMessage {
    first_sequence: Sequence,
    /// A part with deltas of two kinds is kept as two parts, so that no delta is lost or taken for another kind.
    parts: BTreeMap<(Part, Kind), OpenPart>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Text,
    Reasoning,
    ToolUse,
}

#[derive(Debug, Clone, PartialEq)]
enum OpenPart {
    Text(String),
    Reasoning(String),
    ToolUse { call: String, tool: String, fragments: String, input: Option<JsonText> },
}

impl Assembler {
    /// Applies one recorded event.
    pub fn record(&mut self, sequence: Sequence, body: &EventBody) {
        match body {
            EventBody::TextDelta { message, part, text } => {
                let open =
                    self.part(sequence, *message, (*part, Kind::Text), || OpenPart::Text(String::new()));
                if let OpenPart::Text(so_far) = open {
                    so_far.push_str(text);
                }
                self.bytes += text.len();
            }
            EventBody::ReasoningDelta { message, part, text } => {
                let place = (*part, Kind::Reasoning);
                let open = self.part(sequence, *message, place, || OpenPart::Reasoning(String::new()));
                if let OpenPart::Reasoning(so_far) = open {
                    so_far.push_str(text);
                }
                self.bytes += text.len();
            }
            EventBody::ToolInputDelta { message, part, call, tool, fragment } => {
                let open = self.part(sequence, *message, (*part, Kind::ToolUse), || OpenPart::ToolUse {
                    call: call.clone(),
                    tool: tool.clone().unwrap_or_default(),
                    fragments: String::new(),
                    input: None,
                });
                if let OpenPart::ToolUse { fragments, .. } = open {
                    fragments.push_str(fragment);
                }
                self.bytes += fragment.len();
            }
            EventBody::ToolCall(made) => self.tool_call(&made.call, &made.input),
            EventBody::Message(complete) => self.forget(complete.message),
            EventBody::Abandoned { message } => self.forget(*message),
            EventBody::TurnResult(_) => *self = Self::default(),
            EventBody::UserMessage { .. }
            | EventBody::ToolResult(_)
            | EventBody::Usage(_)
            | EventBody::Notice(_)
            | EventBody::Error(_) => {}
        }
    }

    /// The message as it would be if it ended now. `None` if the message is not open. It stays open until its
    /// [`EventBody::Message`] is recorded.
    pub fn complete(&self, message: MessageOrdinal, outcome: MessageOutcome) -> Option<CompleteMessage> {
        self.complete_with(message, outcome, Vec::new())
    }

    /// Like [`Assembler::complete`], and adds the parts that had no deltas.
    pub fn complete_with(
        &self,
        message: MessageOrdinal,
        outcome: MessageOutcome,
        rest: Vec<(Part, ContentBlock)>,
    ) -> Option<CompleteMessage> {
        let open = self.open.get(&message)?;
        let said = open.parts.iter().map(|((part, _), said)| (*part, said.to_block()));
        let mut blocks: Vec<(Part, ContentBlock)> = said.collect();
        let unsaid: BTreeMap<Part, ContentBlock> = rest.into_iter().rev().collect();
        blocks.extend(unsaid.into_iter().filter(|(part, _)| !open.has_said(*part)));
        blocks.sort_by_key(|(part, _)| *part);
        Some(CompleteMessage {
            message,
            blocks: blocks.into_iter().map(|(_, block)| block).collect(),
            first_sequence: Some(open.first_sequence),
            outcome,
            parent_call: None,
        })
    }

    /// The open messages, oldest first.
    pub fn open_messages(&self) -> impl Iterator<Item = MessageOrdinal> + '_ {
        self.open.keys().copied()
    }

    /// The sequence of the oldest delta of any open message.
    pub fn first_open_sequence(&self) -> Option<Sequence> {
        self.open.values().map(|open| open.first_sequence).min()
    }

    /// The size of the open messages' text, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn part(
        &mut self,
        sequence: Sequence,
        message: MessageOrdinal,
        place: (Part, Kind),
        new: impl FnOnce() -> OpenPart,
    ) -> &mut OpenPart {
        self.open
            .entry(message)
            .or_insert_with(|| OpenMessage { first_sequence: sequence, parts: BTreeMap::new() })
            .parts
            .entry(place)
            .or_insert_with(new)
    }

    fn tool_call(&mut self, made: &str, given: &JsonText) {
        for part in self.open.values_mut().flat_map(|open| open.parts.values_mut()) {
            if let OpenPart::ToolUse { call, input, .. } = part
                && call == made
            {
                *input = Some(given.clone());
            }
        }
    }

    fn forget(&mut self, message: MessageOrdinal) {
        if let Some(gone) = self.open.remove(&message) {
            self.bytes -= gone.parts.values().map(OpenPart::bytes).sum::<usize>();
        }
    }
}

impl OpenMessage {
    fn has_said(&self, part: Part) -> bool {
        self.parts.range((part, Kind::Text)..=(part, Kind::ToolUse)).next().is_some()
    }
}

impl OpenPart {
    fn to_block(&self) -> ContentBlock {
        match self {
            Self::Text(text) => ContentBlock::Text(text.clone()),
            Self::Reasoning(text) => ContentBlock::Reasoning(text.clone()),
            Self::ToolUse { call, tool, fragments, input } => ContentBlock::ToolUse {
                call: call.clone(),
                tool: tool.clone(),
                input: input.clone().unwrap_or_else(|| JsonText::string(fragments)),
            },
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reasoning(text) => text.len(),
            Self::ToolUse { fragments, .. } => fragments.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ToolCall;

    fn text(message: u32, part: u32, text: &str) -> EventBody {
        EventBody::TextDelta { message: MessageOrdinal(message), part: Part(part), text: text.to_owned() }
    }

    fn fold(bodies: &[EventBody]) -> Assembler {
        let mut assembler = Assembler::default();
        for (index, body) in bodies.iter().enumerate() {
            assembler.record(Sequence(index as u64 + 1), body);
        }
        assembler
    }

    #[test]
    fn a_tool_call_gives_its_part_the_input_that_was_parsed() {
        let input = JsonText::new_unchecked(r#"{"a":1}"#);
        let delta = EventBody::ToolInputDelta {
            message: MessageOrdinal(0),
            part: Part(1),
            call: "c1".into(),
            tool: Some("Bash".into()),
            fragment: r#"{"a""#.into(),
        };
        let call =
            ToolCall { call: "c1".into(), tool: "Bash".into(), input: input.clone(), parent_call: None };
        let cut = fold(&[text(0, 0, "hm"), delta.clone()]);
        let whole = fold(&[text(0, 0, "hm"), delta, EventBody::ToolCall(Box::new(call))]);
        let block = |assembler: &Assembler| {
            assembler.complete(MessageOrdinal(0), MessageOutcome::Complete).unwrap().blocks[1].clone()
        };
        let expect = |input| ContentBlock::ToolUse { call: "c1".into(), tool: "Bash".into(), input };
        assert_eq!(block(&cut), expect(JsonText::string(r#"{"a""#)), "cut short: the fragments, as a string");
        assert_eq!(block(&whole), expect(input));
    }

    #[test]
    fn an_abandoned_message_leaves_nothing() {
        let assembler =
            fold(&[text(0, 0, "a"), text(1, 0, "b"), EventBody::Abandoned { message: MessageOrdinal(0) }]);
        assert_eq!(assembler.complete(MessageOrdinal(0), MessageOutcome::Failed), None);
        assert_eq!(assembler.open_messages().collect::<Vec<_>>(), [MessageOrdinal(1)]);
        assert_eq!(assembler.first_open_sequence(), Some(Sequence(2)));
        assert_eq!(assembler.bytes(), 1);
    }

    #[test]
    fn a_part_that_speaks_in_two_ways_loses_neither() {
        let (message, part) = (MessageOrdinal(0), Part(0));
        let input = |fragment: &str| EventBody::ToolInputDelta {
            message,
            part,
            call: "c1".into(),
            tool: None,
            fragment: fragment.into(),
        };
        let thought = EventBody::ReasoningDelta { message, part, text: "hm".into() };
        let mut assembler = fold(&[input("{"), text(0, 0, "a"), thought, text(0, 0, "b"), input("}")]);
        let complete = assembler.complete(message, MessageOutcome::Complete).unwrap();
        let call = |input| ContentBlock::ToolUse { call: "c1".into(), tool: String::new(), input };
        assert_eq!(
            complete.blocks,
            [
                ContentBlock::Text("ab".into()),
                ContentBlock::Reasoning("hm".into()),
                call(JsonText::string("{}")),
            ]
        );
        assert_eq!(assembler.bytes(), 6);
        assembler.record(Sequence(6), &EventBody::Message(Box::new(complete)));
        assert_eq!(assembler.bytes(), 0, "what is forgotten is not counted");
    }

    proptest! {
        #[test]
        fn the_text_is_the_concatenation_of_the_deltas(
            deltas in prop::collection::vec((0_u32..3, 0_u32..2, ".{0,6}"), 0..60),
        ) {
            let bodies: Vec<_> = deltas.iter().map(|(m, p, t)| text(*m, *p, t)).collect();
            let assembler = fold(&bodies);
            for message in 0..3 {
                let expected: String = (0..2)
                    .flat_map(|part| {
                        deltas.iter().filter(move |(m, p, _)| (*m, *p) == (message, part)).map(|d| &*d.2)
                    })
                    .collect();
                let first = deltas.iter().position(|(m, ..)| *m == message).map(|i| Sequence(i as u64 + 1));
                let complete = assembler.complete(MessageOrdinal(message), MessageOutcome::Complete);
                prop_assert_eq!(complete.as_ref().map(CompleteMessage::text), first.map(|_| expected));
                prop_assert_eq!(complete.and_then(|c| c.first_sequence), first);
            }
        }
    }
}
