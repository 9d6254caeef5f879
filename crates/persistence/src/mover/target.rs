//! The database into which the data moves.

use std::time::Duration;

use tokenrail_domain::{AgentId, Timestamp};
use tokenrail_ports::StoreError;
use tokio::time::{Instant, sleep};
use tokio_postgres::Row;
use uuid::Uuid;

use super::counts::{COUNTS, MoveCounts};
use super::error::MoveError;
use super::reading::KeyRow;
use super::tables::Table;
use crate::postgres::database::address::APPLICATION;
use crate::postgres::database::failures::ChangeFailure;
use crate::postgres::database::link::{Connector, Link};
use crate::postgres::database::settings::Purpose;
use crate::postgres::database::{migration, schema};
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{agent_id_of, column, time_of};
use crate::postgres::unfinished_move::{self, UnfinishedMove};
use crate::postgres::{PostgresConfig, PostgresStore};

/// How long the end of the transaction may take: a standby may still have to receive a part of it.
const COMMIT_WAIT_MS: u64 = 600_000;

/// How long to wait for the end of connections whose program has just ended.
const IN_USE_WAIT: Duration = Duration::from_secs(10);

/// Between two looks.
const IN_USE_PAUSE: Duration = Duration::from_millis(200);

/// The key of the lock of a move: the letters `TkRm`.
const LOCK: i64 = 0x546b_526d;

/// Whether no other move and no server uses the database. A server always has connections.
const ALONE: &str = "
    SELECT pg_try_advisory_lock($1) AND NOT EXISTS (
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = $2 AND pid <> pg_backend_pid()
    )";

/// The server ends the connection of a machine that has vanished, and with it the transaction.
const KEEPALIVE: &str =
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3";

const HAS_DATA: &str = "
    SELECT EXISTS (SELECT FROM agents) OR EXISTS (SELECT FROM journal) OR EXISTS (SELECT FROM agent_messages)
        OR EXISTS (SELECT FROM tombstones)";

const NEW_ID: &str = "SELECT gen_random_uuid()";

/// The next agent and the next turn get the next keys.
const CONTINUE_KEYS: &str = "
    SELECT setval(pg_get_serial_sequence('agents', 'key'), (SELECT coalesce(max(key), 0) + 1 FROM agents), false),
        setval(pg_get_serial_sequence('turns', 'key'), (SELECT coalesce(max(key), 0) + 1 FROM turns), false)";

const KEYS: &str = "
    SELECT scope, key, body, agent, turn::bigint, queued::bigint, used_at
    FROM idempotency
    WHERE $1::bytea IS NULL OR (scope, key) > ($1, $2)
    ORDER BY scope, key
    LIMIT $3";

const PURGED: &str = "
    SELECT id, purged_at
    FROM tombstones
    WHERE $1::uuid IS NULL OR id > $1
    ORDER BY id
    LIMIT $2";

/// What is in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetState {
    Empty,
    /// A copy of this data folder that was not compared.
    Copied,
    /// A copy of this data folder that was compared.
    Compared,
}

pub(super) struct MoveTarget {
    config: PostgresConfig,
    connector: Connector,
    /// The connection of the transaction.
    pub(super) link: Link,
}

impl MoveTarget {
    /// Connects to the database, and migrates its schema.
    pub(super) async fn open(config: PostgresConfig) -> Result<Self, MoveError> {
        let mut patient = config.clone();
        patient.limits.answer_timeout_ms = COMMIT_WAIT_MS;
        // No limits: a table takes what it takes, and reading the data folder may pause between two pieces.
        (patient.limits.read_timeout_ms, patient.limits.idle_transaction_ms) = (0, 0);
        let connector = Connector::of(patient)?;
        migration::migrate(&connector).await?;
        let address = &connector.address;
        let link = connector.connect(Purpose::Pool, &[]).await;
        let link = link.map_err(|failure| schema::refused(address, failure))?;
        link.batch(KEEPALIVE).await.map_err(|error| schema::open_error(address, error.into()))?;
        let target = Self { config, connector, link };
        target.refuse_others().await?;
        Ok(target)
    }

    /// A server that runs now would take the agents for its own. One that starts while they are copied cannot read the
    /// tables, which are locked. One that starts later is refused because of the mark.
    async fn refuse_others(&self) -> Result<(), MoveError> {
        let started = Instant::now();
        loop {
            let row = self.link.row(ALONE, &[&LOCK, &APPLICATION]).await;
            let row = row.map_err(|error| self.failed(error.into()))?;
            if row.is_some_and(|row| column(&row, 0).unwrap_or(false)) {
                return Ok(());
            }
            if IN_USE_WAIT < started.elapsed() {
                return Err(MoveError::InUse { database: self.connector.address.database.clone() });
            }
            sleep(IN_USE_PAUSE).await;
        }
    }

