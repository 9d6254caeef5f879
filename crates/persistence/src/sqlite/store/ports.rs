//! What the store does for the ports: most methods run one command (`write`) or one read (`read_with`), both in
//! `store.rs`.

use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_domain::{
    Agent, AgentEdit, AgentId, Event, ImageFile, ListedAgent, NodeId, Sequence, StopReason, Timestamp, Turn,
    TurnId, TurnNumber,
};
use tokenrail_ports::{
    AgentFilter, Append, Created, Deletion, Edited, Enqueued, Epoch, Errands, IAgentRepository, IArchive,
    IInbox, IJournal, INodes, Idempotency, LaunchClaim, LaunchCount, Letter, LetterId, LetterReply,
    ListBounds, ListPage, MessagePage, NewTurn, Node, PageLimit, Pulse, Recalled, Standing, StoreError,
    StoreResult, TouchMark, Touched, TurnFilter, TurnLimit, TurnList, TurnRange,
};

use super::SqliteStore;
use crate::only_node::only_node;
use crate::sqlite::statements::append::AppendCommand;
use crate::sqlite::statements::archive::{
    BeginImportCommand, DiscardImportCommand, FinishImportCommand, ImportEventsCommand, ImportTurnsCommand,
    RewriteCommand,
};
use crate::sqlite::statements::commands::{
    CancelCommand, CreateCommand, CreateIdleCommand, DeleteCommand, EnqueueCommand, ProbeCommand,
    PurgeCommand, StopTurnCommand,
};
use crate::sqlite::statements::edit::EditCommand;
use crate::sqlite::statements::ownership::{self, JoinCommand};
use crate::sqlite::statements::{agents, idempotency, journal, messages, prompt_images, turns};

#[async_trait]
impl IJournal for SqliteStore {
    async fn append(&self, append: Append) -> StoreResult<()> {
        self.write(AppendCommand::new(append)?).await
    }

    async fn read(&self, agent: AgentId, after: Sequence, limit: PageLimit) -> StoreResult<Vec<Event>> {
        self.read_with(move |db| journal::events_after(db, journal::agent_key(db, agent)?, after, limit))
            .await
    }

    async fn read_many(
        &self,
        wanted: Vec<(AgentId, Sequence)>,
        limit: PageLimit,
    ) -> StoreResult<Vec<(AgentId, Vec<Event>)>> {
        self.read_with(move |db| journal::events_of_many(db, &wanted, limit)).await
    }

    async fn messages(&self, agent: AgentId, after: Sequence, limit: PageLimit) -> StoreResult<MessagePage> {
        self.read_with(move |db| messages::page(db, agent, after, limit)).await
    }

    async fn compact_next(&self) -> StoreResult<bool> {
        self.compact().await
    }
}

#[async_trait]
impl IAgentRepository for SqliteStore {
    async fn create(&self, agent: Agent, turn: NewTurn, key: Option<Idempotency>) -> StoreResult<Created> {
        self.write(CreateCommand { agent, turn, key }).await
    }

    async fn create_idle(&self, agent: Agent) -> StoreResult<()> {
        self.write(CreateIdleCommand { agent }).await
    }

    async fn newest_key(&self) -> StoreResult<Option<Timestamp>> {
        self.read_with(|db| idempotency::newest(db).map_err(crate::sqlite::error::store_error)).await
    }

    async fn recall(&self, key: Idempotency) -> StoreResult<Option<Recalled>> {
        self.read_with(move |db| idempotency::recall(db, &key).map_err(crate::sqlite::error::store_error))
            .await
    }

    async fn enqueue(&self, turn: NewTurn, limit: u32, key: Option<Idempotency>) -> StoreResult<Enqueued> {
        self.write(EnqueueCommand { turn, queue_max: limit, key }).await
    }

    async fn get(&self, id: AgentId) -> StoreResult<Option<Agent>> {
        self.read_with(move |db| agents::get(db, id)).await
    }

    async fn list(&self, filter: AgentFilter, bounds: ListBounds) -> StoreResult<ListPage<ListedAgent>> {
        self.read_with(move |db| agents::list(db, &filter, bounds)).await
    }

