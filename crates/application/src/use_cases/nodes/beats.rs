//! Says that this node is alive, notices which others are not, and takes over what ran there.

use tokenrail_domain::NodeId;
use tokenrail_ports::{Node, NodeState, StoreError};
use tokio::time::{Instant, timeout};

use super::silence::Silence;
use crate::node_state::Fence;
use crate::service::AgentService;

/// Beats until the server shuts down, or until this node is fenced.
pub(crate) async fn beat(service: AgentService) {
    let core = &service.core;
    let (limits, nodes) = (core.limits.nodes, &core.outside.nodes);
    let (mut silence, mut known) = (Silence::new(limits), Vec::new());
    loop {
        let asked = Instant::now();
        let beaten = core.closing.run_until_cancelled(timeout(limits.beat_wait(), nodes.beat())).await;
        let Some(beaten) = beaten else { return };
        // A node that is slow to beat has been silent since it asked.
        match beaten.unwrap_or(Err(StoreError::Busy)) {
            Ok(seen) => {
                let now = incarnations(&seen);
                core.membership.note(seen.clone(), asked);
                let alive = seen.iter().filter(|node| node.state == NodeState::Alive);
                core.outside.bus.set_nodes(alive.count());
                if std::mem::replace(&mut known, now.clone()) != now {
                    // A node may have saved something without telling.
                    service.hear_missed();
                }
                service.declare_lost(&mut silence, &seen).await;
            }
            Err(error @ StoreError::Outdated { .. }) => {
                tracing::error!("{error}");
                core.membership.fence(Fence::Outdated);
                return;
            }
            Err(StoreError::Fenced) => {
                service.note_fence().await;
                return;
            }
            Err(error) => {
                silence.interrupted();
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "cannot tell the other nodes that this one is alive");
            }
        }
        tokio::select! {
            biased;
            () = core.closing.cancelled() => return,
            () = tokio::time::sleep_until(asked + limits.beat) => {}
        }
    }
}

/// What changes if a node starts, stops or is lost.
fn incarnations(nodes: &[Node]) -> Vec<(NodeId, NodeState, u64)> {
    nodes.iter().map(|node| (node.id, node.state, node.pulse.incarnation)).collect()
}

impl AgentService {
    /// Beats while a server that shuts down does `work`. It may take long, and its agents must not be taken over.
    pub(crate) async fn beating<T>(&self, work: impl Future<Output = T>) -> T {
        let core = &self.core;
        let beats = async {
            core.closing.cancelled().await;
            while core.outside.nodes.is_shared() && core.membership.me().is_some() {
                let beaten = timeout(core.limits.nodes.beat_wait(), core.outside.nodes.beat()).await;
                if matches!(beaten, Ok(Err(StoreError::Fenced))) {
                    break;
                }
                tokio::time::sleep(core.limits.nodes.beat).await;
            }
            std::future::pending().await
        };
        tokio::select! {
            biased;
            done = work => done,
            never = beats => never,
        }
    }

    /// Finds out why this node is fenced. While the store fails, nothing can be saved anyway.
    async fn note_fence(&self) {
        let mut pause = self.core.limits.saving.retry_pause;
        let nodes = loop {
            match self.core.outside.nodes.nodes().await {
                Ok(nodes) => break nodes,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        error,
                        "cannot find out why the database rejects the writes of this node; retrying"
                    );
                }
            }
            let Some(longer) = self.core.pause(pause).await else { return };
            pause = longer;
        };
        let own = nodes.iter().find(|node| Some(node.id) == self.core.membership.me());
        let own = own.filter(|own| own.state == NodeState::Alive);
        let known = own.and_then(|own| self.core.membership.node(own.id)).map(|node| node.pulse.incarnation);
        let why = match (own.map(|own| own.pulse.incarnation), known) {
            (Some(now), Some(known)) if known < now => {
                tracing::error!(
                    "another server has joined the database as this node, with a copy of the data folder; this server \
                     stops"
                );
                Fence::Replaced
            }
            // The database was set back to before this node has joined. Its agents are still its own.
            (Some(_), _) => {
                tracing::error!(
                    "the database no longer has a record that this node joined; this node stops saving and \
                     rejoins the database"
                );
                Fence::DeclaredLost
            }
            (None, _) => {
                tracing::error!(
                    "another node declared this node lost and took over its agents; this node stops saving and \
                     rejoins the database"
                );
                Fence::DeclaredLost
            }
        };
        self.core.membership.fence(why);
    }

    async fn declare_lost(&self, silence: &mut Silence, seen: &[Node]) {
        let Some(me) = self.core.membership.me() else { return };
        let mut is_lost = seen.iter().any(|node| node.state.is_lost());
        for (node, pulse) in silence.read(seen, me, Instant::now()) {
            let declaring = self.core.outside.nodes.declare_lost(node, pulse);
            let wait = self.core.limits.nodes.beat_wait();
            match timeout(wait, declaring).await.unwrap_or(Err(StoreError::Busy)) {
                Ok(true) => {
                    is_lost = true;
                    self.core.membership.note_lost(node);
                    tracing::warn!(%node, "a node was silent for too long and is declared lost");
                }
                // It has beaten meanwhile, or another node was faster.
                Ok(false) => {}
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(%node, error, "cannot declare a silent node lost");
                }
            }
        }
        if is_lost {
            self.core.orphans.notify_one();
        }
    }
}
