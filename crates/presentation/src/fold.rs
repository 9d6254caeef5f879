//! The basis of a vocabulary: a pure fold from events to frames. It uses no clock, no randomness and no I/O, so an
//! event has the same frames live, on replay and after a restart.
//!
//! A fold does not know its transport, which writes the frames to a WebSocket ([`FrameWriter`]), an event stream
//! ([`BlockWriter`]) or a list in JSON ([`JsonList`]). Each vocabulary implements [`Frames`] for its transports:
//! `native` in `native/transport.rs`, the others beside their folds.
//!
//! [`FrameWriter`]: crate::frames::FrameWriter
//! [`BlockWriter`]: crate::blocks::BlockWriter
//! [`JsonList`]: crate::json::JsonList

use bytes::Bytes;
use tokenrail_application::{Page, Rendering, RenderingKey};
use tokenrail_domain::Event;

/// The wire names of one kind of client.
pub(crate) trait Vocabulary {
    /// The value that a fold makes of an event, and that a transport writes.
    type Frame<'f>;
}

/// Where a fold must begin in order to produce the frames of the events after a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    /// At the cursor: the frames of an event depend on that event alone.
    Anywhere,
    /// At the first event of the turn to which the cursor belongs.
    WithTurn,
}

/// A pure fold from events to frames.
pub(crate) trait Fold {
    type Vocabulary: Vocabulary;

    /// Most folds know the state of the turn.
    fn begins(&self) -> Begins {
        Begins::WithTurn
    }

    /// The key under which all followers share the bytes that a transport has written in this form. `None` if the
    /// frames are for one follower alone.
    ///
    /// Folds that share a key must be in the same state at the same event.
    fn shared(&self, _form: u8) -> Option<RenderingKey> {
        None
    }

    /// Applies the next event, and passes its frames to `out` in order.
    fn event<T: Frames<Self::Vocabulary>>(&mut self, event: &Event, out: &mut T);

    /// Applies consecutive deltas of one part of a message. A vocabulary that can combine them produces one frame.
    fn deltas<T: Frames<Self::Vocabulary>>(&mut self, run: &[Event], out: &mut T) {
        for event in run {
            self.event(event, out);
        }
    }
}

/// A transport for the frames of a vocabulary. The module documentation says where it is implemented.
pub(crate) trait Frames<V: Vocabulary> {
    fn frame(&mut self, frame: V::Frame<'_>);
}

/// A transport that discards all frames.
pub(crate) struct Silence;

impl<V: Vocabulary> Frames<V> for Silence {
    fn frame(&mut self, _: V::Frame<'_>) {}
}

/// Applies events without writing their frames.
pub(crate) fn skip<F: Fold>(fold: &mut F, events: &[Event]) {
    if fold.begins() == Begins::WithTurn {
        for event in events {
            fold.event(event, &mut Silence);
        }
    }
}

/// The bytes of a page. `form` tells apart the ways in which one fold is written. `write` writes the frames of events
/// in this form. If the fold's frames are shared, the first follower that asks writes the batch for all followers.
pub(crate) fn written<F: Fold>(
    fold: &mut F,
    form: u8,
    page: &Page,
    write: impl Fn(&mut F, &[Event]) -> Rendering,
) -> Bytes {
    let Some(key) = fold.shared(form) else { return write(fold, page.events()).bytes };
    match fold.begins() {
        Begins::Anywhere => {
            let rendering = page.batch.rendering(key, |events| write(fold, events));
            // A follower whose cursor lies inside a packed frame gets a rendering of its own.
            rendering.from(page.skip).unwrap_or_else(|| write(fold, page.events()).bytes)
        }
        Begins::WithTurn => written_in_turn(fold, key, page, write),
    }
}

/// Like [`written`], for a fold that must apply every event even if another follower has written its frames.
fn written_in_turn<F: Fold>(
    fold: &mut F,
    key: RenderingKey,
    page: &Page,
    write: impl Fn(&mut F, &[Event]) -> Rendering,
) -> Bytes {
    if page.skip == 0 && page.batch.rendered(key).is_none() {
        let mut first = false;
        let rendering = page.batch.rendering(key, |events| {
            first = true;
            write(fold, events)
        });
        if !first {
            // Another follower was faster.
            skip(fold, page.events());
        }
        return rendering.bytes.clone();
    }
    match page.batch.rendered(key).and_then(|rendering| rendering.from(page.skip)) {
        Some(bytes) => {
            skip(fold, page.events());
            bytes
        }
        None => write(fold, page.events()).bytes,
    }
}
