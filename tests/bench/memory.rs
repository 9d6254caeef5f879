//! The memory of a connection, and what remains after a flood.

use std::time::Duration;

use serde_json::json;

use crate::event_stream;
use crate::http::Place;
use crate::machine::{self, Resident};
use crate::rate::flood;
use crate::report::{Table, grouped};
use crate::server::{Durability, Server};
use crate::websocket::WebSocket;
use crate::{Failure, Scale};

const CONNECTIONS: u64 = 2000;
/// Agents that print nothing more.
const IDLE_AGENTS: u64 = 20;
const DELTAS: u64 = 200_000;
/// How long to wait until deferred work is done.
const SETTLING: Duration = Duration::from_secs(5);

pub(crate) async fn measure(scale: Scale) -> Result<(), Failure> {
    idle(scale.of(CONNECTIONS)).await?;
    supervisors(scale.of(IDLE_AGENTS)).await?;
    after_flood(scale.of(DELTAS)).await
}

async fn idle(connections: u64) -> Result<(), Failure> {
    let columns = ["", "connections", "bytes each"];
    let table = Table::begin("memory: idle connections that follow an agent that says nothing", &columns);
    let mut sockets = Vec::new();
    idle_of(&table, "idle WebSocket bytes", connections, async |place, id, head| {
        sockets.push(WebSocket::follow(place, id, head).await?);
        Ok(())
    })
    .await?;
    let mut streams = Vec::new();
    idle_of(&table, "idle event stream bytes", connections, async |place, id, head| {
        streams.push(event_stream::follow(place, id, head).await?);
        Ok(())
    })
    .await
}

/// The memory that each connection takes in the server, without the kernel's buffers.
async fn idle_of(
    table: &Table,
    what: &str,
    connections: u64,
    mut connect: impl AsyncFnMut(&Place, &str, u64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let server = Server::start(Durability::Full)?;
    let id = server.launch(&json!({ "deltas": 10 })).await?;
    let head = server.wait_for_end(&id).await?;
    // What the server allocates once, at the first connection, must not count for each.
    connect(&server.place, &id, head).await?;
    let before = Resident::of(server.pid())?.now_kib;
    for _ in 0..connections {
        connect(&server.place, &id, head).await?;
    }
    let after = Resident::of(server.pid())?.now_kib;
    let each = (after as f64 - before as f64) * 1024.0 / connections as f64;
    table.row(&[what.to_owned(), grouped(connections as f64), grouped(each)]);
    Ok(())
}

/// The memory of a supervisor while its agent prints nothing.
async fn supervisors(agents: u64) -> Result<(), Failure> {
    let columns = ["", "agents", "KiB each (PSS)"];
    let table = Table::begin("memory: supervisors of agents that say nothing", &columns);
    let server = Server::start(Durability::Full)?;
    for _ in 0..agents {
        let id = server.launch(&json!({ "mode": "hang" })).await?;
        server.wait_for_head(&id, 2).await?;
    }
    let supervisors = machine::children(server.pid())?;
    if supervisors.len() as u64 != agents {
        return Err(format!("{} supervisors of {agents} agents", supervisors.len()).into());
    }
    let shares = supervisors.into_iter().map(machine::share_kib).collect::<Result<Vec<_>, _>>();
    let each = match shares {
        Ok(shares) => grouped(shares.iter().sum::<u64>() as f64 / agents as f64),
        Err(error) => error.to_string(),
    };
    table.row(&["supervisor".to_owned(), grouped(agents as f64), each]);
    Ok(())
}

async fn after_flood(deltas: u64) -> Result<(), Failure> {
    let table = Table::begin("memory: a flood with one follower", &["", "MiB"]);
    let server = Server::start(Durability::Full)?;
    let others = server.other_events().await?;
    let mib = |kib: u64| format!("{:.0}", kib as f64 / 1024.0);
    table.row(&["before".to_owned(), mib(Resident::of(server.pid())?.now_kib)]);
    flood(&server, json!({ "deltas": deltas }), 1, deltas + others).await?;
    table.row(&[format!("after {}", grouped(deltas as f64)), mib(Resident::of(server.pid())?.now_kib)]);
    tokio::time::sleep(SETTLING).await;
    let resident = Resident::of(server.pid())?;
    table.row(&["5 s later".to_owned(), mib(resident.now_kib)]);
    table.row(&["peak".to_owned(), mib(resident.peak_kib)]);
    Ok(())
}
