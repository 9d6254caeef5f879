//! The store: opened, used, closed.

mod ports;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{AgentId, Event, Sequence};
use tokenrail_ports::{PageLimit, StoreError};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::format::blocks::BlockLimits;
use crate::postgres::command::ChangeCommand;
use crate::postgres::config::{Durability, PostgresConfig};
use crate::postgres::database::address::Address;
use crate::postgres::database::link::{ChangeFailure, Connector, Link};
use crate::postgres::database::pool::{Pool, closed};
use crate::postgres::database::settings::STANDBY_EXPECTED;
use crate::postgres::database::{schema, tls};
use crate::postgres::error::{PostgresOpenError, QueryFailure, unavailable};
use crate::postgres::known_agents::KnownAgents;
use crate::postgres::statements::commands::ProbeCommand;
use crate::postgres::statements::journal::FetchLimit;
use crate::postgres::statements::{compaction, journal};
use crate::postgres::writer::Writers;

/// How often a command is run if another one was faster, or the server chose it to break a deadlock.
const COMMAND_TRIES: u32 = 3;

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
    pool: Arc<Pool>,
    writers: Writers,
    known: Arc<KnownAgents>,
}

/// A read took too long.
#[derive(Debug, thiserror::Error)]
#[error("the PostgreSQL server did not answer a read within {0:?}")]
struct ReadTimedOut(Duration);

/// See [`Durability::Replicated`].
#[derive(Debug, thiserror::Error)]
#[error(
    "the PostgreSQL server has no synchronous standby, but storage.durability requires one; set \
     synchronous_standby_names on the server"
)]
struct NotReplicated;

impl PostgresStore {
    /// Connects to the database, and migrates its schema.
    ///
    /// # Errors
    /// [`PostgresOpenError`] has one variant for each action that an operator can take.
    pub async fn open(config: PostgresConfig) -> Result<Self, PostgresOpenError> {
        let address = Address::of(&config)?;
        let tls = tls::connector(&address.check)?;
        let PostgresConfig { durability, limits, .. } = config;
        let connector = Connector { address, tls, durability, limits, runtime: Handle::current() };
        schema::migrate(&connector).await?;
        let connector = Arc::new(connector);
        let known = Arc::new(KnownAgents::new(connector.limits.known_agents.max(1)));
        let writers = Writers::start(&connector, &known);
        let pool = Arc::new(Pool::new(Arc::clone(&connector)));
        Ok(Self { inner: Arc::new(Inner { connector, pool, writers, known }) })
    }

    /// Finishes all queued appends and closes all connections. Later calls, on any clone, return
    /// [`StoreError::Unavailable`]. Closing again has no effect.
    pub async fn close(&self) {
        self.inner.writers.close().await;
        self.inner.pool.close();
    }

    /// Runs the command in a transaction. If the caller stops waiting, it may still be done.
    async fn write<C: ChangeCommand>(&self, command: C) -> Result<C::Answer, StoreError> {
        let pool = Arc::clone(&self.inner.pool);
        self.on_runtime(async move {
            let mut tries = 1;
            loop {
                let lease = pool.lease().await?;
                let link = lease.link();
                match link.change(command.run(link)).await {
                    Err(ChangeFailure::NotSaved(failure))
                        if failure.is_worth_another_try() && tries < COMMAND_TRIES =>
                    {
                        tries += 1;
                    }
                    changed => return changed.map_err(ChangeFailure::into_store_error),
                }
            }
        })
        .await
    }

    /// Reads on a connection of the pool. Each statement sees a state of its own.
    async fn read_with<T, F>(&self, read: impl FnOnce(Link) -> F + Send + 'static) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, QueryFailure>> + Send + 'static,
    {
        let pool = Arc::clone(&self.inner.pool);
        let wait = Duration::from_millis(self.inner.connector.limits.read_timeout_ms);
        self.on_runtime(async move {
            let lease = pool.lease().await?;
            let read = timeout(wait, lease.link().read(read(lease.link().clone()))).await;
            read.map_err(|_| unavailable(ReadTimedOut(wait)))?.map_err(QueryFailure::before_commit)
        })
        .await
    }

    /// Reads in one transaction, that is, from one state of the database.
    async fn view_with<T, F>(&self, read: impl FnOnce(Link) -> F + Send + 'static) -> Result<T, StoreError>
    where
        T: Send + 'static,
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
        self.read_with(move |db| async move {
            if let Some(key) = known.get(agent) {
                let events = journal::events_after(&db, key, after, limit, fetch).await?;
                if !events.is_empty() {
                    return Ok(events);
                }
                // There are none, or the agent was purged.
                known.forget(agent);
            }
            let key = journal::agent_key(&db, agent).await?;
            known.add(agent, key);
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
        let read = self.view_with(move |db| async move { compaction::read(&db, limits).await });
        let Some(unpacked) = read.await? else { return Ok(false) };
        let packing = tokio::task::spawn_blocking(move || unpacked.pack(limits));
        let command = packing.await.map_err(unavailable)??;
        self.write(command).await.map(|()| true)
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
