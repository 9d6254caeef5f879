//! The one node of a store that cannot be shared. No other node leaves anything for it.

use async_trait::async_trait;
use tokenrail_domain::NodeId;
use tokenrail_ports::{Heard, Hint, IBus, Node, NodeState, Pulse};

/// The node, as it sees itself.
pub(crate) fn only_node() -> Node {
    Node {
        id: NodeId::ONLY,
        name: String::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        state: NodeState::Alive,
        types: Vec::new(),
        pulse: Pulse { incarnation: 0, beat: 0 },
    }
}

/// The bus of a store that cannot be shared: nobody listens, and nothing is heard.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentBus;

#[async_trait]
impl IBus for SilentBus {
    fn send_hint(&self, _hint: Hint) {}

    async fn heard(&self) -> Heard {
        std::future::pending().await
    }

    fn is_working(&self) -> bool {
        true
    }
}
