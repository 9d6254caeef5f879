//! What clients get, for the simulation (`tests/simulation/reader.rs`).

use bytes::Bytes;
use tokenrail_application::Page;
use tokenrail_domain::{AgentId, Event};

use super::Detail;
use super::dialects::agent::AgentFold;
use super::events::EventFold;
use super::packed::Packed;
use super::writing::frames;
use crate::fold::{Fold as _, written};
use crate::frames::payloads;
use crate::json::JsonList;

/// Returns the frames of each event of a page in the dialect `agent`, as a WebSocket client gets them.
pub fn agent_frames(agent: AgentId, page: &Page) -> Vec<Bytes> {
    let mut fold = AgentFold::new(agent, Detail::Plain);
    let mut bytes = written(&mut fold, 0, page, frames);
    // The bytes are shared by all followers, and so is the list of where each event ends in the batch.
    let rendering = fold.shared(0).and_then(|key| page.batch.rendered(key));
    let ends = rendering.map_or(&[][..], |rendering| &rendering.ends);
    let mut begin = page.skip.checked_sub(1).map_or(0, |before| ends[before]);
    let lengths = ends[page.skip..].iter().map(|end| end - std::mem::replace(&mut begin, *end));
    lengths.map(|length| bytes.split_to(length)).collect()
}

/// Returns the frames of a page in the dialect `agent`, as a WebSocket client that asks for packed deltas reads them.
pub fn packed_frames(agent: AgentId, page: &Page) -> Vec<String> {
    let bytes = written(&mut AgentFold::new(agent, Detail::Packed), 0, page, frames);
    payloads(&bytes).map(|json| String::from_utf8_lossy(json).into_owned()).collect()
}

/// Returns the items of a page of events, as a client that asks for packed deltas reads them.
pub fn packed_items(agent: AgentId, events: &[Event]) -> Vec<String> {
    Detail::Packed
        .cut(events)
        .map(|told| {
            let mut list = JsonList::default();
            let mut fold = EventFold::new(agent, Detail::Packed);
            match told {
                Packed::Event(event) => fold.event(event, &mut list),
                Packed::Deltas(run) => fold.deltas(run, &mut list),
            }
            String::from_utf8(list.take()).unwrap_or_default()
        })
        .collect()
}
