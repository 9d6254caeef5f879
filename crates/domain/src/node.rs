//! The servers that share one store.

use std::fmt;

/// The number of a node: of a server with its data folder, among those that share one store. The store assigns it when
/// the node joins for the first time, and never to another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The only node of a store that cannot be shared.
    pub const ONLY: Self = Self(1);

    /// No node in particular: the home of an agent whose launch waits until a node takes it. No node has this number.
    pub const ANY: Self = Self(0);
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
