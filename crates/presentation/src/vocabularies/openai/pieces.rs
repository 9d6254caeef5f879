//! What is sent, piece by piece. Texts that the journal has are read when the client takes them. So a client that stops
//! reading holds a piece, however long the text is.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use serde::Serialize;
use tokenrail_application::{Rereader, StoreError};
use tokenrail_domain::{Event, Sequence};

use super::dto::{BETWEEN, Gap, GapText, divided, write_with_gaps};
use super::journal_text::{JournalText, TextReader, push_escaped};
use super::said_items::{ItemKind, SaidItem, SaidItems};
use crate::blocks::BlockWriter;
use crate::frames::CHUNK_BYTES;

/// What the gaps of a value are about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum About<'a> {
    /// The value has no gaps.
    Nothing,
    Item(&'a SaidItem),
    Everything(&'a Rc<SaidItems>),
}

/// Pieces that were written and not taken.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// The beginning, as bytes.
    ready: Vec<u8>,
    rest: VecDeque<Piece>,
    /// Blocks behind the rest.
    blocks: BlockWriter,
}

#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>),
    Text(TextReader),
    /// The items that belong into a gap, from the `next` on.
    List {
        items: Rc<SaidItems>,
        gap: Gap,
        next: usize,
        is_first: bool,
    },
}

impl Pieces {
    /// Appends a block of an event stream.
    pub(crate) fn block<T: Serialize>(
        &mut self,
        id: Option<u64>,
        name: Option<&str>,
        value: &T,
        about: About<'_>,
    ) {
        if matches!(about, About::Nothing) {
            self.blocks.block(id, name, value);
            return;
        }
        let mut block = BlockWriter::default();
        block.block_by(id, name, |out| write_with_gaps(value, out));
        self.rest.extend(bytes(&self.blocks.take()));
        self.rest.extend(parts(&block.take(), about));
    }

    /// Appends the last block of a stream.
    pub(crate) fn done(&mut self) {
        self.blocks.done();
    }

    /// A whole JSON document.
    pub(crate) fn document<T: Serialize>(value: &T, items: &Rc<SaidItems>) -> Self {
        Self { rest: written(value, About::Everything(items)).into(), ..Self::default() }
    }

    /// What belongs into one gap, without what encloses it.
    pub(crate) fn of_gap(gap: Gap, items: &Rc<SaidItems>) -> Self {
        Self { rest: fill(gap, About::Everything(items)).into(), ..Self::default() }
    }

    /// Whether everything was taken. Otherwise, the next piece may continue one that was taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.rest.is_empty() && self.blocks.len() == 0
    }

    /// Takes the next piece, about as long as a chunk or as what one event has of a text. `None` if everything was
    /// taken. May be dropped at any await.
    ///
    /// # Errors
    /// [`StoreError`] if the journal cannot be read. Calling again is safe.
    pub(crate) async fn next(&mut self, journal: &mut Rereader) -> Result<Option<Bytes>, StoreError> {
        while let Some(wanted) = self.advance() {
            let page = journal.page_with(wanted).await?;
            self.read(page.events());
        }
        Ok(Some(self.take()).filter(|piece| !piece.is_empty()))
    }

    /// Takes what can be sent without reading the journal.
    pub(crate) fn known(&mut self) -> Bytes {
        self.advance();
        self.take()
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.ready).into()
    }

    /// Moves the beginning to `ready`. Returns the event that must be read before it can go on. `None` if `ready` is
    /// long enough, or if it has everything.
    fn advance(&mut self) -> Option<Sequence> {
        while self.ready.len() < CHUNK_BYTES {
            match self.rest.pop_front() {
                Some(Piece::Bytes(bytes)) => self.add(bytes),
                Some(Piece::Text(reader)) => {
                    if let Some(wanted) = reader.wanted() {
                        self.rest.push_front(Piece::Text(reader));
                        return Some(wanted);
                    }
                }
                Some(Piece::List { items, gap, next, is_first }) => self.expand(&items, gap, next, is_first),
                None if self.blocks.len() == 0 => break,
                None => {
                    let blocks = self.blocks.take();
                    self.add(blocks.into());
                }
            }
        }
        None
    }

    fn add(&mut self, mut bytes: Vec<u8>) {
        if self.ready.is_empty() {
            self.ready = bytes;
        } else {
            self.ready.append(&mut bytes);
        }
    }

    /// Reads what is wanted from these events.
    fn read(&mut self, events: &[Event]) {
        if let Some(Piece::Text(reader)) = self.rest.front_mut() {
            reader.read(events, CHUNK_BYTES, &mut self.ready);
        }
    }

    /// Puts the next item of a list in front of the rest of that list.
    fn expand(&mut self, items: &Rc<SaidItems>, gap: Gap, next: usize, is_first: bool) {
        let Some(position) = items.next_in(gap, next) else { return };
        let Some(item) = items.get(position) else { return };
        let mut pieces = Vec::new();
        if !is_first {
            pieces.extend(bytes(&separator(gap)));
        }
        pieces.extend(match (gap, item.kind) {
            (Gap::Items, _) => {
                written(&items.dto(position, item, GapText::Gap(Gap::Name)), About::Item(item))
            }
            (_, ItemKind::Call) => fill(Gap::Line, About::Item(item)),
            (_, ItemKind::Words(_)) => fill(Gap::Text, About::Item(item)),
        });
        pieces.push(Piece::List { items: Rc::clone(items), gap, next: position + 1, is_first: false });
        for piece in pieces.into_iter().rev() {
            self.rest.push_front(piece);
        }
    }
}

/// What is between two items in a gap.
fn separator(gap: Gap) -> Vec<u8> {
    let mut between = Vec::new();
    match gap {
        Gap::Items => between.push(b','),
        _ => push_escaped(BETWEEN, &mut between),
    }
    between
}

/// The pieces of the JSON of a value.
fn written<T: Serialize>(value: &T, about: About<'_>) -> Vec<Piece> {
    let mut json = Vec::new();
    if let Err(error) = write_with_gaps(value, &mut json) {
        // Not expected: all types that are written here can be serialized.
        tracing::error!(error = &error as &dyn std::error::Error, "cannot serialize a part of a response");
    }
    parts(&json, about)
}

/// The pieces of JSON with gaps.
fn parts(json: &[u8], about: About<'_>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (before, gap) in divided(json) {
        pieces.extend(bytes(before));
        pieces.extend(gap.map(|gap| fill(gap, about)).unwrap_or_default());
    }
    pieces
}

fn bytes(bytes: &[u8]) -> Option<Piece> {
    (!bytes.is_empty()).then(|| Piece::Bytes(bytes.to_vec()))
}

/// What belongs into a gap.
fn fill(gap: Gap, about: About<'_>) -> Vec<Piece> {
    let text = |text: Option<JournalText>| text.map(|text| Piece::Text(TextReader::new(text)));
    match (gap, about) {
        (Gap::Line, About::Item(item)) => {
            let [tool, arguments] = [Gap::Name, Gap::Text].map(|gap| text(item.text_in(gap)));
            [tool, bytes(b" "), arguments].into_iter().flatten().collect()
        }
        (Gap::Name | Gap::Text | Gap::Result, About::Item(item)) => {
            text(item.text_in(gap)).into_iter().collect()
        }
        (Gap::Items | Gap::Said | Gap::Streamed | Gap::Done, About::Everything(items)) if 0 < items.len() => {
            vec![Piece::List { items: Rc::clone(items), gap, next: 0, is_first: true }]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
