//! What this server knows of the other nodes of its store, and what it has heard of them. `use_cases/nodes.rs` acts on
//! it.

mod membership;
mod news;
mod recent;
mod requests_elsewhere;
mod underway;
mod wanted;

pub(crate) use membership::Membership;
pub use membership::{Fence, NodeView};
pub(crate) use news::{CHANGES_MAX, News, Outcome, Pending, ReadAgent};
pub(crate) use requests_elsewhere::{ReadUpTo, RequestsElsewhere};
pub(crate) use underway::Underway;
pub(crate) use wanted::Wanted;
