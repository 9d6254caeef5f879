//! Writes the frames of a fold. If deltas are packed, consecutive text of one message becomes one frame.

use bytes::Bytes;
use tokenrail_application::Rendering;
use tokenrail_domain::{Event, EventBody};

use super::native_frame::{Native, NativeFrame, TextPiece};
use super::packed::PACKED_TEXT_BYTES;
use crate::fold::{Fold, Frames};
use crate::frames::FrameWriter;

/// Collects the frames of a fold.
#[derive(Default)]
pub(super) struct Joined {
    out: FrameWriter,
    packed: bool,
    /// Text to which the next text may be joined.
    text: Option<TextPiece>,
}

impl Joined {
    pub(super) fn new(packed: bool) -> Self {
        Self { packed, ..Self::default() }
    }

    /// Folds the events. Returns where each of them ends in the output.
    pub(super) fn take(&mut self, fold: &mut impl Fold<Vocabulary = Native>, events: &[Event]) -> Vec<usize> {
        // Earlier text is not joined with the text of these events.
        self.end();
        let mut ends: Vec<usize> = Vec::with_capacity(events.len());
        for event in events {
            if !matches!(event.body, EventBody::TextDelta { .. }) {
                self.let_out(&mut ends);
            }
            fold.event(event, self);
            ends.push(if self.text.is_some() { Rendering::GOES_ON } else { self.out.len() });
        }
        self.let_out(&mut ends);
        ends
    }

    pub(super) fn into_bytes(mut self) -> Bytes {
        self.end();
        self.out.into_bytes()
    }

    /// Writes the waiting text. The newest event ends with it.
    fn let_out(&mut self, ends: &mut [usize]) {
        if let (true, Some(end)) = (self.text.is_some(), ends.last_mut()) {
            self.end();
            *end = self.out.len();
        }
    }

    fn end(&mut self) {
        if let Some(text) = self.text.take() {
            text.tell(&mut self.out);
        }
    }
}

impl Frames<Native> for Joined {
    fn frame(&mut self, frame: NativeFrame<'_>) {
        let said = match frame {
            NativeFrame::Text(said) if self.packed => said,
            frame => {
                self.end();
                return self.out.frame(frame);
            }
        };
        let fits = |text: &&mut TextPiece| text.text.len() + said.text.len() <= PACKED_TEXT_BYTES;
        let rest = match self.text.as_mut().filter(fits) {
            Some(text) => text.join(said.into()),
            None => Some(said.into()),
        };
        if let Some(next) = rest {
            self.end();
            self.text = Some(next);
        }
    }
}
