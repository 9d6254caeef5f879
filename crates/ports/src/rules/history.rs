//! Rules for events that are not appended by a running turn: imported, or written anew.

use tokenrail_domain::{Agent, Event, EventBody, Sequence};

/// Whether the events follow each other in one turn.
pub fn are_consecutive(events: &[Event]) -> bool {
    events.windows(2).all(|pair| pair[0].sequence.next() == pair[1].sequence && pair[0].turn == pair[1].turn)
}

/// Whether a stored event can be replaced by one that says the same kind of thing under the same number. What
/// others may refer to stays: numbers, turns, messages, outcomes.
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

/// Whether an import can be finished as `agent`: all its events are there, and nothing of it runs.
pub fn may_finish_import(agent: &Agent, head: Sequence) -> bool {
    agent.head == head && !agent.status.is_active()
}
