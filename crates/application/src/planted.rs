//! What the planted bugs do that is more than a line. Compiled only with `--cfg planted_bugs`.

use std::sync::Arc;

use tokenrail_domain::{Event, Sequence, Timestamp};
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

fn change(append: &mut Append, change: impl Fn(&mut Event)) {
    let mut events = append.events.to_vec();
    events.iter_mut().for_each(change);
    append.events = Arc::from(events);
}
