//! The transports of the native vocabularies: frames become bytes. A fold calls [`Frames::frame`], which is here.
//!
//! | frames | transport |
//! | --- | --- |
//! | of a dialect | [`FrameWriter`]: WebSocket frames; [`Joined`](super::joined::Joined): the same, with packed text |
//! | of a dialect | `Vec<Piece>`: for a connection that collects text (`ws/throttle.rs`) |
//! | events over HTTP | [`EventBlocks`]: blocks of an event stream; [`JsonList`]: items of a list |

use super::events::{EventFrame, Events};
use super::frame::{Native, NativeFrame, Piece};
use crate::blocks::BlockWriter;
use crate::fold::Frames;
use crate::frames::FrameWriter;
use crate::json::JsonList;

/// Writes blocks of the native event stream.
#[derive(Debug, Default)]
pub(crate) struct EventBlocks {
    pub(super) out: BlockWriter,
    /// Whether blocks have names. `EventSource.onmessage` receives only blocks without a name.
    pub(super) named: bool,
}

impl Frames<Native> for FrameWriter {
    fn frame(&mut self, frame: NativeFrame<'_>) {
        match frame {
            NativeFrame::Text(said) => said.tell(false, self),
            NativeFrame::Whole { at, session, kind, payload } => payload.write(at, session, kind, self),
        }
    }
}

impl Frames<Native> for Vec<Piece> {
    fn frame(&mut self, frame: NativeFrame<'_>) {
        self.push(match frame {
            NativeFrame::Text(said) => Piece::Text(said.into()),
            whole @ NativeFrame::Whole { .. } => {
                let mut out = FrameWriter::default();
                out.frame(whole);
                Piece::Frames(out.into_bytes())
            }
        });
    }
}

impl Frames<Events> for EventBlocks {
    fn frame(&mut self, frame: EventFrame<'_>) {
        let EventFrame { sequence, name, value } = frame;
        self.out.block(Some(sequence.0), self.named.then_some(name), &value);
    }
}

impl Frames<Events> for JsonList {
    fn frame(&mut self, frame: EventFrame<'_>) {
        self.item(&frame.value);
    }
}
