//! How fast a client that connects late has read everything.

use serde_json::json;

use crate::event_stream::EventStream;
use crate::machine::now_us;
use crate::report::{Report, Table, grouped};
use crate::seen::Seen;
use crate::server::{Durability, Server};
use crate::websocket::{Form, Until, Way, WebSocket};
use crate::{Failure, Scale};

/// The number of repetitions. The median counts.
const READINGS: usize = 5;

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> Result<(), Failure> {
    let columns = ["history, way", "events", "events/s", "MB/s", "first ms"];
    let table = Table::begin("history: everything from the first event, one client", &columns);
    let server = Server::start(Durability::Full)?;
    let deltas = scale.of(100_000);
    let gate = server.file("gate-of-history");
    // The agent waits before its last delta, so that the server cannot pack its turn yet.
    let script = json!({ "deltas": deltas, "gate": gate, "gate_after": deltas - 1 });
    let id = server.launch(&script).await?;
    let mut head = server.wait_for_head(&id, deltas).await?;
    for (state, ended) in [("as written", false), ("compacted", true)] {
        if ended {
            std::fs::write(&gate, "")?;
            head = server.wait_for_end(&id).await?;
            server.wait_for_compaction().await?;
        }
        for way in Way::ALL {
            let reading = read(&server, &id, head, way).await?;
            let name = format!("{state}, {}", way.as_str());
            table.row(&[
                name,
                grouped(head as f64),
                grouped(reading.rate),
                format!("{:.0}", reading.mb_per_s),
                format!("{:.2}", reading.first_ms),
            ]);
            let key = if matches!(way, Way::Sse) { "catch-up sse" } else { "catch-up ws" };
            report.keep(key, reading.rate);
        }
    }
    Ok(())
}

pub(crate) struct Reading {
    pub(crate) rate: f64,
    mb_per_s: f64,
    first_ms: f64,
}

/// Reads all events several times. Returns the reading of the median rate.
pub(crate) async fn read(server: &Server, id: &str, head: u64, way: Way) -> Result<Reading, Failure> {
    let mut readings = Vec::new();
    for _ in 0..READINGS {
        let started_us = now_us();
        let seen: Seen = match way {
            Way::WebSocket => {
                WebSocket::follow(&server.place, id, 0).await?.read_until(Until::Event(head)).await?
            }
            Way::Sse => {
                EventStream::follow(&server.place, id, Form::Single)
                    .await?
                    .read_until(Until::Event(head))
                    .await?
            }
        };
        if seen.last != head {
            return Err(format!("{} events of {head}", seen.last).into());
        }
        let seconds = (seen.newest_us - started_us) as f64 / 1e6;
        let first_us = seen.first_us.unwrap_or(started_us) - started_us;
        readings.push(Reading {
            rate: head as f64 / seconds,
            mb_per_s: seen.bytes as f64 / seconds / 1e6,
            first_ms: first_us as f64 / 1e3,
        });
    }
    readings.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    Ok(readings.swap_remove(READINGS / 2))
}
