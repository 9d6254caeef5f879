//! Several nodes on one store: this server and others, any of which a client may ask. This file has what clients ask
//! about the nodes. The rest is what a launch, a cancel, an answer and a follow need of other nodes, and work in the
//! background:
//!
//! | module | what it is for |
//! | --- | --- |
//! | `beats`, `silence` | says that this node is alive, and notices which others are not |
//! | `takeover` | ends what ran on a lost node |
//! | `listening` | hears hints of other nodes, and looks at the store by itself |
//! | `gatherer` | reads the events of agents of other nodes that are followed here: one read for all |
//! | `lifecycle_elsewhere`, `requests_elsewhere` | what clients that watch all agents must learn of the agents of other nodes |
//! | `errands` | carries out what other nodes have saved for this one |
//! | `letters` | permission answers for agents of other nodes, and orders to end their idle processes |
//! | `placement`, `launches` | which node takes a launch; takes those that wait for a node |
//! | `watching` | which agents are followed here that must be cancelled when nobody follows them |
//!
//! Of the work in the background, only `listening` does something on a store that cannot be shared: it checks that
//! every commit was announced.

mod beats;
mod errands;
mod gatherer;
mod launches;
mod letters;
mod lifecycle_elsewhere;
mod listening;
mod placement;
mod requests_elsewhere;
mod silence;
mod takeover;
mod watching;

use std::sync::Arc;

use std::pin::Pin;

use tokenrail_domain::{Agent, NodeId};
use tokenrail_ports::NodeState;

pub(super) use self::placement::{LaunchNeeds, Placement};
use crate::error::Refusal;
use crate::node_state::{Fence, NodeView};
use crate::service::AgentService;

impl AgentService {
    /// Starts to beat: this node has joined.
    pub(super) fn begin_to_beat(&self) {
        if self.core.outside.nodes.is_shared() {
            self.core.tracker.spawn_on(beats::beat(self.clone()), &self.core.runtime);
        }
    }

    /// Starts the other work in the background.
    pub(super) fn work_with_other_nodes(&self) {
        let spawn = |work: Pin<Box<dyn Future<Output = ()> + Send>>| {
            self.core.tracker.spawn_on(work, &self.core.runtime);
        };
        spawn(Box::pin(listening::listen(self.clone())));
        if self.core.outside.nodes.is_shared() {
            spawn(Box::pin(takeover::take_over(self.clone())));
            spawn(Box::pin(errands::run_errands(self.clone())));
            spawn(Box::pin(gatherer::gather(Arc::clone(&self.core))));
            spawn(Box::pin(lifecycle_elsewhere::tell_lifecycle(Arc::clone(&self.core))));
        }
    }

    /// All nodes, in the order of their numbers. A store that cannot be shared has one.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub async fn nodes(&self) -> Result<Vec<NodeView>, Refusal> {
        let me = self.core.membership.me();
        let nodes = self.core.outside.nodes.nodes().await?;
        Ok(nodes.into_iter().map(|node| NodeView { is_this: Some(node.id) == me, node }).collect())
    }

    /// Takes a node out for good that is away or lost. Its agents can be read, but get no more messages until it joins
    /// again. The turns that ran there are ended.
    ///
    /// # Errors
    /// [`Refusal::NodeUnknown`], [`Refusal::NodeAlive`], [`Refusal::Store`].
    pub async fn forget_node(&self, node: NodeId) -> Result<(), Refusal> {
        if self.core.outside.nodes.forget(node).await? {
            return Ok(());
        }
        let nodes = self.core.outside.nodes.nodes().await?;
        match nodes.iter().find(|known| known.id == node).map(|known| known.state) {
            None => Err(Refusal::NodeUnknown(node)),
            Some(NodeState::Gone) => Ok(()),
            Some(NodeState::Alive | NodeState::Away | NodeState::Lost) => Err(Refusal::NodeAlive(node)),
        }
    }

    /// The node that has an agent's folder and runs its turns, with its state as far as this node knows. `None` if any
    /// node can run its next turn, or if the store cannot be shared.
    pub fn home_of(&self, agent: &Agent) -> Option<NodeView> {
        if self.core.is_home_lost(agent) && self.core.needs_no_home(agent) {
            return None;
        }
        // The store sets the home of a new agent: the node that creates it.
        let home = agent.home.or_else(|| self.core.membership.me())?;
        let node = self.core.membership.node(home)?;
        Some(NodeView { is_this: Some(node.id) == self.core.membership.me(), node })
    }

    /// This node, as the others see it. `None` before it has joined, or if the store cannot be shared.
    pub fn this_node(&self) -> Option<NodeView> {
        let node = self.core.membership.node(self.core.membership.me()?)?;
        Some(NodeView { is_this: true, node })
    }

    /// The name of this node. `None` before it has joined, or if the store cannot be shared.
    pub fn node_name(&self) -> Option<Arc<str>> {
        self.core.membership.name()
    }

    /// Completes when this node was declared lost, or when another server has joined as this node. The server must stop
    /// then.
    pub async fn fenced(&self) -> Fence {
        self.core.membership.fenced().await
    }
}
