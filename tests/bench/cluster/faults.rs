//! How long readers and writers are held up by what fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokenrail_test_postgres::Server as Postgres;
use tokio::task::JoinSet;

use super::site::Site;
use crate::Failure;
use crate::http::Place;
use crate::latency::{Delays, PACE_US, delays_at};
use crate::machine::now_us;
use crate::report::progress;
use crate::websocket::{Until, WebSocket};

/// Of the role of the servers, which is no superuser.
const NO_HINTS: &str = "REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC";
const HINTS: &str = "GRANT EXECUTE ON FUNCTION pg_notify(text, text) TO PUBLIC";
/// More than an agent prints while something fails.
const ENDLESS: u64 = 1_000_000;
/// How many events a reader must have read before something fails.
const WARM: u64 = 500;
/// The pause after a connection was refused.
const RETRY_PAUSE: Duration = Duration::from_millis(10);
/// The limit of one reader that is held up.
const PATIENCE: Duration = Duration::from_mins(1);

/// How late a reader at another server is, if the servers tell each other nothing: first they do not know that, then
/// they do.
pub(super) async fn without_hints(site: &Site<'_>, deltas: u64) -> Result<Delays, Failure> {
    progress("no hints");
    site.sql(NO_HINTS)?;
    let delays = delays_at(&site.nodes[0], &site.nodes[1].place, deltas, 1).await?;
    site.sql(HINTS)?;
    site.rest().await?;
    Ok(delays)
}

/// Kills the servers that do not run the agent, one after the other. Its reader goes on at the next one, the last time
/// at the owner. Returns the longest time from a kill to the next event, in seconds.
pub(super) async fn kills(site: &mut Site<'_>) -> Result<f64, Failure> {
    let id = endless(site).await?;
    let mut reader = WebSocket::follow(&site.nodes[site.nodes.len() - 1].place, &id, 0).await?;
    let mut longest: f64 = 0.0;
    while 1 < site.nodes.len() {
        reader = read_some(reader).await?;
        let mut killed = site.nodes.pop().ok_or("no server")?;
        killed.kill()?;
        let killed_us = now_us();
        let next = &site.nodes[site.nodes.len() - 1].place;
        reader = tokio::time::timeout(PATIENCE, elsewhere(reader, next, &id)).await??;
        longest = longest.max((reader.seen.newest_us - killed_us) as f64 / 1e6);
        progress(&format!("a reader of a killed server went on after {longest:.3} s"));
    }
    stop(&site.nodes[0].place, &id).await?;
    Ok(longest)
}

/// Reads what the dead server has sent, and one more event from another one.
async fn elsewhere(reader: WebSocket, next: &Place, id: &str) -> Result<WebSocket, Failure> {
    let since = reader.read_to_the_end().await.last;
    loop {
        if let Ok(mut again) = WebSocket::follow(next, id, since).await {
            while again.seen.last == since {
                again.read().await?;
            }
            return Ok(again);
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Kills the primary and promotes its standby at once. Returns the longest time without an event meanwhile, in seconds.
pub(super) async fn failover(
    site: &Site<'_>,
    primary: &Postgres,
    standby: &Postgres,
) -> Result<f64, Failure> {
    progress("failover");
    let id = endless(site).await?;
    let reader = read_some(WebSocket::follow(&site.nodes[0].place, &id, 0).await?).await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut silence = JoinSet::new();
    silence.spawn(longest_silence(reader, Arc::clone(&is_over)));
    let killed = Instant::now();
    primary.kill_9();
    standby.promote();
    progress(&format!("the standby was the primary after {:.2} s", killed.elapsed().as_secs_f64()));
    is_over.store(true, Ordering::Relaxed);
    let longest_us = silence.join_next().await.ok_or("no reader")???;
    stop(&site.nodes[0].place, &id).await?;
    Ok(longest_us as f64 / 1e6)
}

/// Reads until the first event that comes after it is over. Returns the longest time between two events.
async fn longest_silence(mut reader: WebSocket, is_over: Arc<AtomicBool>) -> Result<u64, Failure> {
    let mut longest = 0;
    loop {
        let (before_us, is_last) = (reader.seen.newest_us, is_over.load(Ordering::Relaxed));
        tokio::time::timeout(PATIENCE, reader.read()).await??;
        longest = longest.max(reader.seen.newest_us - before_us);
        if is_last {
            return Ok(longest);
        }
    }
}

/// An agent at the pace of a fast model on the first server.
async fn endless(site: &Site<'_>) -> Result<String, Failure> {
    let script = json!({ "mode": "stream", "deltas": ENDLESS, "pace_us": PACE_US });
    site.nodes[0].launch(&script).await
}

async fn read_some(mut reader: WebSocket) -> Result<WebSocket, Failure> {
    let until = Until::Event(reader.seen.last + WARM);
    while !until.is_met(&reader.seen) {
        tokio::time::timeout(PATIENCE, reader.read()).await??;
    }
    Ok(reader)
}

async fn stop(place: &Place, id: &str) -> Result<(), Failure> {
    place.post(&format!("/api/agents/{id}/cancel"), &json!({})).await?;
    Ok(())
}
