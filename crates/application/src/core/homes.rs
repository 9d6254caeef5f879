//! Which node has an agent, and whether this node may act.

use tokenrail_domain::{Agent, Copied, NodeId};
use tokenrail_ports::{NodeState, StoreError};

use super::Core;
use crate::error::Refusal;
use crate::planted::{Bug, is_planted};

impl Core {
    /// Joins the nodes of the store, once: a second time would fence this server's own tasks.
    pub(crate) async fn join(&self) -> Result<NodeId, StoreError> {
        let join = async || {
            let me = self.outside.nodes.join().await?;
            self.membership.note_join();
            self.outside
                .nodes
                .offer(self.outside.types.all().map(|(name, _)| name.clone()).collect())
                .await?;
            Ok(me)
        };
        self.membership.me.get_or_try_init(join).await.copied()
    }

    /// Whether this node runs the agent's turns.
    pub(crate) fn is_here(&self, agent: &Agent) -> bool {
        self.membership.me().is_none_or(|me| agent.is_at_home(me))
    }

    /// The node that runs the agent's turns, if it is another one.
    pub(crate) fn elsewhere(&self, agent: &Agent) -> Option<NodeId> {
        agent.home.filter(|_| !self.is_here(agent))
    }

    /// Whether another node runs the agent's turns, and is lost.
    pub(crate) fn is_home_lost(&self, agent: &Agent) -> bool {
        self.elsewhere(agent).and_then(|home| self.membership.state_of(home)).is_some_and(NodeState::is_lost)
    }

    /// # Errors
    /// [`Refusal::NodeUnavailable`] if another node runs the agent's turns, and is lost.
    pub(crate) fn check_home(&self, agent: &Agent) -> Result<(), Refusal> {
        match self.elsewhere(agent) {
            Some(home) if self.is_home_lost(agent) => {
                Err(Refusal::NodeUnavailable { node: self.membership.name_of(home) })
            }
            _ => Ok(()),
        }
    }

    /// Whether any node can run the agent's next turn, because nothing of it is on the disk of a node.
    pub(crate) fn needs_no_home(&self, agent: &Agent) -> bool {
        match agent.copy {
            Some(Copied::Replay(_)) => true,
            Some(Copied::File) => false,
            None => self.outside.types.get(&agent.kind).is_some_and(|kind| !kind.runner.needs_home()),
        }
    }

    /// Whether this node cannot know what the agent needs: its type is not configured here.
    pub(crate) fn lacks_type(&self, agent: &Agent) -> bool {
        agent.copy.is_none() && self.outside.types.get(&agent.kind).is_none()
    }

    /// The agent, which is about to get a message. If its node is lost, and it needs none, it is let go, so that any
    /// node runs the turn. If that fails now, those who end the turns of the lost node do it.
    ///
    /// # Errors
    /// [`Refusal::NodeUnavailable`] if it needs its node, and that is lost. [`Refusal::TypeNotHere`] if this node does
    /// not know whether it does.
    pub(crate) async fn reachable(&self, agent: Agent) -> Result<Agent, Refusal> {
        if !self.is_home_lost(&agent) {
            return Ok(agent);
        }
        if let Some(node) = self.elsewhere(&agent).filter(|_| self.lacks_type(&agent)) {
            let (node, kind) = (self.membership.name_of(node), agent.kind);
            return Err(Refusal::TypeNotHere { node, nodes: self.membership.names_with_type(&kind), kind });
        }
        if !self.needs_no_home(&agent) {
            self.check_home(&agent)?;
        }
        // A turn that waits may have begun there. Then it must not run anywhere: who takes the agent over ends it.
        if !self.outside.nodes.may_have_begun(agent.id).await? {
            self.outside.nodes.let_go(agent.id).await?;
        }
        Ok(self.outside.agents.get(agent.id).await?.unwrap_or(agent))
    }

    /// Whether this node may start a run.
    pub(crate) fn is_in_touch(&self) -> bool {
        let most = self.limits.nodes.in_touch();
        !self.outside.nodes.is_shared()
            || is_planted(Bug::NodeStartsOutOfTouch)
            || self.membership.since_beat().is_some_and(|since| since < most)
    }

    /// Waits until this node may start a run: until it has beaten so recently that no other node declares it lost soon.
    /// Returns `None` if the server shuts down meanwhile.
    pub(crate) async fn until_in_touch(&self) -> Option<()> {
        loop {
            let beaten = self.membership.beaten.notified();
            if self.is_in_touch() {
                return Some(());
            }
            tokio::select! {
                biased;
                () = self.closing.cancelled() => return None,
                () = beaten => {}
            }
        }
    }
}
