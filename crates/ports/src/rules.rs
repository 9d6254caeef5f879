//! The rules of a journal: the decisions that every store makes in the same way. Pure functions, no database.
//!
//! | file | rules |
//! | --- | --- |
//! | `append` | the form of an append, when a store accepts it, and what it changes; when the queue of an agent is full |
//! | `hints` | which hints of a bus become one |
//! | `history` | events that are imported or rewritten |
//! | `idempotency` | the answer to a repeated command |
//! | `page` | how many events one read returns |
//!
//! One rule needs the whole journal, so each store checks it itself: a message is completed once in its turn.

mod append;
mod hints;
mod history;
mod idempotency;
mod page;

pub use append::{
    AppendDecision, JournalState, NewEvents, TurnPhase, begins_again, is_queue_full, is_well_formed,
    needs_user,
};
pub use hints::PendingHints;
pub use history::{are_consecutive, may_finish_import, may_replace};
pub use page::{EventPage, Flow, SharedLimit};
