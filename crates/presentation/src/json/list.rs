//! A list in JSON, written item by item.

use serde::Serialize;
use tokenrail_domain::{AgentId, Event, TurnNumber};

use crate::fold::{Fold, Frames};

/// The items of a list, without its brackets.
#[derive(Debug, Default)]
pub(crate) struct JsonList {
    out: Vec<u8>,
    has_items: bool,
}

impl JsonList {
    /// An empty list that has room for about so many bytes.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), ..Self::default() }
    }

    /// Appends an item.
    pub(crate) fn item<T: Serialize>(&mut self, value: &T) {
        let begin = self.out.len();
        if self.has_items {
            self.out.push(b',');
        }
        if let Err(error) = serde_json::to_writer(&mut self.out, value) {
            // Not expected: all types that are written here can be serialized.
            tracing::error!(error = &error as &dyn std::error::Error, "cannot serialize an item of a list");
            self.out.truncate(begin);
            return;
        }
        self.has_items = true;
    }

    /// The length of what was written since the last [`JsonList::take`], in bytes.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// Takes what was written since the last call.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// The whole list, with its brackets, if [`JsonList::take`] was not called.
    pub(crate) fn into_list(self) -> Vec<u8> {
        let mut out = self.out;
        out.insert(0, b'[');
        out.push(b']');
        out
    }
}

/// A fold of any vocabulary whose frames are items of a list.
pub(crate) trait ListFold {
    /// Applies the next event, and appends its items.
    fn items(&mut self, event: &Event, out: &mut JsonList);
}

impl<F: Fold> ListFold for F
where
    JsonList: Frames<F::Vocabulary>,
{
    fn items(&mut self, event: &Event, out: &mut JsonList) {
        self.event(event, out);
    }
}

/// A list that a vocabulary adds to the record of a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ItemList {
    pub(crate) name: &'static str,
    /// Creates the fold of a turn.
    pub(crate) items: fn(AgentId, TurnNumber) -> Box<dyn ListFold>,
}
