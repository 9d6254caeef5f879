//! From the agent's output to all followers, as fast as it goes.

use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::machine::{CpuTime, now_us};
use crate::report::{Report, Table, grouped};
use crate::server::{self, Durability, Server};
use crate::websocket::{Seen, Until, WebSocket};
use crate::{Failure, Scale};

/// How many follow, and how many deltas the agent says to them.
const FLOODS: [(u64, u64); 3] = [(1, 400_000), (100, 100_000), (1000, 20_000)];

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> Result<(), Failure> {
    agent_alone(scale)?;
    let columns = [
        "synchronous, followers",
        "events",
        "seconds",
        "events/s",
        "deliveries/s",
        "MB/s sent",
        "server CPU",
    ];
    let table = Table::begin("rate: from the agent's output to all followers", &columns);
    let mut threads = Vec::new();
    for durability in Durability::ALL {
        let server = Server::start(durability)?;
        let others = server.other_events().await?;
        // The largest number last: what it leaves behind disturbs nobody.
        for (followers, deltas) in FLOODS {
            let script = json!({ "deltas": scale.of(deltas) });
            let flood = flood(&server, script, followers, others + scale.of(deltas)).await?;
            let name = format!("{}, {followers}", durability.as_str());
            table.row(&flood.row(&name, followers));
            threads.push(format!("  {name}: {}", flood.cpu.per_event(flood.events)));
            report.keep(format!("rate {name}").replace(',', ""), flood.rate());
        }
        let script = json!({ "mode": "flood", "mib": 0, "deltas": scale.of(400_000) });
        let flood = flood(&server, script, 1, others + scale.of(400_000)).await?;
        table.row(&flood.row(&format!("{}, 1, 64 KiB writes", durability.as_str()), 1));
    }
    println!("\nprocessor time of the server's threads, microseconds for each event\n{}", threads.join("\n"));
    Ok(())
}

/// What one flood was like.
pub(crate) struct Flood {
    pub(crate) events: u64,
    seconds: f64,
    bytes: u64,
    cpu: CpuTime,
}

impl Flood {
    fn rate(&self) -> f64 {
        self.events as f64 / self.seconds
    }

    fn row(&self, name: &str, followers: u64) -> [String; 7] {
        [
            name.to_owned(),
            grouped(self.events as f64),
            format!("{:.2}", self.seconds),
            grouped(self.rate()),
            grouped(self.rate() * followers as f64),
            grouped(self.bytes as f64 / self.seconds / 1e6),
            format!("{:.0} %", self.cpu.total().as_secs_f64() / self.seconds * 100.0),
        ]
    }
}

/// Lets the agent go when everybody follows it, and waits until everybody has everything.
pub(crate) async fn flood(
    server: &Server,
    script: Value,
    followers: u64,
    expected: u64,
) -> Result<Flood, Failure> {
    let before = CpuTime::of(server.pid())?;
    let (opened_us, seen) = follow(server, script, followers, 0).await?;
    let cpu = CpuTime::of(server.pid())?.since(&before);
    if let Some(wrong) = seen.iter().find(|seen| seen.last != expected) {
        return Err(format!("a follower has {} events of {expected}", wrong.last).into());
    }
    let last_us = seen.iter().map(|seen| seen.newest_us).max().unwrap_or(opened_us);
    let bytes = seen.iter().map(|seen| seen.bytes).sum();
    Ok(Flood { events: expected, seconds: (last_us - opened_us) as f64 / 1e6, bytes, cpu })
}

/// Launches an agent, lets it go when everybody follows it, and reads to the end of its turn. Gives when it was let
/// go, and what everybody has seen; with room for so many `delays` each, how late every delta was too.
pub(crate) async fn follow(
    server: &Server,
    mut script: Value,
    followers: u64,
    delays: usize,
) -> Result<(u64, Vec<Seen>), Failure> {
    let gate = server.file(&format!("gate-{}", now_us()));
    script["gate"] = json!(gate);
    let id = server.launch(&script).await?;
    // Its prompt and what it prints before its first delta.
    server.wait_for_head(&id, 2).await?;
    let mut tasks = JoinSet::new();
    for _ in 0..followers {
        let mut socket = WebSocket::follow(&server.place, &id, 0).await?;
        socket.seen.delays_us.reserve_exact(delays);
        tasks.spawn(socket.read_until(Until::TurnEnd));
    }
    let opened_us = now_us();
    std::fs::write(&gate, "")?;
    let mut all = Vec::new();
    while let Some(seen) = tasks.join_next().await {
        all.push(seen??);
    }
    server.wait_for_end(&id).await?;
    Ok((opened_us, all))
}

/// How fast the agent prints when nobody reads.
fn agent_alone(scale: Scale) -> Result<(), Failure> {
    let table = Table::begin("the scripted agent alone, into a file", &["writes", "lines/s"]);
    let deltas = scale.of(400_000);
    for (name, mode) in [("a line each", "stream"), ("64 KiB each", "flood")] {
        let folder = server::folder()?;
        let (script, output) = (folder.path().join("script"), folder.path().join("output"));
        std::fs::write(&script, json!({ "mode": mode, "mib": 0, "deltas": deltas }).to_string())?;
        let mut agent = Command::new(server::agent_program()?);
        agent
            .stdin(std::fs::File::open(script)?)
            .stdout(std::fs::File::create(output)?)
            .stderr(Stdio::inherit());
        let started = Instant::now();
        if !agent.status()?.success() {
            return Err("the scripted agent has failed".into());
        }
        table.row(&[name.to_owned(), grouped(deltas as f64 / started.elapsed().as_secs_f64())]);
    }
    Ok(())
}
