//! One connection to the server.

pub(crate) mod attempt;
mod copy;
mod opening;

use std::collections::HashMap;
use std::future::{Future, pending, ready};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, RowStream, SimpleQueryMessage, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::planted::{PostgresBug, is_planted};
use crate::postgres::config::{Durability, PostgresLimits};
use crate::postgres::database::address::Address;
use crate::postgres::database::failures::{ChangeFailure, UnknownCause};
use crate::postgres::database::known_server::{KnownServer, UNKNOWN_TIMELINE};
use crate::postgres::database::opening_places::OpeningPlaces;
use crate::postgres::database::settings::BARRIER;
use crate::postgres::database::steps::Steps;
use crate::postgres::error::{ErrorEffect, QueryFailure, effect_of};
use crate::postgres::figures::Figures;

/// Statements that a connection remembers. There are fewer different ones.
const STATEMENTS_MAX: usize = 256;

/// What is passed to a statement.
pub(crate) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Opens connections.
pub(crate) struct Connector {
    pub(crate) address: Address,
    pub(crate) tls: MakeRustlsConnect,
    pub(crate) durability: Durability,
    pub(crate) limits: PostgresLimits,
    /// What the writers have done with these connections.
    pub(crate) figures: Figures,
    pub(crate) steps: &'static Steps,
    pub(crate) known: Arc<KnownServer>,
    /// Those of each host of the address.
    pub(crate) places: Vec<OpeningPlaces>,
    /// The tasks of connections run here, and not where a caller happens to be.
    pub(crate) runtime: Handle,
}

/// A connection. Clones are the same connection.
#[derive(Clone)]
pub(crate) struct Link(Arc<Inner>);

struct Inner {
    client: Client,
    statements: Mutex<HashMap<String, Statement>>,
    /// How many warnings the server has sent.
    warnings: Arc<AtomicU64>,
    /// Nothing was left half-done.
    clean: AtomicBool,
    known: Arc<KnownServer>,
    /// That of the server to which it leads.
    timeline: AtomicU32,
    answer_timeout: Duration,
    /// Closed when the connection ends.
    end: watch::Receiver<()>,
    /// Sends and receives. Aborted with the link, which closes the socket.
    _driver: JoinSet<()>,
}

impl Link {
    /// Whether the next statement may use it.
    pub(crate) fn is_usable(&self) -> bool {
        self.0.clean.load(Ordering::Acquire) && !self.0.client.is_closed() && !self.is_superseded()
    }

    /// The timeline of its server. [`UNKNOWN_TIMELINE`] if the server does not say.
    pub(crate) fn timeline(&self) -> u32 {
        self.0.timeline.load(Ordering::Acquire)
    }

    /// Whether another server has taken over since it was opened.
    pub(crate) fn is_superseded(&self) -> bool {
        let timeline = self.timeline();
        timeline != UNKNOWN_TIMELINE && timeline < self.0.known.timeline()
    }

    /// Waits until another server has taken over since it was opened.
    async fn superseded(&self) {
        let mut timelines = self.0.known.timelines();
        while !self.is_superseded() {
            if timelines.changed().await.is_err() {
                pending::<()>().await;
            }
        }
    }

    /// How long ago the newest failover was noticed.
    pub(crate) fn since_failover(&self) -> Option<Duration> {
        self.0.known.since_failover()
    }

    /// Waits for the end of the connection.
    pub(crate) async fn ended(&self) {
        let mut end = self.0.end.clone();
        while end.changed().await.is_ok() {}
    }

    /// Several statements in one string, without values.
    pub(crate) async fn batch(&self, sql: &str) -> Result<(), Error> {
        self.0.client.batch_execute(sql).await
    }

    /// The first value of a statement as a text. The statement is not prepared, so it needs no session.
    pub(crate) async fn said(&self, sql: &str) -> Result<String, Error> {
        let messages = self.0.client.simple_query(sql).await?;
        let first = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        Ok(first.unwrap_or_default().to_owned())
    }

