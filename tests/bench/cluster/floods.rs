//! Several agents that print as fast as they can, each with a follower at its own server.

use serde_json::json;
use tokio::task::JoinSet;

use super::site::Site;
use crate::machine::now_us;
use crate::report::{grouped, progress};
use crate::websocket::{Until, WebSocket};
use crate::{Failure, Scale};

const AGENTS: usize = 6;
/// What each of them prints.
const DELTAS: u64 = 150_000;

/// Floods the first servers of the site, from an equal number of agents each. Returns the events per second.
pub(super) async fn flood(site: &Site<'_>, servers: usize, scale: Scale) -> Result<f64, Failure> {
    let gate = site.nodes[0].file(&format!("gate-{}", now_us()));
    let script = json!({ "deltas": scale.of(DELTAS), "gate": gate });
    let (mut agents, mut readers) = (Vec::new(), JoinSet::new());
    for number in 0..AGENTS {
        let server = &site.nodes[number % servers];
        let id = server.launch(&script).await?;
        server.wait_for_head(&id, 2).await?;
        let socket = WebSocket::follow(&server.place, &id, 0).await?;
        readers.spawn(socket.read_until(Until::TurnEnd));
        agents.push((server, id));
    }
    let wal_before = site.wal()?;
    let opened_us = now_us();
    std::fs::write(&gate, "")?;
    let (mut read, mut last_us) = (0, opened_us);
    while let Some(seen) = readers.join_next().await {
        let seen = seen??;
        (read, last_us) = (read + seen.last, last_us.max(seen.newest_us));
    }
    let mut saved = 0;
    for (server, id) in agents {
        saved += server.wait_for_end(&id).await?;
    }
    if read != saved {
        return Err(format!("the followers have {read} events of {saved}").into());
    }
    let rate = saved as f64 / ((last_us - opened_us) as f64 / 1e6);
    let wal = site.wal()?.zip(wal_before).map_or(0, |(after, before)| after - before);
    let (shown, each) = (grouped(rate), wal as f64 / saved as f64);
    progress(&format!("{AGENTS} agents on {servers} servers: {shown} events/s, {each:.0} bytes of log each"));
    site.rest().await?;
    Ok(rate)
}
