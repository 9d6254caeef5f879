//! The store: opened, used, closed.

mod node;
mod ports;
mod repeat;
#[cfg(test)]
mod tests;
mod token;
mod upkeep;
mod write;

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use tokenrail_domain::{AgentId, Event, Sequence};
use tokenrail_ports::{PageLimit, StoreError};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::format::packed_blocks::BlockLimits;
use crate::orders::closed;
use crate::passed_over::PassedOver;
use crate::postgres::bus::PostgresBus;
use crate::postgres::config::{Durability, NodeIdentity, PostgresConfig};
use crate::postgres::database::known_server::UNKNOWN_TIMELINE;
use crate::postgres::database::link::{Connector, Link};
use crate::postgres::database::settings::{Purpose, STANDBY_EXPECTED};
use crate::postgres::database::{migration, pooler};
use crate::postgres::error::{ErrorEffect, PostgresOpenError, QueryFailure, effect_of, unavailable};
use crate::postgres::failover::Healer;
use crate::postgres::known_agents::KnownAgents;
use crate::postgres::membership::Membership;
use crate::postgres::pool::Pool;
use crate::postgres::statements::commands::ProbeCommand;
use crate::postgres::statements::errands::ErrandRounds;
use crate::postgres::statements::journal::FetchLimit;
use crate::postgres::statements::rounds::Round;
use crate::postgres::statements::{compaction, journal};
use crate::postgres::unfinished_move;
use crate::postgres::writer::Writers;

/// The store on PostgreSQL. Clones are the same store.
///
/// Writes of agents' output go through a bounded queue to a few writers. A bounded number of reads and commands runs
/// at the same time, each on a connection of a pool. All of it runs on the runtime on which the store was opened.
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

struct Inner {
    connector: Arc<Connector>,
    healer: Arc<Healer>,
    /// For most reads. If a synchronous standby is away, commands wait, and what is saved can be read.
    reads: Arc<Pool>,
    /// For the commands of clients.
    commands: Arc<Pool>,
    /// For looks at what other nodes have saved.
    lookout: Arc<Pool>,
    /// For what is taken from lost nodes, and for launches that are claimed. The commands of clients do not keep it
    /// busy.
    takeovers: Arc<Pool>,
    /// For beats and the leave.
    beats: Arc<Pool>,
    /// For the list of nodes, which clients ask for too.
    nodes: Arc<Pool>,
    writers: Writers,
    known: Arc<KnownAgents>,
    membership: Arc<Membership>,
    /// The timeline on which this node has said how far it had shown journals.
    told: AtomicU32,
    errands: Arc<ErrandRounds>,
    orphans: Arc<Round>,
    passed_over: PassedOver,
    /// Locked while it is underway: see [`upkeep`].
    upkeep: Arc<Mutex<()>>,
    /// Agents that this node may have taken over, until it has claimed them.
    unknown_takeovers: std::sync::Mutex<BTreeSet<AgentId>>,
}

impl Inner {
    fn unknown_takeovers(&self) -> MutexGuard<'_, BTreeSet<AgentId>> {
        self.unknown_takeovers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often a read is tried if its connection breaks. All idle connections may be broken, and each is used once.
const READ_TRIES: u32 = 10;

/// A read took too long.
#[derive(Debug, thiserror::Error)]
#[error("the PostgreSQL server did not answer a read within {0:?}")]
struct ReadTimedOut(Duration);

/// See [`Durability::Replicated`].
#[derive(Debug, thiserror::Error)]
#[error(
    "the PostgreSQL server has no synchronous standby, but storage.durability requires one; set \
     synchronous_standby_names on the PostgreSQL server"
)]
struct NotReplicated;

impl PostgresStore {
    /// Connects to the database, and migrates its schema.
    ///
    /// # Errors
    /// [`PostgresOpenError`] has one variant for each action that an operator can take.
    pub async fn open(config: PostgresConfig) -> Result<Self, PostgresOpenError> {
        let node = config.node.clone();
        let connector = Connector::of(config)?;
        pooler::refuse(&connector).await?;
        migration::migrate(&connector).await?;
        unfinished_move::refuse(&connector).await?;
        connector.known.keep();
        Ok(Self::on(connector, node))
    }

