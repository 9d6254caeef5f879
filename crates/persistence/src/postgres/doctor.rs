//! What an operator should know about the server: settings that lose commits, and what the data survives.

mod health;
mod nodes;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_postgres::{Error, Row};

pub use self::health::{PostgresHealth, PostgresTimes, ReplicationSlots};
pub use self::nodes::SeenNode;

use crate::postgres::config::{Durability, PostgresConfig};
use crate::postgres::database::driver::Ear;
use crate::postgres::database::known_server::UNKNOWN_TIMELINE;
use crate::postgres::database::link::{Connector, Link};
use crate::postgres::database::settings::{Purpose, STANDBY_EXPECTED};
use crate::postgres::database::{pooler, schema};
use crate::postgres::error::{PostgresOpenError, QueryFailure};
use crate::postgres::unfinished_move;

/// The settings that matter, and whether the tables are there.
const SERVER: &str = "
    SELECT current_setting('server_version'),
        current_setting('fsync')::boolean,
        current_setting('full_page_writes')::boolean,
        current_setting('data_checksums')::boolean,
        to_regclass('cluster') IS NOT NULL";

const CONTENT: &str = "SELECT count(*), coalesce(sum(head), 0)::bigint FROM heads";

/// What was found. Nothing was changed, and nothing was migrated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresDiagnosis {
    pub hosts: String,
    /// Such as `15.18 (Debian 15.18-0+deb12u1)`.
    pub version: String,
    /// Each promotion of a standby raises it. `None` if the server does not say.
    pub timeline: Option<u32>,
    /// A commit waits for the disk.
    pub fsync: bool,
    /// A page that was written in part is repaired after a crash.
    pub full_page_writes: bool,
    /// A page that the disk has changed is noticed.
    pub checksums: bool,
    pub survives: Survives,
    pub health: PostgresHealth,
    /// The servers that have used the database. Empty if none has.
    pub nodes: Vec<SeenNode>,
    /// `None` if the database has no tables yet.
    pub content: Option<PostgresContent>,
}

/// A connection that sends hints, and one that hears them.
struct HintLinks {
    sender: Link,
    listener: Link,
    /// Notified for each hint.
    heard: Arc<Notify>,
}

/// How many machines may be lost without a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survives {
    /// The disk of the primary must not be lost.
    NoMachine,
    /// A synchronous standby has confirmed a commit.
    OneMachine,
}

/// How much is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostgresContent {
    pub agents: i64,
    pub events: i64,
}

/// Connects, and looks at the server. A node that is alive must beat within `beat`; this waits until all of them have.
///
/// # Errors
/// Those of [`PostgresStore::open`](crate::PostgresStore::open). A synchronous standby that does not answer is
/// [`PostgresOpenError::Unreachable`]: no commit would be answered.
pub async fn postgres_doctor(
    config: PostgresConfig,
    beat: Duration,
) -> Result<PostgresDiagnosis, PostgresOpenError> {
    let connector = Connector::of(config)?;
    // Refuses what a start would refuse.
    pooler::refuse(&connector).await?;
    schema::check(&connector).await?;
    unfinished_move::refuse(&connector).await?;
    let failed = |failure| schema::open_error(&connector.address, failure);
    let no_link = |failure| schema::refused(&connector.address, failure);
    // This writes: the barrier.
    let link = connector.connect(Purpose::Pool, &[]).await.map_err(no_link)?;
    let heard = Arc::new(Notify::new());
    let arrivals = Arc::clone(&heard);
    let ear: Ear = Arc::new(move |_| arrivals.notify_one());
    let links = HintLinks {
        sender: connector.connect(Purpose::WithoutStandby, &[]).await.map_err(no_link)?,
        listener: connector.connect_to_hear(Purpose::WithoutStandby, ear).await.map_err(no_link)?,
        heard,
    };
    let wait = Duration::from_millis(connector.limits.hint_wait_ms);
    let hint = health::hint(&links, wait).await.map_err(failed)?;
    let health = health::health(&link, hint).await.map_err(failed)?;
    let nodes = nodes::seen(&link, beat).await.map_err(failed)?;
    let hosts = connector.address.hosts.clone();
    let found = Found { hosts, health, nodes };
    diagnose(&link, found, connector.durability).await.map_err(failed)
}

/// What is known before the settings are read.
struct Found {
    hosts: String,
    health: PostgresHealth,
    nodes: Vec<SeenNode>,
}

async fn diagnose(
    link: &Link,
    found: Found,
    durability: Durability,
) -> Result<PostgresDiagnosis, QueryFailure> {
    let Found { hosts, health, nodes } = found;
    let waits: bool = only(link, STANDBY_EXPECTED).await?.try_get(0)?;
    let survives = match durability {
        Durability::Auto | Durability::Replicated if waits => Survives::OneMachine,
        Durability::Primary | Durability::Auto | Durability::Replicated => Survives::NoMachine,
    };
    let row = only(link, SERVER).await?;
    let content = if row.try_get(4)? { Some(content_of(&only(link, CONTENT).await?)?) } else { None };
    Ok(PostgresDiagnosis {
        hosts,
        version: row.try_get(0)?,
        timeline: Some(link.timeline()).filter(|timeline| *timeline != UNKNOWN_TIMELINE),
        fsync: row.try_get(1)?,
        full_page_writes: row.try_get(2)?,
        checksums: row.try_get(3)?,
        survives,
        health,
        nodes,
        content,
    })
}

fn content_of(row: &Row) -> Result<PostgresContent, Error> {
    Ok(PostgresContent { agents: row.try_get(0)?, events: row.try_get(1)? })
}

async fn only(link: &Link, sql: &str) -> Result<Row, QueryFailure> {
    let row = link.row(sql, &[]).await?;
    row.ok_or_else(|| QueryFailure::Refused(tokenrail_ports::StoreError::Corrupt("no row".to_owned())))
}
