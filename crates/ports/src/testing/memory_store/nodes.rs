//! How the memory store is shared by several nodes.

use std::sync::PoisonError;

use async_trait::async_trait;
use tokenrail_domain::{Agent, AgentId, Event, NodeId, Sequence, Timestamp};

use super::cluster::Cluster;
use super::errands::Look;
use super::shelf::Shelf;
use super::{MemoryStore, State};
use crate::planted::{Bug, is_planted};
use crate::rules::SharedLimit;
use crate::{
    Epoch, Errands, Failovers, INodes, LaunchClaim, LaunchCount, NewTurn, Node, NodeState, PageLimit, Pulse,
    StoreError, StoreResult,
};

impl State {
    pub(super) fn touch(&mut self, agent: AgentId) {
        self.cluster.last_touch += 1;
        self.cluster.touches.insert(agent, self.cluster.last_touch);
    }

    /// The home of an agent that this node creates.
    pub(super) fn home(&self, node: NodeId) -> Option<NodeId> {
        self.cluster.is_shared.then_some(node)
    }

    /// Adds an agent: of this node, or of the one that the agent names.
    pub(super) fn add(&mut self, agent: Agent, turn: Option<NewTurn>, node: NodeId) {
        let home = agent.home.filter(|_| self.cluster.is_shared).or(self.home(node));
        self.touch(agent.id);
        let is_mine = home.is_none_or(|home| home == node);
        let owner = (turn.is_some() && is_mine).then_some(node);
        self.shelves.insert(agent.id, Shelf { owner, ..Shelf::new(Agent { home, ..agent }, turn) });
    }

    pub(super) fn claim(&mut self, agent: AgentId, node: NodeId) -> Option<Epoch> {
        let of = self.shelves.get_mut(&agent)?;
        match of.owner {
            Some(owner) if owner != node => return None,
            None if !of.agent.is_at_home(node) => return None,
            Some(_) => {}
            None => {
                of.owner = Some(node);
                of.epoch.0 += 1;
            }
        }
        Some(of.epoch)
    }

    pub(super) fn read_many(
        &self,
        wanted: &[(AgentId, Sequence)],
        limit: PageLimit,
    ) -> Vec<(AgentId, Vec<Event>)> {
        let (mut left, mut read) = (SharedLimit::new(limit), Vec::new());
        for (agent, after) in wanted {
            let Some(limit) = left.next_page() else { break };
            let Some(of) = self.shelves.get(agent) else { continue };
            let events = of.read(*after, limit);
            left.take(&events);
            if !events.is_empty() {
                read.push((*agent, events));
            }
        }
        read
    }

    fn join(&mut self, id: NodeId) -> u64 {
        let before = self.cluster.nodes.get(&id).map_or(0, |node| node.pulse.incarnation);
        let pulse = Pulse { incarnation: before + 1, beat: 0 };
        let (name, version) = (format!("node-{id}"), "0.0.0".to_owned());
        let types = self.cluster.nodes.get(&id).map(|node| node.types.clone()).unwrap_or_default();
        self.cluster.lost_starts.heal(id);
        self.cluster.nodes.insert(id, Node { id, name, version, state: NodeState::Alive, types, pulse });
        let open = self.shelves.values_mut().filter(|shelf| !shelf.open_turns().is_empty());
        for shelf in open.filter(|shelf| shelf.belongs_to(id)) {
            shelf.epoch.0 += 1;
        }
        pulse.incarnation
    }

    /// The node, if it is alive and has not joined anew.
    pub(super) fn own(&mut self, id: NodeId, incarnation: u64) -> StoreResult<&mut Node> {
        let own = self
            .cluster
            .nodes
            .get_mut(&id)
            .filter(|node| node.state == NodeState::Alive && node.pulse.incarnation == incarnation);
        own.ok_or(StoreError::Fenced)
    }

    fn is_orphan(&self, of: &Shelf) -> bool {
        let responsible = of.owner.or(of.agent.home);
        !of.open_turns().is_empty() && responsible.is_some_and(|node| self.cluster.is_lost(node))
    }