    /// The store on a database whose schema is the newest.
    pub(crate) fn on(connector: Connector, node: Option<NodeIdentity>) -> Self {
        let connector = Arc::new(connector);
        let known = Arc::new(KnownAgents::new(connector.limits.known_agents.max(1)));
        let membership = Arc::new(Membership::new(node));
        let healer = Healer::new(Arc::clone(&connector), Arc::clone(&membership));
        let writers = Writers::start(&connector, &healer, &known);
        let limits = &connector.limits;
        let wait = Duration::from_millis(limits.pool_wait_ms);
        let pool = |purpose, connections| Arc::new(Pool::new(healer.clone(), purpose, connections, wait));
        let inner = Inner {
            reads: pool(Purpose::Pool, limits.pool_connections.div_ceil(2)),
            commands: pool(Purpose::Pool, limits.pool_connections / 2),
            lookout: pool(Purpose::Pool, limits.lookout_connections),
            takeovers: pool(Purpose::Pool, limits.takeover_connections),
            // A beat must not wait for a standby, not even to connect.
            beats: pool(Purpose::WithoutStandby, limits.beat_connections),
            nodes: pool(Purpose::WithoutStandby, limits.node_connections),
            healer,
            writers,
            known,
            errands: Arc::default(),
            orphans: Arc::default(),
            passed_over: PassedOver::default(),
            upkeep: Arc::default(),
            unknown_takeovers: std::sync::Mutex::default(),
            membership,
            told: AtomicU32::new(UNKNOWN_TIMELINE),
            connector: Arc::clone(&connector),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Starts the bus between the nodes of this database, on the runtime of the store. A server calls this once: each
    /// bus has two connections of its own, which closing the store does not close.
    pub fn bus(&self) -> PostgresBus {
        PostgresBus::start(&self.inner.connector)
    }

    /// Finishes all queued appends and closes all connections. Later calls, on any clone, return
    /// [`StoreError::Unavailable`]. Closing again has no effect.
    pub async fn close(&self) {
        self.inner.writers.close().await;
        let Inner { reads, commands, lookout, takeovers, beats, nodes, .. } = &*self.inner;
        for pool in [reads, commands, lookout, takeovers, beats, nodes] {
            pool.close();
        }
    }

    /// Reads on one of the connections for reads. Each statement sees a state of its own.
    async fn read_with<T, F>(
        &self,
        read: impl FnOnce(Link) -> F + Clone + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, QueryFailure>> + Send + 'static,
    {
        self.read_on(&self.inner.reads, read).await
    }

    /// Reads what an agent has. See [`Healer::refuse_incomplete`].
    async fn read_of<T, F>(
        &self,
        agent: AgentId,
        read: impl FnOnce(Link) -> F + Clone + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, QueryFailure>> + Send + 'static,
    {
        let healer = Arc::clone(&self.inner.healer);
        self.read_with(move |db| async move {
            healer.refuse_incomplete(agent)?;
            read(db).await
        })
        .await
    }

    /// Reads on a connection of one of the pools.
    async fn read_on<T, F>(
        &self,
        pool: &Arc<Pool>,
        read: impl FnOnce(Link) -> F + Clone + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, QueryFailure>> + Send + 'static,
    {
        let pool = Arc::clone(pool);
        let wait = Duration::from_millis(self.inner.connector.limits.read_timeout_ms);
        self.on_runtime(async move {
            let mut tries = 1;
            loop {
                let lease = pool.lease().await?;
                let reading = lease.link().read(read.clone()(lease.link().clone()));
                match timeout(wait, reading)
                    .await
                    .map_err(|_| StoreError::Unreachable(Box::new(ReadTimedOut(wait))))?
                {
                    // A connection that was idle may have ended long ago, and the next one too.
                    Err(QueryFailure::Failed(error))
                        if effect_of(&error) == ErrorEffect::Unknown && tries < READ_TRIES =>
                    {
                        tries += 1;
                    }
                    answer => return answer.map_err(QueryFailure::before_commit),
                }
            }
        })
        .await
    }

    /// Reads in one transaction, that is, from one state of the database.
    async fn view_with<T: Send + 'static, F>(
        &self,
        read: impl FnOnce(Link) -> F + Clone + Send + 'static,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, QueryFailure>> + Send + 'static,
    {
        self.read_with(|link| {
            let reading = read(link.clone());
            async move { link.view(reading).await }
        })
        .await
    }

    /// A task works, and not the caller: a caller that is not polled must not keep a connection.
    async fn on_runtime<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut task = JoinSet::new();
        task.spawn_on(work, &self.inner.connector.runtime);
        task.join_next().await.ok_or_else(closed)?.map_err(unavailable)?
    }

    /// Events after `after`. Usually one statement: the agent's key is known.
    async fn events_after(
        &self,
        agent: AgentId,
        after: Sequence,
        limit: PageLimit,
    ) -> Result<Vec<Event>, StoreError> {
        let (known, fetch) = (Arc::clone(&self.inner.known), self.fetch());
        self.read_of(agent, move |db| async move {
            if let Some(key) = known.get(db.timeline(), agent) {
                let events = journal::events_after(&db, key, after, limit, fetch).await?;
                if !events.is_empty() {
                    return Ok(events);
                }
                // There are none, or the agent was purged.
                known.forget(agent);
            }
            let key = journal::agent_key(&db, agent).await?;
            known.add(db.timeline(), agent, key);
            journal::events_after(&db, key, after, limit, fetch).await
        })
        .await
    }

    /// Writes, and looks whether commits are as durable as they must be.
    async fn is_ready(&self) -> Result<(), StoreError> {
        self.write(ProbeCommand).await?;
        if self.inner.connector.durability != Durability::Replicated {
            return Ok(());
        }
        let expected = self.read_with(|db| async move {
            let row = db.row(STANDBY_EXPECTED, &[]).await?;
            Ok(row.is_some_and(|row| row.get(0)))
        });
        if expected.await? { Ok(()) } else { Err(unavailable(NotReplicated)) }
    }

    /// Packs the next batches of an ended turn: reads them, packs them on a thread that may block, and saves the
    /// result. Returns whether there were any.
    async fn compact(&self) -> Result<bool, StoreError> {
        let limits = self.blocks();
        let which = compaction::Candidates {
            node: self.inner.membership.joined().map(|joined| joined.id),
            others_after_ms: self.inner.connector.limits.compact_others_after_ms,
            after: self.inner.passed_over.last(),
        };
        let read = self.view_with(move |db| async move { compaction::read(&db, which, limits).await });
        let Some((place, part)) = read.await? else { return Ok(self.inner.passed_over.begin_anew()) };
        let packing = async {
            let part = part?;
            let packing = tokio::task::spawn_blocking(move || part.pack(limits));
            self.write(packing.await.map_err(unavailable)??).await
        };
        packing.await.inspect_err(|_| self.inner.passed_over.pass_over(place)).map(|()| true)
    }

    fn fetch(&self) -> FetchLimit {
        let limits = &self.inner.connector.limits;
        FetchLimit { rows: limits.fetch_rows, bytes: limits.fetch_bytes }
    }

    fn blocks(&self) -> BlockLimits {
        let limits = &self.inner.connector.limits;
        BlockLimits { bytes: limits.block_bytes, events: limits.block_events }
    }
}
