//! The parts of an incomplete message that were already sent.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use tokenrail_domain::{ContentBlock, Part};

/// The parts of an incomplete message that were already sent.
#[derive(Default)]
pub(super) struct Spoken {
    parts: BTreeMap<Part, SpokenPart>,
    /// The text or reasoning part that is open at the client. A message has at most one.
    pub(super) open: Option<(Part, Kind)>,
}

/// The kind of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Reasoning,
}

enum SpokenPart {
    /// Only the length and the hash of its text are kept. They are enough to recognize the text.
    Words {
        kind: Kind,
        bytes: usize,
        hash: DefaultHasher,
    },
    Call(String),
}

impl Spoken {
    /// Records text that was sent.
    pub(super) fn say(&mut self, part: Part, kind: Kind, text: &str) {
        let new = || SpokenPart::Words { kind, bytes: 0, hash: DefaultHasher::new() };
        if let SpokenPart::Words { bytes, hash, .. } = self.parts.entry(part).or_insert_with(new) {
            *bytes += text.len();
            hash.write(text.as_bytes());
        }
    }

    /// Records a call whose input was sent.
    pub(super) fn call(&mut self, part: Part, call: &str) {
        self.parts.entry(part).or_insert_with(|| SpokenPart::Call(call.to_owned()));
    }

    /// The calls whose input was sent.
    pub(super) fn calls(&self) -> impl Iterator<Item = &str> {
        self.parts.values().filter_map(|part| match part {
            SpokenPart::Call(call) => Some(call.as_str()),
            SpokenPart::Words { .. } => None,
        })
    }

    /// The text and reasoning parts that were sent.
    pub(super) fn words(&self) -> impl Iterator<Item = Part> {
        self.parts.iter().filter_map(|(number, part)| match part {
            SpokenPart::Words { .. } => Some(*number),
            SpokenPart::Call(_) => None,
        })
    }

    /// Returns the blocks of the complete message that were not sent yet. Each has a part number that the message has
    /// not used.
    pub(super) fn unsaid<'b>(&self, blocks: &'b [ContentBlock]) -> Vec<(Part, &'b ContentBlock)> {
        let mut said = self.parts.values().peekable();
        let free = self.parts.last_key_value().map_or(0, |(part, _)| part.0 + 1);
        let mut unsaid = Vec::new();
        for block in blocks {
            if said.peek().is_some_and(|part| part.is(block)) {
                said.next();
            } else {
                unsaid.push((Part(free + unsaid.len() as u32), block));
            }
        }
        unsaid
    }
}

impl SpokenPart {
    fn is(&self, block: &ContentBlock) -> bool {
        let (said, text) = match (self, block) {
            (Self::Call(call), ContentBlock::ToolUse { call: other, .. }) => return call == other,
            (Self::Words { kind: Kind::Text, .. }, ContentBlock::Text(text))
            | (Self::Words { kind: Kind::Reasoning, .. }, ContentBlock::Reasoning(text)) => (self, text),
            _ => return false,
        };
        let Self::Words { bytes, hash, .. } = said else { return false };
        let mut whole = DefaultHasher::new();
        whole.write(text.as_bytes());
        *bytes == text.len() && hash.finish() == whole.finish()
    }
}
