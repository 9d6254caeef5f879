//! What was sent of an incomplete message as deltas, in vocabularies that can take nothing back.

use std::collections::BTreeMap;

use tokenrail_domain::Part;

/// The kind of a part with words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordKind {
    Text,
    Reasoning,
}

/// What was sent of a message. Clients know a part by its id.
#[derive(Debug, Clone)]
pub(crate) struct SaidWords<I> {
    open: Option<OpenWords<I>>,
    /// For each part, its kind and the bytes that were sent.
    said: BTreeMap<Part, (WordKind, usize)>,
}

/// The part that is open. A message has at most one.
#[derive(Debug, Clone)]
pub(crate) struct OpenWords<I> {
    part: Part,
    pub(crate) kind: WordKind,
    pub(crate) id: I,
}

impl<I> Default for SaidWords<I> {
    fn default() -> Self {
        Self { open: None, said: BTreeMap::new() }
    }
}

impl<I> SaidWords<I> {
    /// The id of this part, if it is the one that is open.
    pub(crate) fn open_id(&self, part: Part, kind: WordKind) -> Option<&I> {
        let open = self.open.as_ref().filter(|open| (open.part, open.kind) == (part, kind));
        open.map(|open| &open.id)
    }

    /// Opens a part. The one that was open must have been closed.
    pub(crate) fn open(&mut self, part: Part, kind: WordKind, id: I) {
        self.open = Some(OpenWords { part, kind, id });
    }

    /// Closes the part that is open.
    pub(crate) fn close(&mut self) -> Option<OpenWords<I>> {
        self.open.take()
    }

    /// Records text that is sent.
    pub(crate) fn say(&mut self, part: Part, kind: WordKind, bytes: usize) {
        self.said.entry(part).or_insert((kind, 0)).1 += bytes;
    }

    /// Whether the next part that was sent is this block of the complete message: of this kind, with this length. The
    /// blocks must be passed in their order.
    pub(crate) fn was_said(&mut self, kind: WordKind, bytes: usize) -> bool {
        let is_it = self.said.first_key_value().is_some_and(|(_, said)| *said == (kind, bytes));
        if is_it {
            self.said.pop_first();
        }
        is_it
    }
}
