//! From the agent's output to all followers, as fast as possible.

use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::event_stream::EventStream;
use crate::http::Place;
use crate::machine::{CpuTime, now_us};
use crate::report::{Report, Table, grouped, progress};
use crate::seen::Seen;
use crate::server::{self, Durability, Server};
use crate::websocket::{Form, Until, Way, WebSocket};
use crate::{Failure, Scale};

/// The number of followers, and how many deltas the agent prints.
const FLOODS: [(u64, u64); 3] = [(1, 400_000), (100, 50_000), (1000, 20_000)];

/// The number of floods. The median counts.
const REPEATS: usize = 3;

const COMMITS: &str = "tokenrail_batches_saved_total";
/// A line that is longer than a mebibyte and displays nothing by itself adds a notice. The last lines of these agents
/// are such lines.
const NOTICES_MAX: u64 = 2;

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> Result<(), Failure> {
    agent_alone(scale)?;
    let columns = [
        "synchronous, followers",
        "events",
        "seconds",
        "events/s",
        "deliveries/s",
        "MB/s sent",
        "per commit",
        "server CPU",
        "lowest",
        "highest",
    ];
    let table = Table::begin("rate: from the agent's output to all followers", &columns);
    println!("(the middle of {REPEATS}; lowest and highest are events/s of the others)");
    let mut threads = Vec::new();
    for durability in Durability::ALL {
        let server = Server::start(durability)?;
        let others = server.other_events().await?;
        // The largest number of followers comes last, so that its leftovers disturb no other flood.
        for (followers, deltas) in FLOODS {
            let script = json!({ "deltas": scale.of(deltas) });
            let name = format!("{}, {followers}", durability.as_str());
            let mut floods = Vec::new();
            for _ in 0..REPEATS {
                progress(&name);
                server.rest().await?;
                floods.push(flood(&server, script.clone(), followers, others + scale.of(deltas)).await?);
            }
            floods.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
            let others = [&floods[0], &floods[REPEATS - 1]].map(|flood| grouped(flood.rate()));
            let flood = &floods[REPEATS / 2];
            table.row(&[&flood.row(&name, followers)[..], &others].concat());
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

/// The result of one flood.
pub(crate) struct Flood {
    pub(crate) events: u64,
    seconds: f64,
    bytes: u64,
    commits: f64,
    cpu: CpuTime,
    /// As counted by a thorough follower.
    deltas: u64,
    delta_bytes: u64,
}

impl Flood {
    pub(crate) fn bytes_per_token(&self) -> f64 {
        self.delta_bytes as f64 / self.deltas as f64
    }

    pub(crate) fn cpu_us_per_event(&self) -> f64 {
        self.cpu.total().as_secs_f64() * 1e6 / self.events as f64
    }

    pub(crate) fn rate(&self) -> f64 {
        self.events as f64 / self.seconds
    }

    fn row(&self, name: &str, followers: u64) -> [String; 8] {
        [
            name.to_owned(),
            grouped(self.events as f64),
            format!("{:.2}", self.seconds),
            grouped(self.rate()),
            grouped(self.rate() * followers as f64),
            grouped(self.bytes as f64 / self.seconds / 1e6),
            grouped(self.events as f64 / self.commits),
            format!("{:.0} %", self.cpu.total().as_secs_f64() / self.seconds * 100.0),
        ]
    }
}

/// Starts the output when every follower is connected, and waits until each has everything. `least` is the smallest
/// number of events that the agent prints.
pub(crate) async fn flood(
    server: &Server,
    script: Value,
    followers: u64,
    least: u64,
) -> Result<Flood, Failure> {
    let commits_before = server.place.metric(COMMITS).await?;
    let flood = flood_for(server, script, Audience::of(followers)).await?;
    let commits = server.place.metric(COMMITS).await? - commits_before;
    if !(least..=least + NOTICES_MAX).contains(&flood.events) {
        return Err(format!("there are {} events where {least} were said", flood.events).into());
    }
    Ok(Flood { commits, ..flood })
}

/// As [`flood`], for any server, without its commits.
pub(crate) async fn flood_for(server: &Server, script: Value, audience: Audience) -> Result<Flood, Failure> {
    let cpu_before = CpuTime::of(server.pid())?;
    let Followed { opened_us, head, seen } = follow_as(server, &server.place, script, audience, 0).await?;
    let cpu = CpuTime::of(server.pid())?.since(&cpu_before);
    let last_us = seen.iter().map(|seen| seen.newest_us).max().unwrap_or(opened_us);
    let bytes = seen.iter().map(|seen| seen.bytes).sum();
    let seconds = (last_us - opened_us) as f64 / 1e6;
    let thorough = seen.iter().find(|seen| seen.thorough);
    let (deltas, delta_bytes) = thorough.map_or((0, 0), |seen| (seen.deltas, seen.delta_bytes));
    Ok(Flood { events: head, seconds, bytes, commits: 0.0, cpu, deltas, delta_bytes })
}

/// The followers of an agent, and how they follow it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Audience {
    pub(crate) followers: u64,
    pub(crate) way: Way,
    pub(crate) form: Form,
    /// Whether the first of them parses every frame.
    pub(crate) thorough: bool,
}

impl Audience {
    fn of(followers: u64) -> Self {
        Self { followers, way: Way::WebSocket, form: Form::Single, thorough: false }
    }
}

/// What the followers of one agent have read.
pub(crate) struct Followed {
    /// When the output started.
    opened_us: u64,
    /// How many events the agent's journal has.
    head: u64,
    pub(crate) seen: Vec<Seen>,
}

/// Launches an agent, starts its output when every follower is connected, and reads to the end of its turn. With room
/// for `delays` for each follower, the delay of each delta is recorded too. The followers are at the server itself, or
/// at another one of the same database.
pub(crate) async fn follow_at(
    server: &Server,
    at: &Place,
    script: Value,
    followers: u64,
    delays: usize,
) -> Result<Followed, Failure> {
    follow_as(server, at, script, Audience::of(followers), delays).await
}

async fn follow_as(
    server: &Server,
    at: &Place,
    mut script: Value,
    audience: Audience,
    delays: usize,
) -> Result<Followed, Failure> {
    let gate = server.file(&format!("gate-{}", now_us()));
    script["gate"] = json!(gate);
    let id = server.launch(&script).await?;
    if server.saves_what_comes_before_deltas() {
        // The prompt, and the first line of the agent. An agent that prints in large pieces has not printed anything
        // yet.
        let waits_to_print = script["mode"] == "flood";
        server.wait_for_head(&id, if waits_to_print { 1 } else { 2 }).await?;
    }
    let mut tasks = JoinSet::new();
    for index in 0..audience.followers {
        let thorough = audience.thorough && index == 0;
        match audience.way {
            Way::WebSocket => {
                let mut socket = WebSocket::open(at, &id, 0, audience.form).await?;
                socket.seen.delays_us.reserve_exact(delays);
                socket.seen.thorough = thorough;
                tasks.spawn(socket.read_until(Until::TurnEnd));
            }
            Way::Sse => {
                let mut stream = EventStream::follow(at, &id, audience.form).await?;
                stream.seen().thorough = thorough;
                tasks.spawn(stream.read_until(Until::TurnEnd));
            }
        }
    }
    let opened_us = now_us();
    std::fs::write(&gate, "")?;
    let mut seen = Vec::new();
    while let Some(done) = tasks.join_next().await {
        seen.push(done??);
    }
    let head = server.wait_for_end(&id).await?;
    match seen.iter().find(|seen| seen.last != head) {
        Some(wrong) => Err(format!("a follower has {} events of {head}", wrong.last).into()),
        None => Ok(Followed { opened_us, head, seen }),
    }
}

/// How fast the agent prints if nobody reads.
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
