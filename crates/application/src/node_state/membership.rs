//! Which node this is, and how the others are.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokenrail_domain::NodeId;
use tokenrail_ports::{Node, NodeState};
use tokio::sync::{Notify, OnceCell, watch};
use tokio::time::Instant;

/// What this node knows of itself and of the others.
pub(crate) struct Membership {
    /// Set when this server has joined.
    pub(crate) me: OnceCell<NodeId>,
    joined: OnceLock<Instant>,
    /// The name of this node. Set when it has seen itself among the nodes of a shared store.
    name: OnceLock<Arc<str>>,
    seen: Mutex<Seen>,
    /// Notified after each beat.
    pub(crate) beaten: Notify,
    fence: watch::Sender<Option<Fence>>,
}

/// Why this server may save nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// This node was silent for too long. It may start anew.
    DeclaredLost,
    /// Another server has joined as this node.
    Replaced,
    /// A newer program has changed the store.
    Outdated,
}

#[derive(Default)]
struct Seen {
    nodes: Vec<Node>,
    /// When the newest beat was sent that was answered.
    at: Option<Instant>,
}

/// A node, as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    pub node: Node,
    /// Whether it is the node that was asked.
    pub is_this: bool,
}

impl Membership {
    pub(crate) fn new() -> Self {
        Self {
            me: OnceCell::new(),
            joined: OnceLock::new(),
            name: OnceLock::new(),
            seen: Mutex::default(),
            beaten: Notify::new(),
            fence: watch::Sender::new(None),
        }
    }

    pub(crate) fn note_join(&self) {
        self.joined.get_or_init(Instant::now);
    }

    /// How long ago this server has joined. `None` before that.
    pub(crate) fn since_join(&self) -> Option<Duration> {
        self.joined.get().map(Instant::elapsed)
    }

    /// The number of this node. `None` before it has joined.
    pub(crate) fn me(&self) -> Option<NodeId> {
        self.me.get().copied()
    }

    /// The nodes, as they were read before the first beat.
    pub(crate) fn know(&self, nodes: Vec<Node>) {
        if let Some(own) = nodes.iter().find(|node| Some(node.id) == self.me()) {
            self.name.get_or_init(|| own.name.as_str().into());
        }
        self.seen().nodes = nodes;
    }

    /// The nodes, as the answer to a beat that was sent at `at`.
    pub(crate) fn note(&self, nodes: Vec<Node>, at: Instant) {
        self.know(nodes);
        self.seen().at = Some(at);
        self.beaten.notify_waiters();
    }

    /// The name of this node. `None` before it has joined, or if the store cannot be shared.
    pub(crate) fn name(&self) -> Option<Arc<str>> {
        self.name.get().cloned()
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<Node> {
        self.seen().nodes.iter().find(|node| node.id == id).cloned()
    }

    /// The nodes that have this number or this name.
    pub(crate) fn named(&self, wanted: &str) -> Vec<Node> {
        let seen = self.seen();
        let nodes = seen.nodes.iter().filter(|node| node.id.to_string() == wanted || node.name == wanted);
        nodes.cloned().collect()
    }

    /// Whether another node runs agents of this type, now or when it is back: messages and launches wait for a node
    /// that is away.
    pub(crate) fn runs_elsewhere(&self, kind: &str) -> bool {
        !self.names(kind, &[NodeState::Alive, NodeState::Away]).is_empty()
    }

    /// The names of the other nodes that run agents of this type now.
    pub(crate) fn names_with_type(&self, kind: &str) -> Vec<String> {
        self.names(kind, &[NodeState::Alive])
    }

    fn names(&self, kind: &str, states: &[NodeState]) -> Vec<String> {
        let me = self.me();
        let runs = |node: &&Node| {
            let is_other = Some(node.id) != me && states.contains(&node.state);
            is_other && node.types.iter().any(|known| known == kind)
        };
        self.seen().nodes.iter().filter(runs).map(|node| node.name.clone()).collect()
    }

    pub(crate) fn by_state(&self) -> [u64; NodeState::ALL.len()] {
        let seen = self.seen();
        NodeState::ALL.map(|state| seen.nodes.iter().filter(|node| node.state == state).count() as u64)
    }

    /// A node was declared lost after the newest beat.
    pub(crate) fn note_lost(&self, id: NodeId) {
        let mut seen = self.seen();
        seen.nodes.iter_mut().filter(|node| node.id == id).for_each(|node| node.state = NodeState::Lost);
    }

    pub(crate) fn state_of(&self, id: NodeId) -> Option<NodeState> {
        self.seen().nodes.iter().find(|node| node.id == id).map(|node| node.state)
    }

    pub(crate) fn name_of(&self, id: NodeId) -> String {
        let seen = self.seen();
        let name = seen.nodes.iter().find(|node| node.id == id).map(|node| node.name.clone());
        name.unwrap_or_else(|| id.to_string())
    }

    pub(crate) fn fence(&self, why: Fence) {
        self.fence.send_replace(Some(why));
    }

    pub(crate) fn is_fenced(&self) -> bool {
        self.fence.borrow().is_some()
    }

    /// Waits until this server may save nothing any more.
    pub(crate) async fn fenced(&self) -> Fence {
        let mut fence = self.fence.subscribe();
        match fence.wait_for(Option::is_some).await {
            Ok(why) if why.is_some() => why.unwrap_or(Fence::Replaced),
            _ => std::future::pending().await,
        }
    }

    pub(crate) fn since_beat(&self) -> Option<Duration> {
        self.seen().at.map(|at| at.elapsed())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
