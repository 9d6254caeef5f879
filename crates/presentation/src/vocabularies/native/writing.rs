//! Events as bytes, written once for all followers that want the same form.

use bytes::{Buf as _, Bytes};
use tokenrail_application::{Page, Rendering};
use tokenrail_domain::{AgentId, Event};

use super::Detail;
use super::dialects::DialectFold;
use super::dialects::agent::AgentFold;
use super::events::EventFold;
use super::joined::Joined;
use super::transport::{EventBlocks, Packets};
use crate::blocks::{BlockWriter, one_line};
use crate::fold::written;
use crate::frames::FrameWriter;
use crate::json::JsonList;

/// The native event stream of one follower.
#[derive(Debug)]
pub(crate) struct EventWriting {
    fold: EventFold,
    detail: Detail,
    /// Whether blocks have names. `EventSource.onmessage` receives only blocks without a name.
    named: bool,
}

impl EventWriting {
    pub(crate) fn new(agent: AgentId, detail: Detail, named: bool) -> Self {
        Self { fold: EventFold::new(agent, detail), detail, named }
    }

    /// Writes the page as blocks.
    pub(crate) fn of(&mut self, page: &Page) -> Bytes {
        let Self { fold, detail, named } = self;
        written(fold, u8::from(*named), page, |fold, events| blocks(fold, *detail, *named, events))
    }
}

/// Writes events as blocks of an event stream.
pub(super) fn blocks(fold: &mut EventFold, detail: Detail, named: bool, events: &[Event]) -> Rendering {
    let mut out = EventBlocks { out: BlockWriter::default(), named };
    let ends = detail.feed_noting_ends(fold, events, &mut out, |out| out.out.len());
    Rendering { bytes: out.out.take(), ends }
}

/// The form of items on one line. Blocks have the forms 0 and 1.
const ITEMS: u8 = 2;

/// Writes a page as items of a list, without its brackets and on one line.
pub(crate) fn items_of_page(agent: AgentId, page: &Page) -> Bytes {
    let mut bytes = written(&mut EventFold::new(agent, Detail::Plain), ITEMS, page, items);
    if bytes.starts_with(b",") {
        // The follower's cursor lies inside the batch.
        bytes.advance(1);
    }
    bytes
}

/// Writes events in the same way.
pub(crate) fn items_of_events(agent: AgentId, events: &[Event]) -> Bytes {
    items(&mut EventFold::new(agent, Detail::Plain), events).bytes
}

fn items(fold: &mut EventFold, events: &[Event]) -> Rendering {
    let mut out = JsonList::default();
    let ends = Detail::Plain.feed_noting_ends(fold, events, &mut out, JsonList::len);
    let mut bytes = out.take();
    one_line(&mut bytes);
    Rendering { bytes: bytes.into(), ends }
}

/// Writes a page as WebSocket frames of a dialect. If `packed`, consecutive text of one message shares a
/// frame; for `agent`, the fold itself knows that.
///
/// The next step is [`written`] (`fold.rs`), which calls `render` only for the first follower that wants this form. For
/// `agent`, [`Detail::feed_noting_ends`] (`detail.rs`) follows: it calls `event` of the fold in `dialects/agent.rs`, or
/// `deltas` for a packed run, which write to `FrameWriter` (`transport.rs` and `native_frame.rs` here, and `frames.rs`
/// of this crate). For the others, `joined.rs` calls `event` of the fold. The bytes return to
/// `Subscriptions::update_of` (`ws/subscriptions.rs`), and `Connection::handle_update` (`ws/connection.rs`) puts them
/// into the outbox.
pub(super) fn page_of_frames(fold: &mut DialectFold, packed: bool, page: &Page) -> Bytes {
    written(fold, form(fold, packed), page, |fold, events| render(fold, packed, events))
}

/// Followers that want the same form share the bytes. For `agent`, the detail alone decides, and it is part of the key.
pub(super) fn form(fold: &DialectFold, packed: bool) -> u8 {
    match fold {
        DialectFold::Agent(_) => 0,
        DialectFold::Message(_) | DialectFold::Stream(_) => u8::from(packed),
    }
}

fn render(fold: &mut DialectFold, packed: bool, events: &[Event]) -> Rendering {
    if let DialectFold::Agent(fold) = fold {
        return frames(fold, events);
    }
    let mut out = Joined::new(packed);
    let ends = out.take(fold, events);
    Rendering { bytes: out.into_bytes(), ends }
}

/// Writes events as frames of the dialect `agent`.
pub(super) fn frames(fold: &mut AgentFold, events: &[Event]) -> Rendering {
    let mut out = FrameWriter::default();
    let ends = fold.detail().feed_noting_ends(fold, events, &mut out, FrameWriter::len);
    Rendering { bytes: out.into_bytes(), ends }
}

/// The form of Socket.IO events. Frames of the same fold have form 0.
const PACKETS: u8 = 1;

/// Writes a page as Socket.IO events of the dialect `agent`.
pub(super) fn page_of_packets(fold: &mut AgentFold, page: &Page) -> Bytes {
    written(fold, PACKETS, page, packets)
}

fn packets(fold: &mut AgentFold, events: &[Event]) -> Rendering {
    let mut out = Packets::default();
    let ends = fold.detail().feed_noting_ends(fold, events, &mut out, Packets::len);
    Rendering { bytes: out.into_bytes(), ends }
}
