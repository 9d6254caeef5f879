//! What an operator should know about the server: settings that lose commits, and what the data survives.

use tokio_postgres::{Error, Row};

use crate::postgres::config::{Durability, PostgresConfig};
use crate::postgres::database::address::Address;
use crate::postgres::database::link::{Connector, Link};
use crate::postgres::database::settings::{Purpose, STANDBY_EXPECTED};
use crate::postgres::database::{schema, tls};
use crate::postgres::error::{PostgresOpenError, QueryFailure};

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
    /// A commit waits for the disk.
    pub fsync: bool,
    /// A page that was written in part is repaired after a crash.
    pub full_page_writes: bool,
    /// A page that the disk has changed is noticed.
    pub checksums: bool,
    pub survives: Survives,
    /// `None` if the database has no tables yet.
    pub content: Option<PostgresContent>,
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

/// Connects, and looks at the server.
///
/// # Errors
/// Those of [`PostgresStore::open`](crate::PostgresStore::open). A synchronous standby that does not answer is
/// [`PostgresOpenError::Unreachable`]: no commit would be answered.
pub async fn postgres_doctor(config: PostgresConfig) -> Result<PostgresDiagnosis, PostgresOpenError> {
    let address = Address::of(&config)?;
    let tls = tls::connector(&address.check)?;
    let runtime = tokio::runtime::Handle::current();
    let connector = Connector { address, tls, durability: config.durability, limits: config.limits, runtime };
    // Refuses what a start would refuse.
    schema::check(&connector).await?;
    let failed = |failure| schema::open_error(&connector.address, failure);
    // This writes: the barrier.
    let link = connector.connect(Purpose::Pool, &[]).await;
    let link = link.map_err(|failure| schema::refused(&connector.address, failure))?;
    let hosts = connector.address.hosts.clone();
    diagnose(&link, hosts, connector.durability).await.map_err(failed)
}

async fn diagnose(
    link: &Link,
    hosts: String,
    durability: Durability,
) -> Result<PostgresDiagnosis, QueryFailure> {
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
        fsync: row.try_get(1)?,
        full_page_writes: row.try_get(2)?,
        checksums: row.try_get(3)?,
        survives,
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
