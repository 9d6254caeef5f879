//! Rules for events that no running turn appends: imported and rewritten ones.

use tokenrail_domain::{Agent, Event, EventBody, Sequence};

/// Whether the events are consecutive and belong to one turn.
pub fn are_consecutive(events: &[Event]) -> bool {
    events.windows(2).all(|pair| pair[0].sequence.next() == pair[1].sequence && pair[0].turn == pair[1].turn)
}

/// Whether a new event may replace the stored one. Everything that other data may refer to stays the same: its
/// sequence, its turn, the message that it is a delta of or completes, and the outcome of its result.
pub fn may_replace(stored: &Event, new: &Event) -> bool {
    let outcome = |event: &Event| match &event.body {
        EventBody::TurnResult(result) => Some(result.outcome),
        _ => None,
    };
    (stored.sequence, stored.turn) == (new.sequence, new.turn)
        && stored.body.delta_of() == new.body.delta_of()
        && stored.body.completed() == new.body.completed()
        && outcome(stored) == outcome(new)
}

/// Whether an import can be finished as `agent`: all its events are stored, and its status is not an active one.
pub fn may_finish_import(agent: &Agent, head: Sequence) -> bool {
    agent.head == head && !agent.status.is_active()
}
