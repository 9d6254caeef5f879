//! The parts of an incomplete message that were sent.

use std::collections::BTreeMap;

use tokenrail_domain::Part;

/// The kind of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Reasoning,
}

/// What was sent of a message.
#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    /// The part that is open. A message has at most one.
    pub(super) open: Option<OpenWords>,
    /// The ids under which its parts were sent.
    pub(super) ids: Vec<String>,
    /// The first text that was sent in a run, and the number of the run.
    pub(super) first_text: Option<(u32, String)>,
    /// For each part, its kind and the bytes that were sent.
    said: BTreeMap<Part, (Kind, usize)>,
}

#[derive(Debug, Clone)]
pub(super) struct OpenWords {
    pub(super) part: Part,
    pub(super) kind: Kind,
    pub(super) id: String,
}

impl Words {
    /// Records text that is sent.
    pub(super) fn say(&mut self, part: Part, kind: Kind, bytes: usize) {
        self.said.entry(part).or_insert((kind, 0)).1 += bytes;
    }

    /// Whether the next part that was sent is this block of the complete message: of this kind, with this length. The
    /// blocks must be passed in their order.
    pub(super) fn was_said(&mut self, kind: Kind, bytes: usize) -> bool {
        let is_it = self.said.first_key_value().is_some_and(|(_, said)| *said == (kind, bytes));
        if is_it {
            self.said.pop_first();
        }
        is_it
    }
}
