//! Which node takes a launch.

use tokenrail_domain::NodeId;
use tokenrail_ports::NodeState;

use crate::error::Refusal;
use crate::service::AgentService;

/// What a launch needs of the node that takes it.
#[derive(Debug, Clone, Copy)]
pub(in crate::use_cases) struct LaunchNeeds<'a> {
    pub(in crate::use_cases) kind: &'a str,
    /// The name or the number of a node.
    pub(in crate::use_cases) node: Option<&'a str>,
    /// Whether it needs something that is on the disk of this node: a folder, or a session.
    pub(in crate::use_cases) is_bound: bool,
}

/// Which node takes a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::use_cases) enum Placement {
    /// The node that was asked.
    Here,
    /// Another node, because the launch names it.
    At(NodeId),
    /// The first node with a free slot that has the agent type.
    Anywhere,
}

impl Placement {
    /// The home of the new agent. `None`: the node that saves it.
    pub(in crate::use_cases) fn home(self) -> Option<NodeId> {
        match self {
            Self::Here => None,
            Self::At(node) => Some(node),
            Self::Anywhere => Some(NodeId::ANY),
        }
    }
}

impl AgentService {
    /// Chooses the node that takes a launch of this type. A launch that names a folder or a session stays here, because
    /// these are on this node's disk. Any other one is left to all nodes if this one has no free slot or lacks the
    /// type, and another one has it.
    pub(in crate::use_cases) fn placement(&self, needs: LaunchNeeds<'_>) -> Result<Placement, Refusal> {
        let LaunchNeeds { kind, node, is_bound } = needs;
        let is_known = self.core.outside.types.get(kind).is_some();
        if let Some(node) = node {
            let node = self.named_node(node)?;
            if node == self.core.membership.me().unwrap_or(NodeId::ONLY) {
                return self.here_if(is_known, kind);
            }
            if is_bound {
                return Err(Refusal::FolderElsewhere);
            }
            return self.at(node, kind);
        }
        let is_shared = self.core.outside.nodes.is_shared();
        let can_run = is_known && self.core.has_free_slot();
        if !is_shared || is_bound || can_run || !self.core.membership.runs_elsewhere(kind) {
            return self.here_if(is_known, kind);
        }
        Ok(Placement::Anywhere)
    }

    fn here_if(&self, is_known: bool, kind: &str) -> Result<Placement, Refusal> {
        if is_known { Ok(Placement::Here) } else { Err(self.core.outside.unknown_type(kind)) }
    }

    fn at(&self, node: NodeId, kind: &str) -> Result<Placement, Refusal> {
        let known = self.core.membership.node(node).map(|node| node.types).unwrap_or_default();
        if known.iter().any(|known| known == kind) {
            return Ok(Placement::At(node));
        }
        Err(Refusal::UnknownType { name: kind.to_owned(), known: known.join(", ") })
    }

    /// The node that is alive and has this name or number.
    fn named_node(&self, wanted: &str) -> Result<NodeId, Refusal> {
        if !self.core.outside.nodes.is_shared() {
            let is_this = wanted == NodeId::ONLY.to_string();
            return if is_this { Ok(NodeId::ONLY) } else { Err(Refusal::NoNodeNamed(wanted.to_owned())) };
        }
        let named = self.core.membership.named(wanted);
        let alive: Vec<NodeId> =
            named.iter().filter(|node| node.state == NodeState::Alive).map(|node| node.id).collect();
        match (&*alive, &*named) {
            (&[node], _) => Ok(node),
            ([], []) => Err(Refusal::NoNodeNamed(wanted.to_owned())),
            ([], _) => Err(Refusal::NodeNotAlive { node: wanted.to_owned() }),
            (several, _) => {
                let ids: Vec<String> = several.iter().map(NodeId::to_string).collect();
                Err(Refusal::SeveralNodesNamed { name: wanted.to_owned(), ids: ids.join(", ") })
            }
        }
    }
}
