//! What the store does for its node, and how the node joins, beats and adopts agents.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use tokenrail_domain::{AgentId, NodeId, Sequence, Timestamp};
use tokenrail_ports::{
    Credential, CredentialDigest, CredentialKind, CredentialRoom, Epoch, Errands, Failovers, ICredentials,
    IInbox, INodes, LaunchClaim, LaunchCount, Letter, LetterId, LetterReply, Node, Pulse, StoreError,
    StoreFigures, StoreResult, ValidCredential,
};
use tokio::time::sleep;

use super::PostgresStore;
use crate::postgres::membership::JoinedNode;
use crate::postgres::statements::catch_up::{self, CatchUpTimes};
use crate::postgres::statements::clock;
use crate::postgres::statements::credentials::{self, AddCredentialCommand, RedeemCommand};
use crate::postgres::statements::errands::{self, ForgetLeftoverCommand, TakeWatchedCommand, WatchCommand};
use crate::postgres::statements::inbox::{self, PutCommand, ReplyCommand};
use crate::postgres::statements::launches::{
    self, ClaimLaunchesCommand, CountLaunchCommand, SetFolderCommand,
};
use crate::postgres::statements::let_go::{LetAllGoCommand, LetGoCommand};
use crate::postgres::statements::nodes::{
    self, AdoptCommand, BeatCommand, DeclareLostCommand, ForgetCommand, JoinCommand, LeaveCommand,
    OfferCommand,
};
use crate::postgres::statements::seen::{self, NoteSeenCommand};
use crate::postgres::statements::takeover::{self, TakeOverCommand};

/// How often a node beats while it adopts agents.
const ADOPTION_BEAT: Duration = Duration::from_secs(1);

impl PostgresStore {
    /// This node's number in the database. Fails before it has joined.
    pub(super) fn node(&self) -> StoreResult<i64> {
        self.inner.membership.id()
    }

    pub(super) fn times(&self) -> CatchUpTimes {
        CatchUpTimes::of(&self.inner.connector.limits)
    }

    async fn beat_as(&self, node: JoinedNode) -> StoreResult<Vec<Node>> {
        let (healed, newest) = (self.inner.healer.healed(), self.inner.healer.newest());
        self.write_on(&self.inner.beats, BeatCommand { node, healed, newest }).await
    }

    /// Adopts the agents that have no home. That may take long, so the node beats meanwhile.
    async fn adopt(&self, joined: JoinedNode) -> StoreResult<()> {
        let adopting = self.write(AdoptCommand(joined));
        tokio::pin!(adopting);
        loop {
            tokio::select! {
                biased;
                adopted = &mut adopting => return adopted,
                () = sleep(ADOPTION_BEAT) => {
                    // A beat that fails is made up for by the next one.
                    if let Err(error) = self.beat_as(joined).await {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(error, "cannot tell the other nodes that this one is alive");
                    }
                }
            }
        }
    }
}

#[async_trait]
impl INodes for PostgresStore {
    fn is_shared(&self) -> bool {
        true
    }

    fn figures(&self) -> StoreFigures {
        self.inner.connector.figures.read()
    }

    fn failovers(&self) -> Failovers {
        self.inner.healer.failovers()
    }

    async fn shared_time(&self) -> StoreResult<Option<Timestamp>> {
        self.read_with(|db| async move { clock::now(&db).await }).await.map(Some)
    }

    async fn note_seen(&self, seen: Vec<(AgentId, Sequence)>) -> StoreResult<()> {
        let node = self.inner.membership.require()?;
        let timeline = self.inner.connector.known.timeline();
        if seen.is_empty() && self.inner.told.load(Ordering::Acquire) == timeline {
            return Ok(());
        }
        self.write(NoteSeenCommand { node, seen }).await?;
        self.inner.told.store(timeline, Ordering::Release);
        Ok(())
    }

    async fn seen(&self, agent: AgentId) -> StoreResult<Sequence> {
        self.read_with(move |db| async move { seen::seen(&db, agent).await }).await
    }

    async fn is_catching_up(&self) -> StoreResult<bool> {
        let times = self.times();
        self.read_on(&self.inner.lookout, move |db| async move { catch_up::is_awaited(&db, times).await })
            .await
    }

    async fn join(&self) -> StoreResult<NodeId> {
        let joined = {
            let identity = self.inner.membership.identity()?;
            let (token, schema) = (self.inner.membership.token(), self.inner.connector.steps.schema());
            self.write(JoinCommand { identity, token, schema }).await?
        };
        if self.read_with(|db| async move { nodes::has_homeless(&db).await }).await? {
            Box::pin(self.adopt(joined)).await?;
        }
        self.inner.membership.set(joined);
        Ok(joined.node_id())
    }

    async fn beat(&self) -> StoreResult<Vec<Node>> {
        let nodes = self.beat_as(self.inner.membership.require()?).await?;
        self.begin_upkeep();
        Ok(nodes)
    }

    async fn offer(&self, types: Vec<String>) -> StoreResult<()> {
        self.write(OfferCommand(self.inner.membership.require()?, types)).await
    }

    async fn count_launch(&self, per_minute: u32) -> StoreResult<LaunchCount> {
        self.write(CountLaunchCommand { per_minute }).await
    }

    async fn waiting_launches(&self) -> StoreResult<u64> {
        self.read_with(|db| async move { launches::waiting(&db).await }).await
    }

