//! Appends of servers that were killed. The database may carry one out long after its server has ended.

use std::time::Duration;

use tokenrail_domain::{AgentId, NodeId};
use tokenrail_ports::Append;
use tokenrail_ports::testing::MemoryStore;
use tokio::time::timeout;

use super::Cluster;
use super::node::Life;
use super::place::{Place, Promises};

/// An append on its way, and who has sent it.
pub(crate) struct LateAppend {
    pub(crate) append: Append,
    pub(crate) sender: NodeId,
    /// The store, as the sender sees it.
    pub(crate) disk: MemoryStore,
}

/// When servers are killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kills {
    AtAnyTime,
    WhileSaving,
}

/// How long a kill waits for an append.
const FOR_AN_APPEND: Duration = Duration::from_secs(5);

impl Cluster {
    /// In some clusters, waits until the server saves something.
    pub(super) async fn until_it_saves(&self, life: &Life) {
        let saves = async {
            while life.world.lock().underway.is_empty() {
                life.world.saving.notified().await;
            }
        };
        if self.kills == Kills::WhileSaving {
            // A server that saves nothing is killed all the same.
            let _ = timeout(FOR_AN_APPEND, saves).await;
        }
    }

    /// Keeps what a server had sent when it was killed.
    pub(super) fn keep_late_appends(&self, sender: NodeId, life: &Life) {
        let late = life.world.take_late_appends();
        let late =
            late.into_iter().map(|append| LateAppend { append, sender, disk: self.disk.as_node(sender) });
        self.promises.known().late.extend(late);
    }

    /// The connections of dead servers end with the old database server.
    pub(super) fn lose_late_appends(&self) {
        self.promises.known().late.clear();
    }
}

impl Promises {
    fn take_late(&self, agent: AgentId) -> Vec<LateAppend> {
        let mut known = self.known();
        let late = std::mem::take(&mut known.late);
        let (taken, left) = late.into_iter().partition(|late| late.append.agent == agent);
        known.late = left;
        taken
    }
}

impl Place {
    /// The appends to the journal of an agent that arrive now.
    pub(crate) fn take_late(&self, agent: AgentId) -> Vec<LateAppend> {
        self.promises().take_late(agent)
    }
}