    fn take_over(&mut self, agent: AgentId, node: NodeId) -> Option<Epoch> {
        let is_orphan = self.shelves.get(&agent).is_some_and(|shelf| self.is_orphan(shelf));
        let of = self.shelves.get_mut(&agent).filter(|_| is_orphan)?;
        of.owner = Some(node);
        of.epoch.0 += u64::from(!is_planted(Bug::TakeoverWithoutEpoch));
        Some(of.epoch)
    }
}

impl MemoryStore {
    pub(super) fn incarnation(&self) -> u64 {
        *self.incarnation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl INodes for MemoryStore {
    fn is_shared(&self) -> bool {
        self.lock().cluster.is_shared
    }

    fn failovers(&self) -> Failovers {
        self.lock().cluster.failover.told()
    }

    async fn shared_time(&self) -> StoreResult<Option<Timestamp>> {
        let cluster = &mut self.lock().cluster;
        Ok(cluster.is_shared.then(|| cluster.time()))
    }

    async fn note_seen(&self, seen: Vec<(AgentId, Sequence)>) -> StoreResult<()> {
        self.act(|state| state.note_seen(self.node, seen)).await;
        Ok(())
    }

    async fn seen(&self, agent: AgentId) -> StoreResult<Sequence> {
        Ok(self.act(|state| state.cluster.failover.seen(agent)).await)
    }

    async fn is_catching_up(&self) -> StoreResult<bool> {
        Ok(self.act(|state| state.is_catching_up()).await)
    }

    async fn join(&self) -> StoreResult<NodeId> {
        let join = |state: &mut State| match state.cluster.joins_refused.checked_sub(1) {
            None => Ok(state.join(self.node)),
            Some(left) => {
                state.cluster.joins_refused = left;
                Err(StoreError::Busy)
            }
        };
        let incarnation = self.act(join).await?;
        *self.incarnation.lock().unwrap_or_else(PoisonError::into_inner) = incarnation;
        Ok(self.node)
    }

    async fn beat(&self) -> StoreResult<Vec<Node>> {
        let incarnation = self.incarnation();
        self.act(|state| {
            if state.cluster.beats_refused {
                return Err(StoreError::Unavailable("told to fail".into()));
            }
            state.own(self.node, incarnation)?.pulse.beat += 1;
            state.cluster.lost_starts.heal(self.node);
            Ok(state.cluster.nodes.values().cloned().collect())
        })
        .await
    }

    async fn offer(&self, types: Vec<String>) -> StoreResult<()> {
        self.act(|state| {
            if let Some(own) = state.cluster.nodes.get_mut(&self.node) {
                own.types = types;
            }
        })
        .await;
        Ok(())
    }

    async fn count_launch(&self, per_minute: u32) -> StoreResult<LaunchCount> {
        Ok(self.act(|state| state.cluster.launches.count(per_minute)).await)
    }

    async fn waiting_launches(&self) -> StoreResult<u64> {
        Ok(self
            .act(|state| state.shelves.values().filter(|shelf| shelf.is_waiting_launch()).count() as u64)
            .await)
    }

    async fn claim_launches(&self, claim: LaunchClaim) -> StoreResult<Vec<AgentId>> {
        let incarnation = self.incarnation();
        let claimed = |state: &mut State| match state.own(self.node, incarnation).map(drop) {
            Ok(()) if !state.is_catching_up() => state.claim_launches(self.node, &claim),
            Ok(()) | Err(_) => Vec::new(),
        };
        self.answered(Ok(self.act(claimed).await))
    }

    async fn set_folder(&self, agent: AgentId, cwd: String) -> StoreResult<()> {
        self.act(|state| {
            state.touch(agent);
            state.shelf_mut(agent).map(|shelf| shelf.agent.cwd = cwd)
        })
        .await
    }

    async fn leave(&self) -> StoreResult<()> {
        let incarnation = self.incarnation();
        self.act(|state| {
            state.own(self.node, incarnation)?.state = NodeState::Away;
            Ok(())
        })
        .await
    }

    async fn nodes(&self) -> StoreResult<Vec<Node>> {
        Ok(self.act(|state| state.cluster.nodes.values().cloned().collect()).await)
    }

    async fn declare_lost(&self, node: NodeId, seen: Pulse) -> StoreResult<bool> {
        Ok(self
            .act(|state| {
                if state.is_catching_up() {
                    return false;
                }
                let found = state.cluster.nodes.get_mut(&node);
                let silent = found.filter(|node| node.pulse == seen && !node.state.is_lost());
                silent.map(|node| node.state = NodeState::Lost).is_some()
            })
            .await)
    }

    async fn forget(&self, node: NodeId) -> StoreResult<bool> {
        Ok(self
            .act(|state| {
                let found = state.cluster.nodes.get_mut(&node);
                let stopped = found.filter(|node| matches!(node.state, NodeState::Away | NodeState::Lost));
                let is_forgotten = stopped.map(|node| node.state = NodeState::Gone).is_some();
                if is_forgotten {
                    state.cluster.leftovers.retain(|(home, _)| *home != node);
                }
                is_forgotten
            })
            .await)
    }

    async fn orphans(&self, limit: usize) -> StoreResult<Vec<AgentId>> {
        Ok(self
            .act(|state| {
                let orphans = state.shelves.values().filter(|shelf| state.is_orphan(shelf));
                let orphans = orphans.map(|shelf| shelf.agent.id).collect();
                state.cluster.rounds.next(self.node, Look::Orphans, orphans, limit)
            })
            .await)
    }

    async fn take_over(&self, agent: AgentId) -> StoreResult<Option<Epoch>> {
        let incarnation = self.incarnation();
        let take = |state: &mut State| match state.own(self.node, incarnation).map(drop) {
            Ok(()) if !state.is_catching_up() => state.take_over(agent, self.node),
            Ok(()) | Err(_) => None,
        };
        self.answered(Ok(self.act(take).await))
    }

    async fn let_go(&self, agent: AgentId) -> StoreResult<bool> {
        let incarnation = self.incarnation();
        let let_go = |state: &mut State| {
            if state.is_catching_up() {
                return Err(StoreError::Busy);
            }
            Ok(state.own(self.node, incarnation).is_ok() && state.let_go(agent, self.node))
        };
        self.answered(self.act(let_go).await)
    }

    async fn let_all_go(&self, types: Vec<String>, limit: usize) -> StoreResult<usize> {
        let incarnation = self.incarnation();
        self.act(|state| match state.own(self.node, incarnation).map(drop) {
            Ok(()) if state.is_catching_up() => Err(StoreError::Busy),
            Ok(()) => state.let_all_go(&types, limit, self.node),
            Err(_) => Ok(0),
        })
        .await
    }

    async fn may_have_begun(&self, agent: AgentId) -> StoreResult<bool> {
        Ok(self.act(|state| state.may_have_begun(agent)).await)
    }

    async fn errands(&self, limit: usize) -> StoreResult<Errands> {
        Ok(self.act(|state| state.errands(self.node, limit)).await)
    }

    async fn forget_leftover(&self, agent: AgentId) -> StoreResult<()> {
        self.act(|state| state.cluster.leftovers.remove(&(self.node, agent))).await;
        Ok(())
    }

    async fn set_watched(&self, agent: AgentId, watched: bool) -> StoreResult<()> {
        self.act(|state| {
            let row = (agent, self.node);
            if watched {
                state.cluster.watched.insert(row)
            } else {
                state.cluster.watched.remove(&row)
            };
        })
        .await;
        Ok(())
    }

    async fn take_watched(&self) -> StoreResult<Vec<AgentId>> {
        Ok(self
            .act(|state| {
                let Cluster { watched, nodes, .. } = &mut state.cluster;
                let is_lost = |id| nodes.get(&id).is_some_and(|node| node.state.is_lost());
                let rows = std::mem::take(watched).into_iter();
                *watched =
                    rows.map(|(agent, node)| (agent, if is_lost(node) { self.node } else { node })).collect();
                watched.iter().filter(|(_, node)| *node == self.node).map(|(agent, _)| *agent).collect()
            })
            .await)
    }

    async fn is_watched_elsewhere(&self, agent: AgentId) -> StoreResult<bool> {
        Ok(self
            .act(|state| {
                let Cluster { watched, nodes, .. } = &state.cluster;
                let is_alive = |id| nodes.get(id).is_some_and(|node| node.state == NodeState::Alive);
                watched.iter().any(|(of, node)| *of == agent && *node != self.node && is_alive(node))
            })
            .await)
    }
}