    async fn claim_launches(&self, claim: LaunchClaim) -> StoreResult<Vec<AgentId>> {
        let node = self.inner.membership.require()?;
        // Mostly there is none, and a write waits for the disk.
        if !self.read_on(&self.inner.lookout, |db| async move { launches::any(&db).await }).await? {
            return Ok(Vec::new());
        }
        self.write_on(&self.inner.takeovers, ClaimLaunchesCommand { node, claim, times: self.times() }).await
    }

    async fn set_folder(&self, agent: AgentId, cwd: String) -> StoreResult<()> {
        self.write(SetFolderCommand { agent, cwd }).await
    }

    async fn leave(&self) -> StoreResult<()> {
        self.write_on(&self.inner.beats, LeaveCommand(self.inner.membership.require()?)).await
    }

    async fn nodes(&self) -> StoreResult<Vec<Node>> {
        // Not on the connection of the beats: clients ask for this too.
        self.read_on(&self.inner.nodes, |db| async move { nodes::all(&db).await }).await
    }

    async fn declare_lost(&self, node: NodeId, seen: Pulse) -> StoreResult<bool> {
        self.write_on(&self.inner.takeovers, DeclareLostCommand(node, seen, self.times())).await
    }

    async fn forget(&self, node: NodeId) -> StoreResult<bool> {
        self.write(ForgetCommand(node)).await
    }

    async fn orphans(&self, limit: usize) -> StoreResult<Vec<AgentId>> {
        let round = Arc::clone(&self.inner.orphans);
        self.read_on(
            &self.inner.lookout,
            move |db| async move { takeover::orphans(&db, limit, &round).await },
        )
        .await
    }

    async fn take_over(&self, agent: AgentId) -> StoreResult<Option<Epoch>> {
        let node = self.inner.membership.require()?;
        let command = TakeOverCommand { node, agent, times: self.times() };
        let taken = self.write_on(&self.inner.takeovers, command).await;
        if matches!(taken, Err(StoreError::OutcomeUnknown(_))) {
            self.inner.unknown_takeovers().insert(agent);
        }
        taken
    }

    async fn may_have_begun(&self, agent: AgentId) -> StoreResult<bool> {
        self.read_on(&self.inner.lookout, move |db| async move { takeover::may_have_begun(&db, agent).await })
            .await
    }

    async fn let_go(&self, agent: AgentId) -> StoreResult<bool> {
        let (node, times) = (self.inner.membership.require()?, self.times());
        Ok(self.write_on(&self.inner.takeovers, LetGoCommand { node, agent, times }).await?.is_some())
    }

    async fn let_all_go(&self, types: Vec<String>, limit: usize) -> StoreResult<usize> {
        let (node, times) = (self.inner.membership.require()?, self.times());
        self.write(LetAllGoCommand { node, types, limit, times }).await
    }

    async fn errands(&self, limit: usize) -> StoreResult<Errands> {
        let (node, times, rounds) = (self.node()?, self.times(), Arc::clone(&self.inner.errands));
        self.read_on(&self.inner.lookout, move |db| async move {
            let reading = db.clone();
            db.view(async move { errands::errands(&reading, node, limit, &rounds, times).await }).await
        })
        .await
    }

    async fn forget_leftover(&self, agent: AgentId) -> StoreResult<()> {
        let node = self.node()?;
        self.write(ForgetLeftoverCommand { node, agent }).await
    }

    async fn set_watched(&self, agent: AgentId, watched: bool) -> StoreResult<()> {
        let node = self.node()?;
        self.write(WatchCommand { node, agent, watched }).await
    }

    async fn is_watched_elsewhere(&self, agent: AgentId) -> StoreResult<bool> {
        let node = self.node()?;
        self.read_with(move |db| async move { errands::is_watched_elsewhere(&db, agent, node).await }).await
    }

    async fn take_watched(&self) -> StoreResult<Vec<AgentId>> {
        let node = self.node()?;
        self.write_on(&self.inner.takeovers, TakeWatchedCommand { node }).await
    }
}

#[async_trait]
impl IInbox for PostgresStore {
    async fn put(&self, to: NodeId, letter: Letter) -> StoreResult<()> {
        self.write(PutCommand::new(to, letter)?).await
    }

    async fn letters(&self, underway: Vec<LetterId>, limit: usize) -> StoreResult<Vec<Letter>> {
        let node = self.node()?;
        let open =
            self.read_on(&self.inner.lookout, move |db| async move {
                inbox::open(&db, node, &underway, limit).await
            })
            .await?;
        for unreadable in open.unreadable {
            // Its writer waits for a reply.
            self.write(ReplyCommand::new(unreadable, LetterReply::NotDelivered)?).await?;
        }
        Ok(open.letters)
    }

    async fn reply(&self, id: LetterId, reply: LetterReply) -> StoreResult<()> {
        self.write(ReplyCommand::new(id, reply)?).await.map(drop)
    }

    async fn reply_to(&self, id: LetterId) -> StoreResult<Option<LetterReply>> {
        self.read_with(move |db| async move { inbox::reply_to(&db, id).await }).await
    }
}

#[async_trait]
impl ICredentials for PostgresStore {
    async fn add(&self, credential: Credential, room: CredentialRoom) -> StoreResult<bool> {
        self.write(AddCredentialCommand(credential, room)).await
    }

    async fn redeem(
        &self,
        kind: CredentialKind,
        digest: CredentialDigest,
    ) -> StoreResult<Option<ValidCredential>> {
        self.write(RedeemCommand(kind, digest)).await
    }

    async fn find(
        &self,
        kind: CredentialKind,
        digest: CredentialDigest,
    ) -> StoreResult<Option<ValidCredential>> {
        self.read_with(move |db| async move { credentials::find(&db, kind, digest).await }).await
    }
}
