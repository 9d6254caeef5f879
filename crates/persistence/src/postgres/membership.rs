//! Which node a store is.

use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};
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
    #[error(
        "a server with a different access token has started at the same time; give both servers the same token"
    )]
    OtherToken,
}

/// The error of a node that may not join.
pub(crate) fn other_token() -> StoreError {
    unavailable(NotANode::OtherToken)
}

/// Which node this store is, from its join on.
pub(crate) struct Membership {
    identity: Option<NodeIdentity>,
    /// Clients of the node send it.
    token: Mutex<Option<TokenDigest>>,
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

/// The digest of an access token, as the database has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenDigest(Vec<u8>);

impl TokenDigest {
    pub(crate) fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).to_vec())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl JoinedNode {
    pub(crate) fn node_id(self) -> NodeId {
        NodeId(self.id as u64)
    }
}

impl Membership {
    pub(crate) fn new(identity: Option<NodeIdentity>) -> Self {
        Self { identity, token: Mutex::default(), joined: Mutex::default() }
    }

    pub(crate) fn identity(&self) -> Result<NodeIdentity, StoreError> {
        self.identity.clone().ok_or_else(|| unavailable(NotANode::NoIdentity))
    }

    pub(crate) fn set_token(&self, token: TokenDigest) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
    }

    /// The token on which the node has agreed with the others. `None` if it has not asked.
    pub(crate) fn token(&self) -> Option<TokenDigest> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
