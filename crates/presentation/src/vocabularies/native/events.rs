//! Events over HTTP: one value for each event or for packed deltas, as a block of an event stream or an item of a list.

use tokenrail_application::RenderingKey;
use tokenrail_domain::{AgentId, Event, Sequence};

use super::Detail;
use super::dto::deltas::{DeltasDto, PageItemDto};
use super::dto::message::AgentMessageDto;
use crate::fold::{Begins, Fold, Frames, Vocabulary};

/// The event name of packed deltas.
const DELTAS: &str = "deltas";

/// The vocabulary of events over HTTP.
#[derive(Debug)]
pub(crate) enum Events {}

impl Vocabulary for Events {
    type Frame<'f> = EventFrame<'f>;
}

/// An event, or packed deltas.
pub(crate) struct EventFrame<'f> {
    /// The number of the event, or of the last delta.
    pub(super) sequence: Sequence,
    pub(super) name: &'f str,
    pub(super) value: PageItemDto<'f>,
}

/// The fold of events over HTTP. The frame of an event follows from that event alone.
#[derive(Debug)]
pub(crate) struct EventFold {
    agent: AgentId,
    detail: Detail,
}

impl EventFold {
    pub(crate) fn new(agent: AgentId, detail: Detail) -> Self {
        Self { agent, detail }
    }
}

impl Fold for EventFold {
    type Vocabulary = Events;

    fn begins(&self) -> Begins {
        Begins::Anywhere
    }

    fn shared(&self, form: u8) -> Option<RenderingKey> {
        Some(RenderingKey::of::<Self>([self.detail as u8, form]))
    }

    fn event<T: Frames<Events>>(&mut self, event: &Event, out: &mut T) {
        let message = AgentMessageDto::new(self.agent, event, self.detail.has_raw());
        let (sequence, name) = (event.sequence, message.event_type());
        out.frame(EventFrame { sequence, name, value: PageItemDto::Event(&message) });
    }

    fn deltas<T: Frames<Events>>(&mut self, run: &[Event], out: &mut T) {
        if let (Some(deltas), Some(last)) = (DeltasDto::new(self.agent, run), run.last()) {
            let value = PageItemDto::Deltas(&deltas);
            out.frame(EventFrame { sequence: last.sequence, name: DELTAS, value });
        }
    }
}
