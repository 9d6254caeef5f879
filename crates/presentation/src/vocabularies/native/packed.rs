//! Packed deltas: consecutive deltas of one part of one message share a frame, for clients that ask for it. A client
//! can split the frame into its deltas again. Only the raw lines are lost.

use tokenrail_application::planted_bugs::{Bug, is_planted};
use tokenrail_domain::{Event, EventBody};

/// The maximum number of events in a packed frame. A batch in memory has no more, but a page of the history may.
pub(super) const PACKED_EVENTS: usize = 512;
/// The maximum size of the text in a packed frame, in bytes. It lets a client show the beginning of a long page before
/// the rest has arrived.
pub(super) const PACKED_TEXT_BYTES: usize = 32 << 10;

/// The events of one frame.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Packed<'e> {
    /// At least one delta. All have the same kind, and belong to the same part of one message. Their numbers are
    /// consecutive.
    Deltas(&'e [Event]),
    Event(&'e Event),
}

impl Packed<'_> {
    /// The number of events.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Deltas(run) => run.len(),
            Self::Event(_) => 1,
        }
    }
}

/// Splits events into groups that share a frame.
pub(crate) fn packed(mut events: &[Event]) -> impl Iterator<Item = Packed<'_>> {
    std::iter::from_fn(move || {
        let (first, _) = events.split_first()?;
        if !first.body.is_delta() {
            events = &events[1..];
            return Some(Packed::Event(first));
        }
        let (run, rest) = events.split_at(run(events));
        events = rest;
        Some(Packed::Deltas(run))
    })
}

/// Returns how many of the events share a frame with the first one, which is a delta.
fn run(events: &[Event]) -> usize {
    let mut bytes = 0;
    let pairs = events.iter().zip(&events[1..]).take(PACKED_EVENTS - 1);
    let joined = pairs.take_while(|(event, next)| {
        bytes += event.body.text_bytes();
        let fits = bytes + next.body.text_bytes() <= PACKED_TEXT_BYTES;
        fits && (goes_on(event, next) || packs_across_messages(event, next))
    });
    1 + joined.count()
}

/// Always false, unless this bug is planted (`cargo xtask planted-bugs`).
fn packs_across_messages(event: &Event, next: &Event) -> bool {
    let ends = || next.body.completed().is_some() || event.body.completed().is_some();
    is_planted(Bug::PackedAcrossMessages) && ends()
}

/// Whether a delta continues the part of the event before it, so that only its text and its time are new.
fn goes_on(event: &Event, next: &Event) -> bool {
    if next.sequence != event.sequence.next() || next.turn != event.turn {
        return false;
    }
    match (&event.body, &next.body) {
        (
            EventBody::TextDelta { message, part, .. },
            EventBody::TextDelta { message: next_message, part: next_part, .. },
        )
        | (
            EventBody::ReasoningDelta { message, part, .. },
            EventBody::ReasoningDelta { message: next_message, part: next_part, .. },
        ) => (message, part) == (next_message, next_part),
        (
            EventBody::ToolInputDelta { message, part, call, .. },
            EventBody::ToolInputDelta {
                message: next_message,
                part: next_part,
                call: next_call,
                tool: None,
                ..
            },
        ) => (message, part, call) == (next_message, next_part, next_call),
        _ => false,
    }
}
