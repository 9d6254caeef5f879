//! The servers that use one store.

use async_trait::async_trait;

use crate::StoreResult;

/// The nodes: the servers that use one store, each with a data folder of its own.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait INodes: Send + Sync {
    /// Starts this node. It becomes the owner of everything that it owned before, with a higher
    /// [`Epoch`](crate::Epoch) for every agent that has an open turn. So an append that its previous process sent, and
    /// that arrives only now, changes nothing.
    ///
    /// A server calls this at its start, before it claims an agent.
    async fn join(&self) -> StoreResult<()>;
}
