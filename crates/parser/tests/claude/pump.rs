//! Folds the results of a parser into the messages that a user finally sees.

use std::collections::{BTreeMap, BTreeSet};

use tokenrail_domain::{
    Assembler, CompleteMessage, ContentBlock, EventBody, MessageOutcome, Said, Sequence, ToolCall, ToolResult,
};
use tokenrail_ports::IMessageParser;

/// Everything that a parser says about some lines.
pub(crate) fn read<'a>(
    parser: &mut dyn IMessageParser,
    lines: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Said> {
    let mut said = Vec::new();
    for line in lines {
        parser.parse(line, &mut said);
    }
    said
}

/// What a user finally sees.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) messages: Vec<CompleteMessage>,
    /// Messages that were open when their turn or the output ended.
    pub(crate) open: Vec<CompleteMessage>,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) results: Vec<ToolResult>,
}

/// Numbers and folds the results of a parser. Checks that messages begin in order and end once, with the text of their
/// deltas in the order in which they came.
pub(crate) fn pump(said: &[Said]) -> Seen {
    let mut seen = Seen::default();
    let mut assembler = Assembler::default();
    let mut known = 0;
    let mut over = BTreeSet::new();
    let mut texts: BTreeMap<u32, String> = BTreeMap::new();
    for (number, said) in said.iter().enumerate() {
        let body = match said {
            Said::Event(body) => body.clone(),
            Said::End { message, outcome, rest } => {
                let complete = assembler.complete_with(*message, *outcome, rest.clone());
                EventBody::Message(Box::new(complete.expect("only an open message ends")))
            }
            Said::Session(_) | Said::Asked(_) | Said::Settled { .. } => continue,
            Said::Close(_) => {
                seen.open.extend(leftovers(&assembler, &texts));
                assembler = Assembler::default();
                continue;
            }
            Said::OwnTurn => {
                seen.open.extend(leftovers(&assembler, &texts));
                assembler = Assembler::default();
                (known, over, texts) = (0, BTreeSet::new(), BTreeMap::new());
                continue;
            }
        };
        if let Some(message) = message_of(&body) {
            assert!(message <= known, "message {message} begins before {known}");
            assert!(!over.contains(&message), "message {message} goes on after its end");
            known = known.max(message + 1);
        }
        if let EventBody::Message(_) | EventBody::Abandoned { .. } = body {
            over.extend(message_of(&body));
        }
        assembler.record(Sequence(number as u64 + 1), &body);
        match body {
            EventBody::TextDelta { message, text, .. } => texts.entry(message.0).or_default().push_str(&text),
            EventBody::Message(message) => {
                if message.first_sequence.is_some() {
                    assert_eq!(message.text(), texts.remove(&message.message.0).unwrap_or_default());
                }
                seen.messages.push(*message);
            }
            EventBody::ToolCall(call) => seen.calls.push(*call),
            EventBody::ToolResult(result) => seen.results.push(*result),
            _ => {}
        }
    }
    seen.open.extend(leftovers(&assembler, &texts));
    seen
}

/// The reasoning of a message.
pub(crate) fn reasoning(message: &CompleteMessage) -> String {
    let blocks = message.blocks.iter();
    blocks
        .filter_map(|block| match block {
            ContentBlock::Reasoning(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn leftovers(assembler: &Assembler, texts: &BTreeMap<u32, String>) -> Vec<CompleteMessage> {
    let open = assembler.open_messages();
    let open = open.filter_map(|message| assembler.complete(message, MessageOutcome::Failed));
    open.inspect(|cut| assert_eq!(cut.text(), texts.get(&cut.message.0).cloned().unwrap_or_default()))
        .collect()
}

fn message_of(body: &EventBody) -> Option<u32> {
    let abandoned = match body {
        EventBody::Abandoned { message } => Some(*message),
        _ => None,
    };
    body.delta_of().or(body.completed()).or(abandoned).map(|message| message.0)
}