    async fn standings(&self, wanted: Vec<AgentId>) -> StoreResult<Vec<Standing>> {
        self.read_with(move |db| agents::standings(db, &wanted)).await
    }

    async fn touched(&self, _after: Option<TouchMark>, _limit: usize) -> StoreResult<Touched> {
        // Everything that changes an agent comes from this node.
        Ok(Touched { agents: Vec::new(), mark: TouchMark(0) })
    }

    async fn claim(&self, agent: AgentId) -> StoreResult<Option<Epoch>> {
        self.read_with(move |db| ownership::epoch(db, agent)).await
    }

    async fn open_turns(&self, agent: AgentId) -> StoreResult<Vec<Turn>> {
        self.read_with(move |db| turns::open(db, agent)).await
    }

    async fn next_turn(&self, agent: AgentId) -> StoreResult<Option<(Agent, Turn)>> {
        self.read_with(move |db| Ok(agents::get(db, agent)?.zip(turns::open(db, agent)?.into_iter().next())))
            .await
    }

    async fn last_turn(&self, agent: AgentId) -> StoreResult<TurnNumber> {
        self.read_with(move |db| turns::last(db, journal::agent_key(db, agent)?)).await
    }

    async fn turns(&self, agent: AgentId, after: TurnNumber, limit: TurnLimit) -> StoreResult<Vec<Turn>> {
        self.read_with(move |db| turns::after(db, agent, after, limit)).await
    }

    async fn list_turns(&self, id: AgentId, range: TurnRange, bounds: ListBounds) -> StoreResult<TurnList> {
        self.read_with(move |db| turns::list(db, id, &range, bounds)).await
    }

    async fn all_turns(&self, filter: TurnFilter, bounds: ListBounds) -> StoreResult<TurnList> {
        self.read_with(move |db| turns::all(db, &filter, bounds)).await
    }

    async fn turn_at(&self, agent: AgentId, sequence: Sequence) -> StoreResult<Option<Turn>> {
        self.read_with(move |db| turns::at(db, agent, sequence)).await
    }

    async fn prompt_image(&self, turn: TurnId, position: u32) -> StoreResult<Option<ImageFile>> {
        self.read_with(move |db| prompt_images::one(db, turn, position)).await
    }

    async fn by_chat(&self, chat: String) -> StoreResult<Option<Agent>> {
        self.read_with(move |db| agents::by_chat(db, &chat)).await
    }

    async fn with_open_turns(&self, field_bytes: usize) -> StoreResult<Vec<ListedAgent>> {
        self.read_with(move |db| agents::with_open_turns(db, field_bytes)).await
    }

    async fn cancel(&self, agent: AgentId, at: Timestamp) -> StoreResult<u32> {
        self.write(CancelCommand { agent, at }).await
    }

    async fn edit(&self, agent: AgentId, edit: AgentEdit) -> StoreResult<Edited> {
        self.write(EditCommand { agent, edit }).await
    }

    async fn stop_turn(&self, turn: TurnId, reason: StopReason) -> StoreResult<Option<StopReason>> {
        self.write(StopTurnCommand { turn, reason }).await
    }

    async fn delete(&self, agent: AgentId, at: Timestamp, deletion: Deletion) -> StoreResult<bool> {
        self.write(DeleteCommand { agent, at, deletion }).await
    }

    async fn to_purge(&self) -> StoreResult<Vec<AgentId>> {
        self.read_with(agents::to_purge).await
    }

    async fn purge(&self, agent: AgentId, at: Timestamp) -> StoreResult<bool> {
        self.write(PurgeCommand { agent, at }).await
    }

    async fn check(&self) -> StoreResult<()> {
        self.write(ProbeCommand).await?;
        self.read_with(|db| db.execute_batch("SELECT 1").map_err(crate::sqlite::error::store_error)).await
    }
}

#[async_trait]
impl INodes for SqliteStore {
    fn is_shared(&self) -> bool {
        false
    }

    async fn join(&self) -> StoreResult<NodeId> {
        match self.write(JoinCommand).await {
            // The previous process is gone, because this one has the lock of the folder. So nothing that it sent can
            // arrive, even if the epochs stay as they are. And a server starts on a full disk.
            Err(StoreError::Full) => {
                tracing::warn!(
                    "cannot record this start in the database, because the disk is full; nothing is lost"
                );
                Ok(NodeId::ONLY)
            }
            joined => joined.map(|()| NodeId::ONLY),
        }
    }

