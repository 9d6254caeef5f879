//! The frames of one subscription, in its dialect and from its cursor on.

use bytes::Bytes;
use tokenrail_application::Page;
use tokenrail_domain::{Assembler, Event, Sequence};

use super::dialects::DialectFold;
use super::joined::Joined;
use super::native_frame::Piece;
use super::writing::{page_of_frames, page_of_packets};
use crate::fold::{Begins, Fold, skip};

/// Writes the frames of one subscription.
#[derive(Debug)]
pub(crate) struct Teller {
    fold: DialectFold,
    /// The fold applies the events up to this one silently.
    after: Sequence,
    /// The open messages up to that event, for a follower that starts in the middle of a message.
    joining: Option<Assembler>,
    text_mode: TextMode,
}

/// About how many bytes a piece has: a short text, and the names around it.
const PIECE_BYTES: usize = 512;

/// How text is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextMode {
    Plain,
    /// Consecutive text of one message shares a frame.
    Packed,
    /// Each piece of text separately, so that the caller can collect them.
    Pieces,
    /// The dialect `agent`, as Socket.IO events.
    SocketIo,
}

/// The output for one page.
#[derive(Debug)]
pub(crate) enum PageFrames {
    Frames(Bytes),
    Pieces(Vec<Piece>),
}

impl PageFrames {
    /// How many bytes it has. Pieces, which are joined later, count by their number.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Frames(frames) => frames.len(),
            Self::Pieces(pieces) => pieces.len() * PIECE_BYTES,
        }
    }
}

impl Teller {
    /// Sends the events after `after`. `joins`: the client has no earlier frames, so the text of an open message is
    /// repeated.
    pub(crate) fn new(fold: DialectFold, after: Sequence, joins: bool, text_mode: TextMode) -> Self {
        let joining = (joins && fold.tells_what_was_said()).then(Assembler::default);
        // A fold that needs its whole turn takes in the events up to `after`, but does not send them.
        let after = if fold.begins() == Begins::WithTurn { after } else { Sequence::START };
        Self { fold, after, joining, text_mode }
    }

    /// The client has every event up to this number.
    pub(crate) fn after(&self) -> Sequence {
        self.after
    }

    /// Returns the output for a page. The page must be the next one after the previous page, or the first of a turn.
    pub(crate) fn tell(&mut self, page: &Page) -> PageFrames {
        if let (TextMode::SocketIo, DialectFold::Agent(fold)) = (self.text_mode, &mut self.fold) {
            return PageFrames::Frames(page_of_packets(fold, page));
        }
        let events = page.events();
        let (known, new) = events.split_at(events.partition_point(|event| event.sequence <= self.after));
        self.take_in(known);
        if self.text_mode == TextMode::Pieces {
            let mut pieces = Vec::new();
            for event in new {
                self.fold.event(event, &mut pieces);
            }
            return PageFrames::Pieces(pieces);
        }
        let packed = self.text_mode == TextMode::Packed;
        let Some(last) = known.last() else {
            return PageFrames::Frames(page_of_frames(&mut self.fold, packed, page));
        };
        let mut out = Joined::new(packed);
        if last.sequence == self.after
            && let Some(open) = self.joining.take()
        {
            self.fold.so_far(&open, last, &mut out);
        }
        out.take(&mut self.fold, new);
        PageFrames::Frames(out.into_bytes())
    }

    fn take_in(&mut self, events: &[Event]) {
        skip(&mut self.fold, events);
        if let Some(open) = &mut self.joining {
            for event in events {
                open.record(event.sequence, &event.body);
            }
        }
    }
}
