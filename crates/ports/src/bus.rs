//! Hints between the nodes of a store.

use async_trait::async_trait;
use tokenrail_domain::{AgentId, NodeId, Sequence};

use crate::BusFigures;

/// Carries hints to the other nodes that something in the store has changed. A hint may come late, twice or never: so a
/// listener also looks at the store by itself, and asks the store what is true.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IBus: Send + Sync {
    /// Sends a hint. Never waits, and never fails: hints that cannot be sent are dropped.
    fn send_hint(&self, hint: Hint);

    /// Waits for hints of other nodes. May be dropped at any await. There is one listener.
    async fn heard(&self) -> Heard;

    /// Tells how many nodes there are. The more, the longer a bus may gather hints before it sends them.
    fn set_nodes(&self, nodes: usize) {
        let _ = nodes;
    }

    /// Whether hints arrive, as far as is known. While they do not, the listener looks more often.
    fn is_working(&self) -> bool;

    /// What it has carried since it was started.
    fn figures(&self) -> BusFigures {
        BusFigures::default()
    }
}

/// A hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hint {
    /// An agent's journal reaches to here.
    Head { agent: AgentId, head: Sequence },
    /// An agent was created.
    Created(AgentId),
    /// An agent's row or its turns have changed.
    Changed(AgentId),
    /// An agent was deleted or purged.
    Deleted(AgentId),
    /// A node has something to carry out: see [`INodes::errands`](crate::INodes::errands). For [`NodeId::ANY`]: any
    /// node may take a launch, see [`INodes::claim_launches`](crate::INodes::claim_launches).
    Errand(NodeId),
    /// Something is in a node's inbox: see [`IInbox`](crate::IInbox).
    Letter(NodeId),
}

/// What a listener has heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// At least one hint, in the order in which they came.
    Hints(Vec<Hint>),
    /// Hints may have been lost. The listener must look at everything.
    Missed,
}
