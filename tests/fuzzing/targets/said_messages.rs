//! The rules of messages, and a model of what a user sees of them.

use std::collections::BTreeMap;

use tokenrail_domain::{
    Assembler, CompleteMessage, ContentBlock, EventBody, JsonText, MessageOrdinal, Part, Said, Sequence,
    UnifiedPatch,
};

/// The deltas of one message, part by part: text, reasoning and tool inputs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Spoken {
    pub(crate) text: BTreeMap<Part, String>,
    pub(crate) reasoning: BTreeMap<Part, String>,
    pub(crate) input: BTreeMap<Part, String>,
}

impl Spoken {
    /// Adds a delta. Returns its length in bytes.
    pub(crate) fn hear(&mut self, body: &EventBody) -> usize {
        let (parts, part, text) = match body {
            EventBody::TextDelta { part, text, .. } => (&mut self.text, part, text),
            EventBody::ReasoningDelta { part, text, .. } => (&mut self.reasoning, part, text),
            EventBody::ToolInputDelta { part, fragment, .. } => (&mut self.input, part, fragment),
            _ => return 0,
        };
        parts.entry(*part).or_default().push_str(text);
        text.len()
    }

    /// Checks that a complete message equals its deltas. Nothing in it may have come without deltas.
    pub(crate) fn check(&self, complete: &CompleteMessage) {
        let all = |parts: &BTreeMap<Part, String>| parts.values().map(String::as_str).collect::<String>();
        assert_eq!(complete.text(), all(&self.text), "the text is the concatenation of its deltas");
        let reasoning = complete.blocks.iter().filter_map(|block| match block {
            ContentBlock::Reasoning(text) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(reasoning.collect::<String>(), all(&self.reasoning), "and so is the reasoning");
        let tools = complete.blocks.iter().filter(|block| matches!(block, ContentBlock::ToolUse { .. }));
        assert_eq!(tools.count(), self.input.len(), "and each call is there");
    }
}

/// Checks that messages begin in order and end once, and that their text is that of their deltas.
pub(crate) fn check(said: &[Said]) {
    let mut assembler = Assembler::default();
    let mut open: BTreeMap<MessageOrdinal, Spoken> = BTreeMap::new();
    let (mut known, mut over) = (0, std::collections::BTreeSet::new());
    for (number, said) in said.iter().enumerate() {
        let sequence = Sequence(number as u64 + 1);
        match said {
            Said::Event(body) => {
                check_json(body);
                if let Some(message) = message_of(body) {
                    assert!(message.0 <= known, "message {message:?} begins before {known}");
                    assert!(!over.contains(&message), "message {message:?} goes on after its end");
                    known = known.max(message.0 + 1);
                    if body.is_delta() {
                        open.entry(message).or_default().hear(body);
                    } else {
                        over.insert(message);
                        open.remove(&message);
                    }
                }
                assembler.record(sequence, body);
            }
            Said::End { message, outcome, rest } => {
                let complete = assembler.complete(*message, *outcome).expect("only an open message ends");
                open.remove(message).expect("it has said something").check(&complete);
                over.insert(*message);
                let whole = assembler.complete_with(*message, *outcome, rest.clone()).expect("it is open");
                assert_eq!(whole.blocks.len(), complete.blocks.len() + rest.len(), "nothing is left out");
                assembler.record(sequence, &EventBody::Message(Box::new(whole)));
            }
            Said::Close(_) => (assembler, open) = <_>::default(),
            Said::OwnTurn => (assembler, open, known, over) = <_>::default(),
            Said::Asked(_) | Said::Settled { .. } => {}
            Said::Session(session) => assert!(!session.is_empty()),
        }
        assert!(assembler.open_messages().eq(open.keys().copied()), "the same messages are open");
    }
}

fn message_of(body: &EventBody) -> Option<MessageOrdinal> {
    match body {
        EventBody::Abandoned { message } => Some(*message),
        _ => body.delta_of().or(body.completed()),
    }
}

/// JSON fields must contain valid JSON, because they are sent unchanged.
fn check_json(body: &EventBody) {
    match body {
        EventBody::ToolCall(call) => is_json(&call.input),
        EventBody::ToolResult(result) => {
            is_json(&result.content);
            let patch = result.patch.as_ref();
            assert_eq!(
                patch.and_then(|patch| UnifiedPatch::read(patch.as_str())).as_ref(),
                patch,
                "its form"
            );
        }
        EventBody::Usage(usage) => is_json(&usage.usage),
        EventBody::Notice(notice) => is_json(&notice.data),
        EventBody::Message(message) => message.blocks.iter().for_each(|block| match block {
            ContentBlock::ToolUse { input, .. } => is_json(input),
            ContentBlock::Other(value) => is_json(value),
            ContentBlock::Text(_) | ContentBlock::Reasoning(_) => {}
        }),
        EventBody::TurnResult(_) => panic!("the agent's own result is a close"),
        _ => {}
    }
}

fn is_json(text: &JsonText) {
    let read = serde_json::from_str::<&serde_json::value::RawValue>(text.as_str());
    assert!(read.is_ok(), "{text:?}: {read:?}");
}
