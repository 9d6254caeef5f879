//! What the store does for the ports: most methods run one command (`write` in `write.rs`) or one read (`read_with` and
//! its like in `store.rs`). Appends take another way: `Writers::append` (`writer.rs`). `node.rs` has the ports
//! about nodes: `INodes` and `IInbox`.

use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_domain::{
    Agent, AgentEdit, AgentId, Event, ImageFile, ListedAgent, Sequence, StopReason, Timestamp, Turn, TurnId,
    TurnNumber,
};
use tokenrail_ports::{
    AgentFilter, Append, Created, Deletion, Edited, Enqueued, Epoch, IAgentRepository, IArchive, IJournal,
    Idempotency, ListBounds, ListPage, MessagePage, NewTurn, PageLimit, Recalled, Standing, StoreResult,
    TouchMark, Touched, TurnFilter, TurnLimit, TurnList, TurnRange,
};

use super::PostgresStore;
use crate::postgres::statements::append::PreparedAppend;
use crate::postgres::statements::archive::{
    BeginImportCommand, DiscardImportCommand, FinishImportCommand, ImportEventsCommand, ImportTurnsCommand,
    RewriteCommand,
};
use crate::postgres::statements::commands::{CreateCommand, CreateIdleCommand, DeleteCommand};
use crate::postgres::statements::edit::EditCommand;
use crate::postgres::statements::enqueue::EnqueueCommand;
use crate::postgres::statements::new_turn::FirstTimeline;
use crate::postgres::statements::ownership::{self, ClaimCommand, Ownership};
use crate::postgres::statements::purge::{PurgeCommand, PurgeStepCommand};
use crate::postgres::statements::stops::{CancelCommand, StopTurnCommand};
use crate::postgres::statements::{
    agents, idempotency, journal, messages, prompt_images, read_many, touched, turns,
};

#[async_trait]
impl IJournal for PostgresStore {
    async fn append(&self, append: Append) -> StoreResult<()> {
        self.inner.writers.append(PreparedAppend::new(append, &self.inner.membership)?).await
    }

    async fn read(&self, agent: AgentId, after: Sequence, limit: PageLimit) -> StoreResult<Vec<Event>> {
        self.events_after(agent, after, limit).await
    }

    async fn read_many(
        &self,
        wanted: Vec<(AgentId, Sequence)>,
        limit: PageLimit,
    ) -> StoreResult<Vec<(AgentId, Vec<Event>)>> {
        let fetch = self.fetch();
        self.read_on(&self.inner.lookout, move |db| async move {
            read_many::events_of_many(&db, &wanted, limit, fetch).await
        })
        .await
    }

    async fn messages(&self, agent: AgentId, after: Sequence, limit: PageLimit) -> StoreResult<MessagePage> {
        let fetch = self.fetch();
        self.view_with(move |db| async move { messages::page(&db, agent, after, limit, fetch).await }).await
    }

    async fn compact_next(&self) -> StoreResult<bool> {
        self.compact().await
    }
}

#[async_trait]
impl IAgentRepository for PostgresStore {
    async fn create(&self, agent: Agent, turn: NewTurn, key: Option<Idempotency>) -> StoreResult<Created> {
        let (node, times) = (self.inner.membership.require()?, self.times());
        self.write(CreateCommand { node, agent, turn, key, times, first: FirstTimeline::default() }).await
    }

    async fn create_idle(&self, agent: Agent) -> StoreResult<()> {
        let node = self.node()?;
        self.write(CreateIdleCommand { node, agent }).await
    }

    async fn newest_key(&self) -> StoreResult<Option<Timestamp>> {
        self.read_with(|db| async move { idempotency::newest(&db).await }).await
    }

    async fn recall(&self, key: Idempotency) -> StoreResult<Option<Recalled>> {
        self.read_with(move |db| async move { idempotency::recall(&db, &key).await }).await
    }

    async fn enqueue(&self, turn: NewTurn, limit: u32, key: Option<Idempotency>) -> StoreResult<Enqueued> {
        let node = self.inner.membership.joined().map_or(0, |joined| joined.id);
        self.write(EnqueueCommand::new(turn, limit, key, (node, self.times()))).await
    }

    async fn get(&self, id: AgentId) -> StoreResult<Option<Agent>> {
        self.read_of(id, move |db| async move { agents::get(&db, id).await }).await
    }

    async fn list(&self, filter: AgentFilter, bounds: ListBounds) -> StoreResult<ListPage<ListedAgent>> {
        self.read_with(move |db| async move { agents::list(&db, &filter, bounds).await }).await
    }

    async fn standings(&self, wanted: Vec<AgentId>) -> StoreResult<Vec<Standing>> {
        self.read_on(&self.inner.lookout, move |db| async move { agents::standings(&db, &wanted).await })
            .await
    }

    async fn touched(&self, after: Option<TouchMark>, limit: usize) -> StoreResult<Touched> {
        let slack = self.inner.connector.limits.touch_slack_ms;
        self.read_on(&self.inner.lookout, move |db| async move {
            touched::touched(&db, after, limit, slack).await
        })
        .await
    }

