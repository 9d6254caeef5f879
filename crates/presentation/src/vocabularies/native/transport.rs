//! The transports of the native vocabulary: frames become bytes. A fold calls [`Frames::frame`]. That of
//! [`Joined`](super::joined::Joined) is in `joined.rs`, the others are here.
//!
//! | frames | transport |
//! | --- | --- |
//! | of a dialect | [`FrameWriter`]: WebSocket frames; [`Joined`](super::joined::Joined): the same, with packed text |
//! | of the dialect `agent` | [`Packets`]: Socket.IO events, each in a WebSocket frame |
//! | of a dialect | `Vec<Piece>`: for a connection that collects text (`ws/throttle.rs`) |
//! | events over HTTP | [`EventBlocks`]: blocks of an event stream; [`JsonList`]: items of a list |

use bytes::Bytes;

use super::dialects::agent::WHAT_FOLLOWS;
use super::events::{EventFrame, Events};
use super::native_frame::{Native, NativeFrame, Payload, Piece};
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

/// The type of an event in Engine.IO and in Socket.IO, before the list of its name and its value.
const EVENT: &[u8] = b"42";

/// Socket.IO events, each in a WebSocket frame.
#[derive(Default)]
pub(crate) struct Packets(FrameWriter);

impl Packets {
    pub(crate) fn event<P: Payload>(&mut self, name: &'static str, value: &P) {
        value.write_pair(EVENT, name, &mut self.0);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }
}

/// Whether a packet with the number of its event comes after this one.
pub(crate) fn comes_before_its_number(packet: &[u8]) -> bool {
    let name = packet.strip_prefix(EVENT).and_then(|list| list.strip_prefix(b"[\""));
    name.is_some_and(|name| WHAT_FOLLOWS.iter().any(|follows| name.starts_with(follows.as_bytes())))
}

impl Frames<Native> for Packets {
    fn frame(&mut self, frame: NativeFrame<'_>) {
        match frame {
            // Only other dialects have these.
            NativeFrame::Text(_) => {}
            NativeFrame::Whole { kind, payload, .. } => payload.write_pair(EVENT, kind, &mut self.0),
        }
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
