//! The access token that all nodes of a database share.

use std::time::Duration;

use tokenrail_domain::NodeId;
use tokenrail_ports::{INodes as _, NodeState, Pulse, StoreError};
use tokio::time::{Instant, sleep};

use super::PostgresStore;
use crate::postgres::membership::JoinedNode;
use crate::postgres::statements::shared_token::AgreeCommand;

/// How often it looks whether the other nodes beat.
const LOOK: Duration = Duration::from_millis(500);

impl PostgresStore {
    /// Whether the access token of this node is that of the other nodes that are alive. If none is alive, the next ones
    /// must have this one. Clients send the same token to any node, so a server with another one must not start.
    ///
    /// A node asks before it joins, so that a wrong token does no harm, and again when it has joined: two nodes with
    /// different tokens may start at the same time, and only one of them may go on.
    ///
    /// If the tokens differ, it waits until one of the other nodes beats. Those that do not beat for `silence` are not
    /// alive.
    ///
    /// # Errors
    /// [`StoreError`] if the database cannot be used.
    pub async fn agree_on_token(&self, token: &[u8], silence: Duration) -> Result<bool, StoreError> {
        let folder = self.inner.membership.identity()?.folder;
        let agree = |silent| self.write(AgreeCommand::new(token, folder, silent));
        if agree(Vec::new()).await? {
            return Ok(true);
        }
        let before = self.pulses().await?;
        tracing::warn!(
            wait_s = silence.as_secs(),
            "other servers on this database have another access token; checking whether they are running"
        );
        let until = Instant::now() + silence;
        while Instant::now() < until {
            sleep(LOOK.min(silence)).await;
            // A node that is no longer there does not matter.
            if self.pulses().await?.iter().any(|pulse| !before.contains(pulse)) {
                return Ok(false);
            }
        }
        agree(before).await
    }

    /// The pulses of the other nodes that count as alive.
    async fn pulses(&self) -> Result<Vec<(NodeId, Pulse)>, StoreError> {
        let me = self.inner.membership.joined().map(JoinedNode::node_id);
        let others = self.nodes().await?.into_iter().filter(|node| Some(node.id) != me);
        Ok(others.filter(|node| node.state == NodeState::Alive).map(|node| (node.id, node.pulse)).collect())
    }
}
