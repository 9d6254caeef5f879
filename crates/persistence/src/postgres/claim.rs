//! The right to be the only server on a database.
//!
//! A second server would end the agents of the first one: it does not have their processes. The claim is an advisory
//! lock of a connection that does nothing else. It refuses a second start; it does not fence a server that has lost it.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::postgres::config::PostgresConfig;
use crate::postgres::database::address::Address;
use crate::postgres::database::link::{Connector, Link};
use crate::postgres::database::{schema, tls};
use crate::postgres::error::{PostgresOpenError, QueryFailure};

/// The key of the lock: the letters `TkRo`.
const CLAIM: i64 = 0x546b_526f;

const TRY: &str = "SELECT pg_try_advisory_lock($1)";

/// The server ends the connection of a machine that has vanished, instead of keeping its claim for hours.
const KEEPALIVE: &str =
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3";

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// The claim of this server. It ends when this is dropped.
#[derive(Debug)]
pub struct DatabaseClaim {
    _keeper: JoinSet<()>,
}

impl DatabaseClaim {
    /// Claims the database. A claim that was just given up may take `claim_wait_ms` to disappear.
    ///
    /// # Errors
    /// [`PostgresOpenError::InUse`] if another server has it; all other errors of a connection.
    pub async fn take(config: &PostgresConfig) -> Result<Self, PostgresOpenError> {
        let address = Address::of(config)?;
        let tls = tls::connector(&address.check)?;
        let (durability, limits) = (config.durability, config.limits.clone());
        let wait = Duration::from_millis(limits.claim_wait_ms);
        let connector = Connector { address, tls, durability, limits, runtime: Handle::current() };
        let started = Instant::now();
        let link = connect(&connector).await?;
        while !locks(&link).await.map_err(|failure| schema::open_error(&connector.address, failure))? {
            if wait < started.elapsed() {
                return Err(PostgresOpenError::InUse { database: connector.address.database });
            }
            sleep(PAUSE).await;
        }
        let mut keeper = JoinSet::new();
        keeper.spawn(keep(connector, link));
        Ok(Self { _keeper: keeper })
    }
}

/// Claims again after each loss of the connection, for example because the database server was started again.
async fn keep(connector: Connector, mut link: Link) {
    let (mut claimed, mut told) = (true, false);
    loop {
        sleep(PAUSE).await;
        if claimed && link.is_usable() {
            continue;
        }
        claimed = false;
        if !link.is_usable() {
            let Ok(new) = connect(&connector).await else { continue };
            link = new;
        }
        claimed = locks(&link).await.unwrap_or(false);
        if !claimed && link.is_usable() && !told {
            told = true;
            tracing::error!("another server has claimed the database while it was away: stop one of them");
        }
    }
}

async fn connect(connector: &Connector) -> Result<Link, PostgresOpenError> {
    let address = &connector.address;
    let link = connector.connect_only().await.map_err(|failure| schema::refused(address, failure))?;
    link.batch(KEEPALIVE).await.map_err(|error| schema::open_error(address, error.into()))?;
    Ok(link)
}

async fn locks(link: &Link) -> Result<bool, QueryFailure> {
    let row = link.row(TRY, &[&CLAIM]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(false))
}
