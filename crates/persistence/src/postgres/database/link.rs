//! One connection to the server.

use std::collections::HashMap;
use std::future::{Future, poll_fn, ready};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::error::Severity;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Error, Row, RowStream, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::postgres::config::{Durability, PostgresLimits};
use crate::postgres::database::address::Address;
use crate::postgres::database::settings::{BARRIER, Purpose, settings};
use crate::postgres::error::{ErrorEffect, QueryFailure, effect_of, unavailable};

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
    /// The tasks of connections run here, and not where a caller happens to be.
    pub(crate) runtime: Handle,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectFailure {
    #[error("cannot connect to the PostgreSQL server")]
    Failed(#[from] Error),
    #[error("the PostgreSQL server did not answer within {0:?}")]
    TimedOut(Duration),
    /// The connection is there, but it is not known whether what it shows is durable.
    #[error("the first write on a new connection failed")]
    NoBarrier(#[from] ChangeFailure),
}

impl ConnectFailure {
    /// Whether a server has answered.
    fn is_answer(&self) -> bool {
        match self {
            Self::Failed(error) => error.as_db_error().is_some(),
            Self::NoBarrier(_) => true,
            Self::TimedOut(_) => false,
        }
    }
}

/// Why a change is not known to be saved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeFailure {
    #[error("nothing of it was saved")]
    NotSaved(#[source] QueryFailure),
    #[error("it may have been saved")]
    Unknown(#[source] UnknownCause),
}

/// Why the outcome of a commit is unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnknownCause {
    #[error("the connection broke")]
    Broken(#[source] Error),
    #[error("the PostgreSQL server did not answer within {0:?}")]
    TimedOut(Duration),
    /// For example, the wait for the standby was cancelled.
    #[error("the PostgreSQL server answered with a warning")]
    Warned,
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
    answer_timeout: Duration,
    /// Sends and receives. Aborted with the link, which closes the socket.
    _driver: JoinSet<()>,
}

impl Connector {
    /// Opens a connection, sets it up, passes its barrier, and prepares these statements.
    pub(crate) async fn connect(
        &self,
        purpose: Purpose,
        statements: &[&str],
    ) -> Result<Link, ConnectFailure> {
        self.any_host(Some((purpose, statements))).await
    }

    /// Opens a connection without setting it up.
    pub(crate) async fn connect_only(&self) -> Result<Link, ConnectFailure> {
        self.any_host(None).await
    }

    /// Tries the hosts in their order, each for `connect_timeout_ms`. If all fail, the last answer of a server says
    /// more than that another one did not answer.
    async fn any_host(&self, set_up: Option<(Purpose, &[&str])>) -> Result<Link, ConnectFailure> {
        let wait = Duration::from_millis(self.limits.connect_timeout_ms);
        let mut failure = ConnectFailure::TimedOut(wait);
        for driver in &self.address.drivers {
            match timeout(wait, self.open(driver, set_up)).await {
                Ok(Ok(link)) => return Ok(link),
                Ok(Err(new)) if new.is_answer() || !failure.is_answer() => failure = new,
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Err(failure)
    }

    async fn open(
        &self,
        driver: &Config,
        set_up: Option<(Purpose, &[&str])>,
    ) -> Result<Link, ConnectFailure> {
        let (client, connection) = driver.connect(self.tls.clone()).await?;
        let link = self.link(client, connection);
        if let Some((purpose, statements)) = set_up {
            link.batch(&settings(purpose, self.durability, &self.limits)).await?;
            link.save(link.barrier()).await?;
            for sql in statements {
                link.prepared(sql).await?;
            }
        }
        Ok(link)
    }

    fn link<S>(&self, client: Client, connection: tokio_postgres::Connection<Socket, S>) -> Link
    where
        S: tokio_postgres::tls::TlsStream + Unpin + Send + 'static,
    {
        let warnings = Arc::new(AtomicU64::new(0));
        let mut driver = JoinSet::new();
        driver.spawn_on(drive(connection, Arc::clone(&warnings)), &self.runtime);
        Link(Arc::new(Inner {
            client,
            statements: Mutex::new(HashMap::new()),
            warnings,
            clean: AtomicBool::new(true),
            answer_timeout: Duration::from_millis(self.limits.answer_timeout_ms),
            _driver: driver,
        }))
    }
}

/// Sends and receives until the connection ends. A warning is counted before the answer that follows it is passed on.
async fn drive<S>(mut connection: tokio_postgres::Connection<Socket, S>, warnings: Arc<AtomicU64>)
where
    S: tokio_postgres::tls::TlsStream + Unpin,
{
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notice(notice)) if notice.parsed_severity() == Some(Severity::Warning) => {
                warnings.fetch_add(1, Ordering::Release);
                tracing::warn!(code = notice.code().code(), "the PostgreSQL server sent a warning");
            }
            Ok(_) => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(error, "a connection to the PostgreSQL server ended");
                return;
            }
        }
    }
}

impl Link {
    /// Whether the next statement may use it.
    pub(crate) fn is_usable(&self) -> bool {
        self.0.clean.load(Ordering::Acquire) && !self.0.client.is_closed()
    }

    /// Several statements in one string, without values.
    pub(crate) async fn batch(&self, sql: &str) -> Result<(), Error> {
        self.0.client.batch_execute(sql).await
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
        self.rows(BARRIER, &[]).await?;
        Ok(())
    }

    /// How many warnings the server has sent so far.
    fn warnings(&self) -> u64 {
        self.0.warnings.load(Ordering::Acquire)
    }

    /// Runs one statement that commits by itself.
    pub(crate) async fn save<T>(
        &self,
        statement: impl Future<Output = Result<T, QueryFailure>>,
    ) -> Result<T, ChangeFailure> {
        let warned = self.warnings();
        self.0.clean.store(false, Ordering::Release);
        let answer = match timeout(self.0.answer_timeout, statement).await {
            Err(_) => return Err(ChangeFailure::Unknown(UnknownCause::TimedOut(self.0.answer_timeout))),
            Ok(Err(QueryFailure::Failed(error))) if effect_of(&error) == ErrorEffect::Unknown => {
                return Err(ChangeFailure::Unknown(UnknownCause::Broken(error)));
            }
            Ok(Err(failure)) => Err(ChangeFailure::NotSaved(failure)),
            Ok(Ok(_)) if self.warnings() != warned => {
                return Err(ChangeFailure::Unknown(UnknownCause::Warned));
            }
            Ok(Ok(answer)) => Ok(answer),
        };
        self.0.clean.store(true, Ordering::Release);
        answer
    }

    /// Runs `work` in a transaction. COMMIT is sent only if `work` succeeds: after an error it would answer ROLLBACK,
    /// which the driver takes for a success.
    pub(crate) async fn change<T>(
        &self,
        work: impl Future<Output = Result<T, QueryFailure>>,
    ) -> Result<T, ChangeFailure> {
        self.change_after(ready(Ok(())), async |()| work.await).await
    }

    /// Like [`Link::change`]. `reads` is sent together with BEGIN. It must change nothing: if BEGIN fails, it is not
    /// in a transaction.
    pub(crate) async fn change_after<R, T>(
        &self,
        reads: impl Future<Output = Result<R, QueryFailure>>,
        work: impl AsyncFnOnce(R) -> Result<T, QueryFailure>,
    ) -> Result<T, ChangeFailure> {
        let wait = self.0.answer_timeout;
        self.0.clean.store(false, Ordering::Release);
        let in_transaction = async {
            let (begun, read) = join(self.batch("BEGIN"), reads).await;
            begun?;
            work(read?).await
        };
        let worked = timeout(wait, in_transaction).await.unwrap_or_else(|_| {
            let error = UnknownCause::TimedOut(wait);
            Err(QueryFailure::Refused(unavailable(error)))
        });
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

impl ChangeFailure {
    pub(crate) fn into_store_error(self) -> tokenrail_ports::StoreError {
        match self {
            Self::NotSaved(failure) => failure.before_commit(),
            Self::Unknown(cause) => tokenrail_ports::StoreError::OutcomeUnknown(Box::new(cause)),
        }
    }
}