    /// Whether the database can be filled from a data folder with this note.
    pub(super) async fn state(&self, noted: Option<Uuid>) -> Result<TargetState, MoveError> {
        let database = || self.connector.address.database.clone();
        match unfinished_move::find(&self.link).await.map_err(|failure| self.failed(failure))? {
            Some(UnfinishedMove { id, compared, .. }) if Some(id) == noted => {
                Ok(if compared { TargetState::Compared } else { TargetState::Copied })
            }
            Some(UnfinishedMove { folder, .. }) => Err(MoveError::OtherMove { database: database(), folder }),
            None if self.only::<bool>(HAS_DATA).await? => Err(MoveError::NotEmpty { database: database() }),
            None => Ok(TargetState::Empty),
        }
    }

    pub(super) async fn new_id(&self) -> Result<Uuid, MoveError> {
        self.only(NEW_ID).await
    }

    /// Begins the transaction that fills the database, and removes what an unfinished move has left.
    pub(super) async fn begin(&self, id: Uuid, folder: &str) -> Result<(), MoveError> {
        let begin = async {
            self.link.batch("BEGIN").await?;
            self.link.batch(&format!("TRUNCATE {} CASCADE", Table::names())).await?;
            unfinished_move::note(&self.link, id, folder).await
        };
        begin.await.map_err(|failure| self.failed(failure))
    }

    /// Saves everything that was copied.
    pub(super) async fn commit(&self) -> Result<(), MoveError> {
        let end = async {
            self.link.rows(CONTINUE_KEYS, &[]).await?;
            // The first statements of a server must not be planned for empty tables.
            self.link.batch(&format!("ANALYZE {}", Table::names())).await?;
            Ok(())
        };
        end.await.map_err(|failure| self.failed(failure))?;
        self.saved(self.link.save(self.link.commit()).await)
    }

    pub(super) async fn note_compared(&self) -> Result<(), MoveError> {
        self.saved(self.link.save(unfinished_move::note_compared(&self.link)).await)
    }

    /// Removes the mark of this move. Returns false if it is not there.
    pub(super) async fn remove_mark(&self, id: Uuid) -> Result<bool, MoveError> {
        let mark = unfinished_move::find(&self.link).await.map_err(|failure| self.failed(failure))?;
        if mark.is_none_or(|mark| mark.id != id) {
            return Ok(false);
        }
        self.saved(self.link.save(unfinished_move::remove(&self.link)).await).map(|()| true)
    }

    pub(super) async fn counts(&self) -> Result<MoveCounts, MoveError> {
        let read = async {
            let row = self.link.row(COUNTS, &[]).await?;
            let counts = row.map(|row| MoveCounts::of(|at| column(&row, at))).transpose()?;
            Ok(counts.unwrap_or_default())
        };
        read.await.map_err(|failure| self.failed(failure))
    }

    /// The next keys in the order of scope and key.
    pub(super) async fn keys_after(
        &self,
        after: Option<(Vec<u8>, Vec<u8>)>,
        limit: usize,
    ) -> Result<Vec<KeyRow>, MoveError> {
        let (scope, key) = after.unzip();
        let read = async {
            let rows = self.link.rows(KEYS, &[&scope, &key, &(limit as i64)]).await?;
            Ok(rows.iter().map(key_of).collect::<Result<_, StoreError>>()?)
        };
        read.await.map_err(|failure| self.failed(failure))
    }

    /// The next ids of purged agents.
    pub(super) async fn purged_after(
        &self,
        after: Option<AgentId>,
        limit: usize,
    ) -> Result<Vec<(AgentId, Timestamp)>, MoveError> {
        let read = async {
            let after = after.map(AgentId::as_uuid);
            let rows = self.link.rows(PURGED, &[&after, &(limit as i64)]).await?;
            let ids = rows.iter().map(|row| Ok((agent_id_of(row, 0)?, time_of(row, 1)?)));
            Ok(ids.collect::<Result<_, StoreError>>()?)
        };
        read.await.map_err(|failure| self.failed(failure))
    }

    /// The database as a server reads it.
    pub(super) fn store(&self) -> Result<PostgresStore, MoveError> {
        Ok(PostgresStore::on(Connector::of(self.config.clone())?, None))
    }

    pub(super) fn failed(&self, failure: QueryFailure) -> MoveError {
        schema::open_error(&self.connector.address, failure).into()
    }

    fn saved<T>(&self, saved: Result<T, ChangeFailure>) -> Result<T, MoveError> {
        saved.map_err(|failure| match failure {
            ChangeFailure::NotSaved(failure) => self.failed(failure),
            ChangeFailure::Unknown(cause) => MoveError::OutcomeUnknown { source: Box::new(cause) },
        })
    }

    /// The only value of a statement.
    async fn only<T>(&self, sql: &str) -> Result<T, MoveError>
    where
        T: for<'a> tokio_postgres::types::FromSql<'a>,
    {
        let read = async {
            let row = self.link.row(sql, &[]).await?;
            let row = row.ok_or_else(|| StoreError::Corrupt("no row".to_owned()))?;
            Ok(column(&row, 0)?)
        };
        read.await.map_err(|failure| self.failed(failure))
    }
}

fn key_of(row: &Row) -> Result<KeyRow, StoreError> {
    Ok(KeyRow {
        scope: column(row, 0)?,
        key: column(row, 1)?,
        body: column(row, 2)?,
        agent: column(row, 3)?,
        turn: column(row, 4)?,
        queued: column(row, 5)?,
        used_at: column(row, 6)?,
    })
}