    async fn beat(&self) -> StoreResult<Vec<Node>> {
        Ok(vec![only_node()])
    }

    async fn offer(&self, _types: Vec<String>) -> StoreResult<()> {
        Ok(())
    }

    async fn count_launch(&self, _per_minute: u32) -> StoreResult<LaunchCount> {
        Ok(LaunchCount::Counted)
    }

    async fn waiting_launches(&self) -> StoreResult<u64> {
        Ok(0)
    }

    async fn claim_launches(&self, _claim: LaunchClaim) -> StoreResult<Vec<AgentId>> {
        Ok(Vec::new())
    }

    async fn set_folder(&self, _agent: AgentId, _cwd: String) -> StoreResult<()> {
        Ok(())
    }

    async fn leave(&self) -> StoreResult<()> {
        Ok(())
    }

    async fn nodes(&self) -> StoreResult<Vec<Node>> {
        Ok(vec![only_node()])
    }

    async fn declare_lost(&self, _node: NodeId, _seen: Pulse) -> StoreResult<bool> {
        Ok(false)
    }

    async fn forget(&self, _node: NodeId) -> StoreResult<bool> {
        Ok(false)
    }

    async fn orphans(&self, _limit: usize) -> StoreResult<Vec<AgentId>> {
        Ok(Vec::new())
    }

    async fn take_over(&self, _agent: AgentId) -> StoreResult<Option<Epoch>> {
        Ok(None)
    }

    async fn may_have_begun(&self, _agent: AgentId) -> StoreResult<bool> {
        Ok(false)
    }

    async fn let_go(&self, _agent: AgentId) -> StoreResult<bool> {
        Ok(false)
    }

    async fn let_all_go(&self, _types: Vec<String>, _limit: usize) -> StoreResult<usize> {
        Ok(0)
    }

    async fn errands(&self, _limit: usize) -> StoreResult<Errands> {
        Ok(Errands::default())
    }

    async fn forget_leftover(&self, _agent: AgentId) -> StoreResult<()> {
        Ok(())
    }

    async fn set_watched(&self, _agent: AgentId, _watched: bool) -> StoreResult<()> {
        Ok(())
    }

    async fn is_watched_elsewhere(&self, _agent: AgentId) -> StoreResult<bool> {
        Ok(false)
    }

    async fn take_watched(&self) -> StoreResult<Vec<AgentId>> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl IInbox for SqliteStore {
    async fn put(&self, _to: NodeId, _letter: Letter) -> StoreResult<()> {
        Err(StoreError::Unavailable("this database has only one node".into()))
    }

    async fn letters(&self, _underway: Vec<LetterId>, _limit: usize) -> StoreResult<Vec<Letter>> {
        Ok(Vec::new())
    }

    async fn reply(&self, _id: LetterId, _reply: LetterReply) -> StoreResult<()> {
        Ok(())
    }

    async fn reply_to(&self, _id: LetterId) -> StoreResult<Option<LetterReply>> {
        Ok(None)
    }
}

#[async_trait]
impl IArchive for SqliteStore {
    async fn begin_import(&self, agent: Agent) -> StoreResult<()> {
        self.write(BeginImportCommand(agent)).await
    }

    async fn import_turns(&self, agent: AgentId, turns: Vec<NewTurn>) -> StoreResult<()> {
        self.write(ImportTurnsCommand { agent, turns }).await
    }

    async fn import_events(&self, agent: AgentId, events: Arc<[Event]>) -> StoreResult<()> {
        self.write(ImportEventsCommand::new(agent, events)?).await
    }

    async fn finish_import(&self, agent: Agent) -> StoreResult<()> {
        self.write(FinishImportCommand(agent)).await
    }

    async fn discard_import(&self, agent: AgentId) -> StoreResult<()> {
        self.write(DiscardImportCommand(agent)).await
    }

    async fn rewrite(&self, agent: AgentId, events: Arc<[Event]>) -> StoreResult<()> {
        self.write(RewriteCommand::new(agent, events)?).await
    }
}
