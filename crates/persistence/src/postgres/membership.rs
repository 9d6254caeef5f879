//! Which node a store is.

use std::sync::{Mutex, PoisonError};

use tokenrail_domain::NodeId;
use tokenrail_ports::StoreError;
use uuid::Uuid;

use crate::postgres::config::NodeIdentity;
use crate::postgres::error::unavailable;

/// Why a store does not do what only a node may do.
#[derive(Debug, thiserror::Error)]
enum NotANode {
    #[error("this server has not joined the database as a node yet")]
    NotJoined,
    #[error("this program has no data folder of its own, so it cannot be a node of the database")]
    NoIdentity,
}

/// Which node this store is, from its join on.
pub(crate) struct Membership {
    identity: Option<NodeIdentity>,
    joined: Mutex<Option<JoinedNode>>,
}

/// A node, as it has joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JoinedNode {
    /// Its number in the database.
    pub(crate) id: i64,
    pub(crate) incarnation: i64,
    /// The identity of its data folder. A failover that has lost the join may give the number to another node.
    pub(crate) folder: Uuid,
    /// The schema that its program knows.
    pub(crate) schema: i32,
}

impl JoinedNode {
    pub(crate) fn node_id(self) -> NodeId {
        NodeId(self.id as u64)
    }
}

impl Membership {
    pub(crate) fn new(identity: Option<NodeIdentity>) -> Self {
        Self { identity, joined: Mutex::new(None) }
    }

    pub(crate) fn identity(&self) -> Result<NodeIdentity, StoreError> {
        self.identity.clone().ok_or_else(|| unavailable(NotANode::NoIdentity))
    }

    /// From here on, this store is this node.
    pub(crate) fn set(&self, joined: JoinedNode) {
        *self.joined.lock().unwrap_or_else(PoisonError::into_inner) = Some(joined);
    }

    /// The node, if it has joined.
    pub(crate) fn joined(&self) -> Option<JoinedNode> {
        *self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node as which this store has joined.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] before it has joined.
    pub(crate) fn require(&self) -> Result<JoinedNode, StoreError> {
        self.joined().ok_or_else(|| unavailable(NotANode::NotJoined))
    }

    /// Its number in the database. See [`Membership::require`].
    pub(crate) fn id(&self) -> Result<i64, StoreError> {
        self.require().map(|joined| joined.id)
    }
}
