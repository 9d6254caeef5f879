//! The simulated store, as the nodes of a cluster use it.

use async_trait::async_trait;
use tokenrail_domain::{AgentId, NodeId, Sequence};
use tokenrail_ports::{
    Epoch, Errands, Failovers, IInbox, INodes, LaunchClaim, LaunchCount, Letter, LetterId, LetterReply, Node,
    Pulse, StoreError, StoreResult,
};

use crate::planted_outside;
use crate::store::SimStore;

#[async_trait]
impl INodes for SimStore {
    fn is_shared(&self) -> bool {
        self.0.disk.is_shared()
    }

    fn failovers(&self) -> Failovers {
        self.0.disk.failovers()
    }

    async fn note_seen(&self, seen: Vec<(AgentId, Sequence)>) -> StoreResult<()> {
        self.write("note seen", self.0.disk.note_seen(seen)).await
    }

    async fn seen(&self, agent: AgentId) -> StoreResult<Sequence> {
        SimStore::read(self, "seen", self.0.disk.seen(agent)).await
    }

    async fn is_catching_up(&self) -> StoreResult<bool> {
        SimStore::read(self, "is catching up", self.0.disk.is_catching_up()).await
    }

    async fn join(&self) -> StoreResult<NodeId> {
        let join = async {
            if !planted_outside::raises_epochs() {
                return Ok(NodeId::ONLY);
            }
            let node = self.0.disk.join().await?;
            if let Some(place) = &self.0.node {
                place.has_joined();
            }
            Ok(node)
        };
        self.write("join", join).await
    }

    async fn beat(&self) -> StoreResult<Vec<Node>> {
        let beat = async {
            let Some(place) = &self.0.node else { return self.0.disk.beat().await };
            if place.is_cut_off() {
                return Err(StoreError::Unavailable("the connection for beats is gone".into()));
            }
            let seen = self.0.disk.beat().await?;
            place.has_beaten(self.0.now_ms());
            Ok(seen)
        };
        self.write("beat", beat).await
    }

    async fn offer(&self, types: Vec<String>) -> StoreResult<()> {
        self.write("offer", self.0.disk.offer(types)).await
    }

    async fn count_launch(&self, per_minute: u32) -> StoreResult<LaunchCount> {
        self.write("count launch", self.0.disk.count_launch(per_minute)).await
    }

    async fn waiting_launches(&self) -> StoreResult<u64> {
        SimStore::read(self, "waiting launches", self.0.disk.waiting_launches()).await
    }

    async fn claim_launches(&self, claim: LaunchClaim) -> StoreResult<Vec<AgentId>> {
        let claim = async {
            let claimed = self.0.disk.claim_launches(claim).await?;
            if let Some(place) = &self.0.node {
                for agent in &claimed {
                    self.0.reach("a launch was claimed");
                    place.owns(*agent);
                }
            }
            Ok(claimed)
        };
        self.write("claim launches", claim).await
    }

    async fn set_folder(&self, agent: AgentId, cwd: String) -> StoreResult<()> {
        self.write("set folder", self.0.disk.set_folder(agent, cwd)).await
    }

    async fn leave(&self) -> StoreResult<()> {
        self.write("leave", self.0.disk.leave()).await
    }

    async fn nodes(&self) -> StoreResult<Vec<Node>> {
        SimStore::read(self, "nodes", self.0.disk.nodes()).await
    }

    async fn declare_lost(&self, node: NodeId, seen: Pulse) -> StoreResult<bool> {
        let declare = async {
            let declared = self.0.disk.declare_lost(node, seen).await?;
            if let (Some(place), true) = (&self.0.node, declared) {
                self.0.reach("a node was declared lost");
                self.0.check(place.has_declared_lost(node, self.0.now_ms()));
            }
            Ok(declared)
        };
        self.write("declare lost", declare).await
    }

    async fn forget(&self, node: NodeId) -> StoreResult<bool> {
        self.write("forget", self.0.disk.forget(node)).await
    }

    async fn orphans(&self, limit: usize) -> StoreResult<Vec<AgentId>> {
        SimStore::read(self, "orphans", self.0.disk.orphans(limit)).await
    }

    async fn take_over(&self, agent: AgentId) -> StoreResult<Option<Epoch>> {
        self.late_appends_arrive(agent).await;
        let take = async {
            let taken = self.0.disk.take_over(agent).await?;
            if let (Some(place), Some(_)) = (&self.0.node, taken) {
                self.0.reach("an agent was taken over");
                place.owns(agent);
            }
            Ok(taken)
        };
        self.write("take over", take).await
    }

    async fn may_have_begun(&self, agent: AgentId) -> StoreResult<bool> {
        SimStore::read(self, "may have begun", self.0.disk.may_have_begun(agent)).await
    }

    async fn let_go(&self, agent: AgentId) -> StoreResult<bool> {
        self.write("let go", self.0.disk.let_go(agent)).await
    }

    async fn let_all_go(&self, types: Vec<String>, limit: usize) -> StoreResult<usize> {
        self.write("let all go", self.0.disk.let_all_go(types, limit)).await
    }

    async fn errands(&self, limit: usize) -> StoreResult<Errands> {
        SimStore::read(self, "errands", self.0.disk.errands(limit)).await
    }

    async fn forget_leftover(&self, agent: AgentId) -> StoreResult<()> {
        self.write("forget leftover", self.0.disk.forget_leftover(agent)).await
    }

    async fn set_watched(&self, agent: AgentId, watched: bool) -> StoreResult<()> {
        self.write("set watched", self.0.disk.set_watched(agent, watched)).await
    }

    async fn is_watched_elsewhere(&self, agent: AgentId) -> StoreResult<bool> {
        SimStore::read(self, "is watched elsewhere", self.0.disk.is_watched_elsewhere(agent)).await
    }

    async fn take_watched(&self) -> StoreResult<Vec<AgentId>> {
        self.write("take watched", self.0.disk.take_watched()).await
    }
}

#[async_trait]
impl IInbox for SimStore {
    async fn put(&self, to: NodeId, letter: Letter) -> StoreResult<()> {
        self.write("put", self.0.disk.put(to, letter)).await
    }

    async fn letters(&self, underway: Vec<LetterId>, limit: usize) -> StoreResult<Vec<Letter>> {
        SimStore::read(self, "letters", self.0.disk.letters(underway, limit)).await
    }

    async fn reply(&self, id: LetterId, reply: LetterReply) -> StoreResult<()> {
        self.write("reply", self.0.disk.reply(id, reply)).await
    }

    async fn reply_to(&self, id: LetterId) -> StoreResult<Option<LetterReply>> {
        SimStore::read(self, "reply to", self.0.disk.reply_to(id)).await
    }
}
