//! What the planted bugs do that is more than a line. Compiled only with `--cfg planted_bugs`.

use std::sync::Arc;

use tokenrail_domain::{Event, Sequence, Timestamp, Turn, TurnState};
use tokenrail_ports::planted::{Bug, is_planted};
use tokenrail_ports::{Append, StoreError};

/// Does what must not be done after an append has failed; true where it is taken for saved.
pub(crate) fn after_error(append: &mut Append, error: &StoreError) -> bool {
    if is_planted(Bug::SequenceBurntOnError) {
        change(append, |event| event.sequence = Sequence(event.sequence.0 + 1));
    }
    if is_planted(Bug::RetryWithNewIds) {
        change(append, |event| event.at = Timestamp(event.at.0 + 1));
    }
    is_planted(Bug::UnknownTakenForSaved) && matches!(error, StoreError::OutcomeUnknown(_))
}

/// Forgets that turns were cancelled while they waited.
pub(crate) fn without_stops(mut turns: Vec<Turn>) -> Vec<Turn> {
    let waiting = turns.iter_mut().filter(|turn| turn.state == TurnState::Queued);
    waiting.filter(|_| is_planted(Bug::QueuedTurnStartsAfterCancel)).for_each(|turn| turn.stop = None);
    turns
}

fn change(append: &mut Append, change: impl Fn(&mut Event)) {
    let mut events = append.events.to_vec();
    events.iter_mut().for_each(change);
    append.events = Arc::from(events);
}
