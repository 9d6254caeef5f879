//! The rules of a journal: what every store decides in the same way. Pure functions, no database.
//!
//! | file | rules |
//! | --- | --- |
//! | `append` | the form of an append, when a store may take it, and what it changes |
//! | `history` | events that are imported or rewritten |
//! | `keys` | what a repeated command is told |
//! | `page` | how many events one read returns |
//!
//! One rule needs the whole journal, so it is left to the store: a message is completed once in its turn.

mod append;
mod history;
mod keys;
mod page;

pub use append::{AppendDecision, JournalState, NewEvents, TurnPhase, begins_again, is_well_formed};
pub use history::{are_consecutive, may_finish_import, may_replace};
pub use page::{EventPage, Flow};
