//! What this server knows of the other nodes of its store, and what it has heard of them. `use_cases/nodes.rs` acts on
//! it.

mod lifecycle_elsewhere;
mod membership;
mod recent;
mod requests_elsewhere;
mod underway;
mod wanted;

pub(crate) use lifecycle_elsewhere::{CHANGES_MAX, LifecycleElsewhere, Outcome, Pending, ReadAgent};
pub(crate) use membership::Membership;
pub use membership::{Fence, NodeView};
pub(crate) use requests_elsewhere::{ReadUpTo, RequestsElsewhere};
pub(crate) use underway::Underway;
pub(crate) use wanted::Wanted;
