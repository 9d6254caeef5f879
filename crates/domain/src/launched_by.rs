//! Which agent has launched another one.

use crate::{Agent, AgentId};

/// The agent that has launched another one, and how deep this launch was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchedBy {
    pub agent: AgentId,
    /// 1 if no agent has launched `agent`.
    pub depth: u32,
}

impl LaunchedBy {
    /// Of an agent that is launched by `parent`.
    pub fn parent(parent: &Agent) -> Self {
        let depth = parent.launched_by.map_or(0, |above| above.depth);
        Self { agent: parent.id, depth: depth.saturating_add(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    #[test]
    fn a_grandchild_is_deeper_than_a_child() {
        let agent =
            |number| Agent::new(AgentId::new(Timestamp(1), [number; 10]), "demo".to_owned(), Timestamp(1));
        let first = agent(1);
        let by_first = LaunchedBy::parent(&first);
        assert_eq!(by_first, LaunchedBy { agent: first.id, depth: 1 });
        let second = Agent { launched_by: Some(by_first), ..agent(2) };
        assert_eq!(LaunchedBy::parent(&second), LaunchedBy { agent: second.id, depth: 2 });
    }
}