    async fn claim(&self, agent: AgentId) -> StoreResult<Option<Epoch>> {
        let node = self.inner.membership.require()?;
        match self.read_of(agent, move |db| async move { ownership::of(&db, agent, node).await }).await? {
            Ownership::Mine(epoch) => Ok(Some(epoch)),
            Ownership::Others if !self.inner.unknown_takeovers().contains(&agent) => Ok(None),
            // The takeover may still be committing, so only the command, which waits for it, gives the answer.
            Ownership::Nobodys | Ownership::Others => {
                let claimed = self.write(ClaimCommand { node, agent }).await?;
                self.inner.unknown_takeovers().remove(&agent);
                Ok(claimed)
            }
        }
    }

    async fn open_turns(&self, agent: AgentId) -> StoreResult<Vec<Turn>> {
        self.read_of(agent, move |db| async move { turns::open(&db, agent).await }).await
    }

    async fn next_turn(&self, id: AgentId) -> StoreResult<Option<(Agent, Turn)>> {
        self.read_of(id, move |db| async move {
            let turn = turns::open(&db, id).await?.into_iter().next();
            Ok(agents::get(&db, id).await?.zip(turn))
        })
        .await
    }

    async fn last_turn(&self, agent: AgentId) -> StoreResult<TurnNumber> {
        self.read_of(
            agent,
            move |db| async move { turns::last(&db, journal::agent_key(&db, agent).await?).await },
        )
        .await
    }

    async fn turns(&self, agent: AgentId, after: TurnNumber, limit: TurnLimit) -> StoreResult<Vec<Turn>> {
        self.read_with(move |db| async move { turns::after(&db, agent, after, limit).await }).await
    }

    async fn list_turns(&self, id: AgentId, range: TurnRange, bounds: ListBounds) -> StoreResult<TurnList> {
        self.read_with(move |db| async move { turns::list(&db, id, &range, bounds).await }).await
    }

    async fn all_turns(&self, filter: TurnFilter, bounds: ListBounds) -> StoreResult<TurnList> {
        self.read_with(move |db| async move { turns::all(&db, &filter, bounds).await }).await
    }

    async fn turn_at(&self, agent: AgentId, sequence: Sequence) -> StoreResult<Option<Turn>> {
        self.read_with(move |db| async move { turns::at(&db, agent, sequence).await }).await
    }

    async fn prompt_image(&self, turn: TurnId, position: u32) -> StoreResult<Option<ImageFile>> {
        self.read_with(move |db| async move { prompt_images::one(&db, turn, position).await }).await
    }

    async fn by_chat(&self, chat: String) -> StoreResult<Option<Agent>> {
        self.read_with(move |db| async move { agents::by_chat(&db, &chat).await }).await
    }

    async fn with_open_turns(&self, field_bytes: usize) -> StoreResult<Vec<ListedAgent>> {
        let node = self.node()?;
        self.read_with(move |db| async move { agents::with_open_turns(&db, node, field_bytes).await }).await
    }

    async fn cancel(&self, agent: AgentId, at: Timestamp) -> StoreResult<u32> {
        Ok(self.write(CancelCommand { agent, at }).await?.len() as u32)
    }

    async fn edit(&self, agent: AgentId, edit: AgentEdit) -> StoreResult<Edited> {
        Ok(self.write(EditCommand { agent, edit }).await?.edited)
    }

    async fn stop_turn(&self, turn: TurnId, reason: StopReason) -> StoreResult<Option<StopReason>> {
        self.write(StopTurnCommand { turn, reason }).await
    }

    async fn delete(&self, agent: AgentId, at: Timestamp, deletion: Deletion) -> StoreResult<bool> {
        self.write(DeleteCommand { agent, at, deletion }).await
    }

    async fn to_purge(&self) -> StoreResult<Vec<AgentId>> {
        let node = self.node()?;
        self.read_with(move |db| async move { agents::to_purge(&db, node).await }).await
    }

    async fn purge(&self, agent: AgentId, at: Timestamp) -> StoreResult<bool> {
        let node = self.node()?;
        while self.write(PurgeStepCommand(agent)).await? {}
        self.write(PurgeCommand { node, agent, at }).await
    }

    async fn check(&self) -> StoreResult<()> {
        self.is_ready().await
    }
}

#[async_trait]
impl IArchive for PostgresStore {
    async fn begin_import(&self, agent: Agent) -> StoreResult<()> {
        let node = self.node()?;
        self.write(BeginImportCommand { node, agent }).await
    }

    async fn import_turns(&self, agent: AgentId, turns: Vec<NewTurn>) -> StoreResult<()> {
        self.write(ImportTurnsCommand { agent, turns }).await
    }

    async fn import_events(&self, agent: AgentId, events: Arc<[Event]>) -> StoreResult<()> {
        self.write(ImportEventsCommand::new(agent, events, self.fetch())?).await
    }

    async fn finish_import(&self, agent: Agent) -> StoreResult<()> {
        self.write(FinishImportCommand(agent)).await
    }

    async fn discard_import(&self, agent: AgentId) -> StoreResult<()> {
        self.write(DiscardImportCommand(agent)).await
    }

    async fn rewrite(&self, agent: AgentId, events: Arc<[Event]>) -> StoreResult<()> {
        self.write(RewriteCommand::new(agent, events, self.fetch())?).await
    }
}
