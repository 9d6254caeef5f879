//! What becomes of what a parser says: the messages that a person sees in the end.

use std::collections::BTreeSet;

use tokenrail_domain::{
    Assembler, CompleteMessage, ContentBlock, EventBody, MessageOutcome, Said, Sequence, ToolCall, ToolResult,
};
use tokenrail_ports::IMessageParser;

/// All that a parser says of some lines.
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

/// What a person sees in the end.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) messages: Vec<CompleteMessage>,
    /// Messages that were open when their turn, or the output, ended.
    pub(crate) open: Vec<CompleteMessage>,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) results: Vec<ToolResult>,
}

/// Numbers and folds what was said, and checks that messages begin in order and end once.
pub(crate) fn pump(said: &[Said]) -> Seen {
    let mut seen = Seen::default();
    let mut assembler = Assembler::default();
    let mut known = 0;
    let mut over = BTreeSet::new();
    for (number, said) in said.iter().enumerate() {
        let body = match said {
            Said::Event(body) => body.clone(),
            Said::End { message, outcome, rest } => {
                let complete = assembler.complete_with(*message, *outcome, rest.clone());
                EventBody::Message(Box::new(complete.expect("only an open message ends")))
            }
            Said::Session(_) | Said::Asked { .. } | Said::Settled { .. } => continue,
            Said::Close(_) => {
                seen.open.extend(leftovers(&assembler));
                assembler = Assembler::default();
                continue;
            }
            Said::NextTurn => {
                (known, over) = (0, BTreeSet::new());
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
            EventBody::Message(message) => seen.messages.push(*message),
            EventBody::ToolCall(call) => seen.calls.push(*call),
            EventBody::ToolResult(result) => seen.results.push(*result),
            _ => {}
        }
    }
    seen.open.extend(leftovers(&assembler));
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

fn leftovers(assembler: &Assembler) -> Vec<CompleteMessage> {
    let open = assembler.open_messages();
    open.filter_map(|message| assembler.complete(message, MessageOutcome::Failed)).collect()
}

fn message_of(body: &EventBody) -> Option<u32> {
    let abandoned = match body {
        EventBody::Abandoned { message } => Some(*message),
        _ => None,
    };
    body.delta_of().or(body.completed()).or(abandoned).map(|message| message.0)
}
