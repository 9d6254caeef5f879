//! The servers and databases that may be used, and the migrations that a database lacks.

use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use crate::postgres::database::address::Address;
use crate::postgres::database::failures::ConnectFailure;
use crate::postgres::database::link::{Connector, Link};
use crate::postgres::database::tls;
use crate::postgres::error::{PostgresOpenError, QueryFailure};

/// The first version with `client_connection_check_interval` on all systems, and the oldest that is tested.
const SERVER_VERSION_MIN: i32 = 150_000;

const SERVER: &str = "
    SELECT current_setting('server_version_num')::int, current_setting('server_version'),
        pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean";

/// Whether there is a table `cluster`, and how many other tables there are, but for those of extensions.
const FOUND: &str = "
    SELECT count(*) FILTER (WHERE relname = 'cluster'), count(*) FILTER (WHERE relname <> 'cluster')
    FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
        AND NOT EXISTS (
            SELECT FROM pg_depend
            WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e'
        )";

const SCHEMA: &str = "SELECT schema, compatible_from FROM cluster WHERE one = 1";

/// Checks what a start checks, and changes nothing.
pub(crate) async fn check(connector: &Connector) -> Result<(), PostgresOpenError> {
    let address = &connector.address;
    let link = connector.connect_only().await.map_err(|failure| refused(address, failure))?;
    check_server(&link, address).await?;
    missing(&link, connector).await.map(drop)
}

pub(crate) async fn check_server(link: &Link, address: &Address) -> Result<(), PostgresOpenError> {
    let read = async {
        let row = link.row(SERVER, &[]).await?;
        row.as_ref().map(server_of).transpose().map_err(QueryFailure::from)
    };
    match read.await.map_err(|failure| open_error(address, failure))? {
        Some(server) if server.number < SERVER_VERSION_MIN => {
            Err(PostgresOpenError::ServerTooOld { found: server.version })
        }
        Some(server) if server.read_only => Err(PostgresOpenError::ReadOnly),
        _ => Ok(()),
    }
}

struct FoundServer {
    number: i32,
    version: String,
    read_only: bool,
}

fn server_of(row: &Row) -> Result<FoundServer, tokio_postgres::Error> {
    Ok(FoundServer { number: row.try_get(0)?, version: row.try_get(1)?, read_only: row.try_get(2)? })
}

/// The migrations that are not applied yet.
pub(crate) async fn missing(
    link: &Link,
    connector: &Connector,
) -> Result<&'static [&'static str], PostgresOpenError> {
    let (address, migrations) = (&connector.address, connector.steps.migrations);
    let known = connector.steps.schema();
    let foreign = || PostgresOpenError::Foreign { database: address.database.clone() };
    let failed = |failure| open_error(address, failure);
    let found = link.row(FOUND, &[]).await.map_err(|error| failed(error.into()))?;
    let counts = found.map(|row| Ok::<_, tokio_postgres::Error>((row.try_get(0)?, row.try_get(1)?)));
    let (ours, others): (i64, i64) =
        counts.transpose().map_err(|error| failed(error.into()))?.unwrap_or_default();
    if ours == 0 {
        return if others == 0 { Ok(migrations) } else { Err(foreign()) };
    }
    let row = match link.row(SCHEMA, &[]).await {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_COLUMN) => return Err(foreign()),
        row => row.map_err(|error| failed(error.into()))?.ok_or_else(foreign)?,
    };
    let (schema, required): (i32, i32) =
        (|| Ok::<_, tokio_postgres::Error>((row.try_get(0)?, row.try_get(1)?)))()
            .map_err(|error| failed(error.into()))?;
    if known < required {
        return Err(PostgresOpenError::NewerSchema { required, known });
    }
    // A newer schema that is compatible needs nothing.
    Ok(usize::try_from(schema).ok().and_then(|done| migrations.get(done..)).unwrap_or_default())
}

/// Why there is no connection, for people.
pub(crate) fn refused(address: &Address, failure: ConnectFailure) -> PostgresOpenError {
    match failure {
        ConnectFailure::Failed(error) if error.as_db_error().is_some() => open_error(address, error.into()),
        ConnectFailure::WrongServer(wrong) => PostgresOpenError::WrongServer(wrong),
        ConnectFailure::Failed(error) if wants_password(&error) => {
            PostgresOpenError::Refused { user: address.user.clone(), source: Box::new(error) }
        }
        failure => {
            let problem = match &failure {
                ConnectFailure::Failed(error) => tls::problem_of(error),
                ConnectFailure::TimedOut(_)
                | ConnectFailure::NoPlace(_)
                | ConnectFailure::Standby
                | ConnectFailure::NoBarrier(_)
                | ConnectFailure::NotHealed(_)
                | ConnectFailure::WrongServer(_) => None,
            };
            match problem {
                Some(problem) => PostgresOpenError::Tls { problem },
                None => {
                    PostgresOpenError::Unreachable { hosts: address.hosts.clone(), source: Box::new(failure) }
                }
            }
        }
    }
}

/// Whether the server asks for a password, and there is none. The driver does not distinguish it otherwise.
fn wants_password(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| cause.to_string() == "password missing")
}

/// The failure of a statement at the start, for people.
pub(crate) fn open_error(address: &Address, failure: QueryFailure) -> PostgresOpenError {
    let error = match failure {
        QueryFailure::Failed(error) => error,
        other => return PostgresOpenError::Server { source: Box::new(other.before_commit()) },
    };
    let (user, database) = (address.user.clone(), address.database.clone());
    match error.code() {
        Some(&(SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION)) => {
            PostgresOpenError::Refused { user, source: Box::new(error) }
        }
        Some(&SqlState::INVALID_CATALOG_NAME) => PostgresOpenError::NoDatabase { database },
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            PostgresOpenError::NotAllowed { user, database, source: Box::new(error) }
        }
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => PostgresOpenError::ReadOnly,
        Some(&SqlState::DISK_FULL) => PostgresOpenError::Full,
        _ => PostgresOpenError::Server { source: Box::new(error) },
    }
}