    pub(crate) async fn rows(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Error> {
        self.0.client.query(&self.prepared(sql).await?, values).await
    }

    /// The first row.
    pub(crate) async fn row(&self, sql: &str, values: Values<'_>) -> Result<Option<Row>, Error> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Returns how many rows were changed.
    pub(crate) async fn run(&self, sql: &str, values: Values<'_>) -> Result<u64, Error> {
        self.0.client.execute(&self.prepared(sql).await?, values).await
    }

    /// The rows one by one. The server sends all of them, even if the stream is dropped.
    pub(crate) async fn stream(&self, sql: &str, values: Values<'_>) -> Result<RowStream, Error> {
        self.0.client.query_raw(&self.prepared(sql).await?, values.iter().copied()).await
    }

    /// A statement that is prepared is sent when the future of its call is polled first. So several can be sent at
    /// once, and the server runs them in that order.
    async fn prepared(&self, sql: &str) -> Result<Statement, Error> {
        let known = self.statements().get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.0.client.prepare(sql).await?;
        let mut statements = self.statements();
        if STATEMENTS_MAX <= statements.len() {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn statements(&self) -> std::sync::MutexGuard<'_, HashMap<String, Statement>> {
        self.0.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`BARRIER`].
    pub(crate) async fn barrier(&self) -> Result<(), QueryFailure> {
        if !is_planted(PostgresBug::NoBarrier) {
            self.rows(BARRIER, &[]).await?;
        }
        Ok(())
    }

    /// How many warnings the server has sent so far.
    fn warnings(&self) -> u64 {
        self.0.warnings.load(Ordering::Acquire)
    }

    /// Runs one statement that commits by itself. It is not waited for longer than `answer_timeout_ms`.
    pub(crate) async fn save<T>(
        &self,
        statement: impl Future<Output = Result<T, QueryFailure>>,
    ) -> Result<T, ChangeFailure> {
        let late = |_| ChangeFailure::Unknown(UnknownCause::TimedOut(self.0.answer_timeout));
        timeout(self.0.answer_timeout, self.committed(statement)).await.map_err(late)?
    }

    /// Like [`Link::save`], but waits until there is an answer.
    async fn committed<T>(
        &self,
        statement: impl Future<Output = Result<T, QueryFailure>>,
    ) -> Result<T, ChangeFailure> {
        let warned = self.warnings();
        self.0.clean.store(false, Ordering::Release);
        let answer = match statement.await {
            Err(QueryFailure::Failed(error)) if effect_of(&error) == ErrorEffect::Unknown => {
                return Err(ChangeFailure::Unknown(UnknownCause::Broken(error)));
            }
            Err(failure) => Err(ChangeFailure::NotSaved(failure)),
            Ok(_) if self.warnings() != warned && !is_planted(PostgresBug::WarningIsSuccess) => {
                return Err(ChangeFailure::Unknown(UnknownCause::Warned));
            }
            // A former primary may still answer.
            Ok(_) if self.is_superseded() => return Err(ChangeFailure::superseded()),
            Ok(answer) => Ok(answer),
        };
        self.0.clean.store(true, Ordering::Release);
        answer
    }

    /// Runs `work`, which may take this long, in a transaction. COMMIT is sent only if `work` succeeds: after an error
    /// it would answer ROLLBACK, which the driver takes for a success.
    pub(crate) async fn change<T>(
        &self,
        wait: Duration,
        work: impl Future<Output = Result<T, QueryFailure>>,
    ) -> Result<T, ChangeFailure> {
        self.change_after(wait, ready(Ok(())), async |()| work.await).await
    }

    /// Like [`Link::change`]. `reads` is sent together with BEGIN. It must change nothing: if BEGIN fails, it is not
    /// in a transaction.
    pub(crate) async fn change_after<R, T>(
        &self,
        wait: Duration,
        reads: impl Future<Output = Result<R, QueryFailure>>,
        work: impl AsyncFnOnce(R) -> Result<T, QueryFailure>,
    ) -> Result<T, ChangeFailure> {
        self.0.clean.store(false, Ordering::Release);
        let in_transaction = async {
            let (begun, read) = join(self.batch("BEGIN"), reads).await;
            begun?;
            work(read?).await
        };
        let worked =
            timeout(wait, in_transaction).await.unwrap_or_else(|_| Err(QueryFailure::unanswered(wait)));
        match worked {
            Ok(answer) => {
                self.save(self.commit()).await?;
                Ok(answer)
            }
            Err(failure) => {
                // If it does not answer, the link stays unclean, and is closed.
                if let Ok(Ok(())) = timeout(wait, self.batch("ROLLBACK")).await {
                    self.0.clean.store(true, Ordering::Release);
                }
                Err(ChangeFailure::NotSaved(failure))
            }
        }
    }

    pub(crate) async fn commit(&self) -> Result<(), QueryFailure> {
        Ok(self.batch("COMMIT").await?)
    }

    /// Reads. A read that is dropped before its end may still be running, so that no other should wait for it.
    pub(crate) async fn read<T>(
        &self,
        work: impl Future<Output = Result<T, QueryFailure>>,
    ) -> Result<T, QueryFailure> {
        self.0.clean.store(false, Ordering::Release);
        let read = work.await;
        self.0.clean.store(true, Ordering::Release);
        read
    }

    /// Runs `work` in a transaction that sees one state of the database and changes nothing.
    pub(crate) async fn view<T>(
        &self,
        work: impl Future<Output = Result<T, QueryFailure>>,
    ) -> Result<T, QueryFailure> {
        self.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let read = work.await;
        self.batch("ROLLBACK").await?;
        read
    }
}
