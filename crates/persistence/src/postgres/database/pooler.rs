//! Refuses a pooler that gives each transaction another session of the server. Settings, prepared statements and LISTEN
//! belong to a session, so none of them would hold.

use crate::postgres::database::link::{Connector, Link};
use crate::postgres::database::schema;
use crate::postgres::error::PostgresOpenError;

/// A session of all sessions of all servers.
const SESSION: &str = "SELECT pg_backend_pid() || ' ' || pg_postmaster_start_time()";

/// How often two connections are compared. A pooler may give them different sessions by chance.
const ROUNDS: usize = 3;

pub(crate) async fn refuse(connector: &Connector) -> Result<(), PostgresOpenError> {
    let connect = async || {
        let link = connector.connect_only().await;
        link.map_err(|failure| schema::refused(&connector.address, failure))
    };
    let links = [connect().await?, connect().await?];
    let first = sessions(&links, connector).await?;
    let mut are_shared = first[0] == first[1];
    for _ in 1..ROUNDS {
        are_shared |= sessions(&links, connector).await? != first;
    }
    if are_shared { Err(PostgresOpenError::SharedSessions) } else { Ok(()) }
}

async fn sessions(links: &[Link; 2], connector: &Connector) -> Result<[String; 2], PostgresOpenError> {
    let mut sessions = [String::new(), String::new()];
    for (link, session) in links.iter().zip(&mut sessions) {
        let said = link.said(SESSION).await;
        *session = said.map_err(|error| schema::open_error(&connector.address, error.into()))?;
    }
    Ok(sessions)
}
