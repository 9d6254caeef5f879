//! Many agents that print slowly, each with its own followers: the delay of a token at the follower, and its cost for
//! the server. The agents are processes that print what one load generator sends them, so the generator sets their
//! pace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::cores::Cores;
use crate::http::Place;
use crate::latency::Delays;
use crate::machine::{now_us, processor_seconds, threads};
use crate::pacer::{Pace, Phase, claude_line, print_all};
use crate::peers::Who;
use crate::report::{Report, Table, grouped, progress};
use crate::seen::Seen;
use crate::server::{Durability, Server, Setup};
use crate::websocket::{Until, WebSocket};
use crate::{Failure, Plan, nats};

pub(crate) const AGENTS: [u64; 4] = [10, 100, 300, 1000];
const RATES: [u64; 2] = [10, 20];
/// How long agents print before the measurement, and during it.
const WARM_MS: u64 = 1000;
const MEASURED_MS: u64 = 5000;
/// A token that has not arrived this long after the last one counts as lost.
const GRACE: Duration = Duration::from_secs(10);
/// How long to wait until all agents have connected.
const LAUNCH_PATIENCE: Duration = Duration::from_mins(3);
/// Launches at the same time.
const LAUNCHES_AT_ONCE: usize = 8;
/// The interval between two reads of an agent during the launches.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// Limits for all agents and connections. The agents run at the priority of the server, as those of the peers do.
const LIMITS: &str = "[limits]\nagent_nice = 0\nlaunches_per_minute = 100000\nrunning_agents = 4000\n\
    queued_launches = 4000\nconnections = 20000\n";

/// One measurement of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) agents: u64,
    pub(crate) per_second: u64,
    /// For each agent.
    pub(crate) followers: u64,
    pub(crate) phase: Phase,
    warm_ms: u64,
    measured_ms: u64,
}

impl Load {
    fn name(&self) -> String {
        let Self { agents, per_second, followers, phase, .. } = self;
        let spread = if *phase == Phase::Spread { ", spread" } else { "" };
        match followers {
            1 => format!("{agents} x {per_second}{spread}"),
            _ => format!("{agents} x {per_second}, {followers} followers"),
        }
    }

    pub(crate) fn pace(&self) -> Pace {
        let tokens = self.tokens_in(self.warm_ms + self.measured_ms);
        Pace { agents: self.agents as usize, per_second: self.per_second, phase: self.phase, tokens }
    }

    /// The tokens of one agent.
    fn tokens_in(&self, ms: u64) -> u64 {
        (self.per_second * ms / 1000).max(1)
    }

    /// The time by which everything should have arrived, counted from now.
    pub(crate) fn late(&self) -> tokio::time::Instant {
        tokio::time::Instant::now() + Duration::from_millis(self.warm_ms + self.measured_ms) + GRACE
    }
}

/// The result of a measurement.
pub(crate) struct Outcome {
    launched: Option<Launched>,
    sent: u64,
    arrived: u64,
    delays: Option<Delays>,
    cpu_us: f64,
    threads: usize,
    load: String,
}

/// The launch of all agents.
struct Launched {
    seconds: f64,
    /// How long reads of an agent took meanwhile.
    answers: Option<Delays>,
}

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> Result<(), Failure> {
    let cores = Cores::divide()?;
    let columns = [
        "agents x tokens/s, each with a follower      ",
        "launch s",
        "GET p99 ms",
        "sent",
        "arrived",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "CPU us",
        "threads",
        "load",
    ];
    let table = Table::begin("agents: from the agent's print to the follower's receipt", &columns);
    println!("({}; normal, data in memory)", Cores::describe(cores.as_ref()));
    Who::tell_missing(plan.peers);
    let mut ratios = Vec::new();
    for loads in groups(plan) {
        let mut ours = Vec::new();
        for who in Who::all(plan.peers) {
            for (load, outcome) in loads.iter().zip(all_of(who, &loads, cores.as_ref()).await) {
                let name = format!("{}: {}", load.name(), who.as_str());
                let outcome = match outcome {
                    Ok(outcome) => outcome,
                    Err(failure) => {
                        println!("{name}: {failure}");
                        report.fail(format!("{name}: {failure}"));
                        break;
                    }
                };
                table.row(&outcome.row(&name));
                outcome.keep(load, who, report);
                match ours.iter().find(|(name, _)| *name == load.name()) {
                    Some((_, ours)) => ratios.push(ratio(ours, &outcome, load, who)),
                    None if who == Who::Tokenrail => ours.push((load.name(), outcome)),
                    None => {}
                }
            }
        }
    }
    if !ratios.is_empty() {
        let table = Table::begin(
            "agents: Tokenrail / peer, where less than 1 is less for Tokenrail",
            &["agents x tokens/s, each with a follower      ", "p50", "p99", "p99.9", "CPU"],
        );
        for row in &ratios {
            table.row(row);
        }
    }
    Ok(())
}

/// The loads that are run with the same agents, one after the other.
fn groups(plan: &Plan) -> Vec<Vec<Load>> {
    let scale = plan.scale;
    let (warm_ms, measured_ms) = (scale.of(WARM_MS), scale.of(MEASURED_MS));
    let load = |agents, per_second, followers, phase| Load {
        agents,
        per_second,
        followers,
        phase,
        warm_ms,
        measured_ms,
    };
    let counts: Vec<u64> = match &plan.agents {
        Some(counts) => counts.clone(),
        None => AGENTS.map(|agents| scale.of(agents)).to_vec(),
    };
    let group = |agents| {
        let mut group = RATES.map(|rate| load(agents, rate, 1, Phase::Together)).to_vec();
        group.push(load(agents, RATES[0], 1, Phase::Spread));
        group
    };
    // The pace of a fast model, with many followers. It is first because its delay is short, and what the kernel does
    // after the end of a thousand processes would add to it.
    let fast = vec![load(1, 500, scale.of(100), Phase::Together)];
    std::iter::once(fast).chain(counts.into_iter().map(group)).collect()
}

/// Runs the loads until one fails or some of its tokens are missing.
async fn all_of(who: Who, loads: &[Load], cores: Option<&Cores>) -> Vec<Result<Outcome, Failure>> {
    let mut outcomes = Vec::new();
    let mut crowd = None;
    for load in loads {
        progress(&format!("{}: {}", load.name(), who.as_str()));
        let outcome = match (who, &mut crowd) {
            (Who::Nats, _) => nats::measure(load, cores).await,
            (_, Some(crowd)) => Crowd::follow(crowd, load).await,
            (_, None) => match Crowd::launch(who, load, cores).await {
                Ok(launched) => Crowd::follow(crowd.insert(launched), load).await,
                Err(failure) => Err(failure),
            },
        };
        let (failed, late) = (outcome.is_err(), outcome.as_ref().is_ok_and(|it| it.arrived < it.sent));
        outcomes.push(outcome);
        if late && outcomes.len() < loads.len() {
            // Late tokens would be counted for the next load.
            outcomes.push(Err("not measured: not all had arrived of what was printed before".into()));
        }
        if failed || late {
            break;
        }
    }
    outcomes
}

/// Running agents, and what their followers have read so far.
struct Crowd {
    // This field is dropped first, so that the agents end by themselves before the server does.
    streams: Vec<TcpStream>,
    ids: Vec<String>,
    cursors: Vec<u64>,
    launched: Option<Launched>,
    server: Server,
}

impl Crowd {
    async fn launch(who: Who, load: &Load, cores: Option<&Cores>) -> Result<Self, Failure> {
        let setup =
            Setup { durability: Durability::Normal, more: LIMITS, in_memory: true, cores, program: None };
        let server = who.start(&setup)?;
        let (ids, streams, launched) = launch(&server, load.agents as usize).await?;
        let cursors = vec![0; (load.agents * load.followers) as usize];
        Ok(Self { streams, ids, cursors, launched: Some(launched), server })
    }

    async fn follow(&mut self, load: &Load) -> Result<Outcome, Failure> {
        let tokens = load.pace().tokens;
        let mut followers = Vec::new();
        for (index, cursor) in self.cursors.iter().enumerate() {
            let id = &self.ids[index / load.followers as usize];
            let mut socket = WebSocket::follow(&self.server.place, id, *cursor).await?;
            socket.seen.delays_us.reserve_exact(tokens as usize);
            followers.push(socket);
        }
        let (late, mut reading) = (load.late(), JoinSet::new());
        for (index, socket) in followers.into_iter().enumerate() {
            reading.spawn(
                async move { Ok((index, socket.read_until_late(Until::Deltas(tokens), late).await?)) },
            );
        }
        let streams = std::mem::take(&mut self.streams);
        let cursors = &mut self.cursors;
        let (outcome, streams) =
            run(load, self.server.pid(), streams, claude_line, reading, |index, last| cursors[index] = last)
                .await?;
        self.streams = streams;
        Ok(Outcome { launched: self.launched.take(), ..outcome })
    }
}

/// Makes all agents print, and waits until everything has arrived or time is up. `read_to` gets the cursor of each
/// follower.
pub(crate) async fn run(
    load: &Load,
    pid: u32,
    streams: Vec<TcpStream>,
    write: crate::pacer::Write,
    mut reading: JoinSet<Result<(usize, Seen), Failure>>,
    mut read_to: impl FnMut(usize, u64),
) -> Result<(Outcome, Vec<TcpStream>), Failure> {
    let pace = load.pace();
    let before = processor_seconds(pid)?;
    let streams = print_all(streams, pace, now_us(), write).await?;
    let (warm, mut arrived, mut delays_us) = (load.tokens_in(load.warm_ms) as usize, 0, Vec::new());
    while let Some(seen) = reading.join_next().await {
        let (index, seen) = seen??;
        read_to(index, seen.last);
        arrived += seen.deltas;
        delays_us.extend(seen.delays_us.into_iter().skip(warm));
    }
    // The cost of an event includes the delivery to all of its followers.
    let events = arrived as f64 / load.followers as f64;
    let cpu_us = (processor_seconds(pid)? - before) * 1e6 / events.max(1.0);
    let (threads, busy) = (threads(pid)?, crate::machine::load()?);
    let sent = pace.tokens * load.agents * load.followers;
    if sent < arrived {
        return Err(format!("doubled: {arrived} arrived of {sent}").into());
    }
    let delays = Delays::of(delays_us);
    Ok((Outcome { launched: None, sent, arrived, delays, cpu_us, threads, load: busy }, streams))
}

/// Launches `count` agents and waits until each one is connected. Returns their ids, and their sockets in the same
/// order.
async fn launch(server: &Server, count: usize) -> Result<(Vec<String>, Vec<TcpStream>, Launched), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let begun = Instant::now();
    let enough = Arc::new(AtomicBool::new(false));
    let mut asking = JoinSet::new();
    let (mut ids, mut launching, mut next) = (vec![String::new(); count], JoinSet::new(), 0);
    let (mut streams, mut connected): (Vec<Option<TcpStream>>, usize) =
        ((0..count).map(|_| None).collect(), 0);
    let late = tokio::time::Instant::now() + LAUNCH_PATIENCE;
    let mut told = Instant::now();
    while connected < count || !launching.is_empty() {
        while next < count && launching.len() < LAUNCHES_AT_ONCE {
            let script = json!({ "mode": "relay", "relay": address, "name": next.to_string() });
            launching.spawn(launch_one(server.place.clone(), next, script.to_string()));
            next += 1;
        }
        tokio::select! {
            Some(launched) = launching.join_next() => {
                let (index, id) = launched??;
                if asking.is_empty() {
                    asking.spawn(ask(server.place.clone(), id.clone(), Arc::clone(&enough)));
                }
                ids[index] = id;
            }
            accepted = listener.accept() => {
                let (index, stream) = named(accepted?.0).await?;
                *streams.get_mut(index).ok_or("an agent that nobody has launched")? = Some(stream);
                connected += 1;
            }
            () = tokio::time::sleep_until(late) => {
                return Err(format!("{connected} of {count} agents began within {} s", LAUNCH_PATIENCE.as_secs()).into());
            }
        }
        if Duration::from_secs(5) < told.elapsed() {
            told = Instant::now();
            progress(&format!("{connected} of {count} agents have begun"));
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    enough.store(true, Ordering::Relaxed);
    let mut answers = Vec::new();
    while let Some(asked) = asking.join_next().await {
        answers.extend(asked??);
    }
    let streams = streams.into_iter().flatten().collect();
    Ok((ids, streams, Launched { seconds, answers: Delays::of(answers) }))
}

async fn launch_one(place: Place, index: usize, script: String) -> Result<(usize, String), Failure> {
    let agent = place.post("/api/agents", &json!({ "type": "fake", "prompt": script })).await?;
    Ok((index, agent["agentId"].as_str().ok_or("an agent without an id")?.to_owned()))
}

/// Reads the line in which an agent names its index.
async fn named(stream: TcpStream) -> Result<(usize, TcpStream), Failure> {
    stream.set_nodelay(true)?;
    let (mut reader, mut line) = (BufReader::new(stream), String::new());
    reader.read_line(&mut line).await?;
    Ok((line.trim().parse()?, reader.into_inner()))
}

/// Reads an agent again and again. Returns how long the answers took, in microseconds.
async fn ask(place: Place, id: String, enough: Arc<AtomicBool>) -> Result<Vec<u32>, Failure> {
    let (path, mut answers) = (format!("/api/agents/{id}"), Vec::new());
    while !enough.load(Ordering::Relaxed) {
        let asked_us = now_us();
        place.get(&path).await?;
        answers.push((now_us() - asked_us) as u32);
        tokio::time::sleep(ASK_EVERY).await;
    }
    Ok(answers)
}

impl Outcome {
    fn at(&self, share: f64) -> f64 {
        self.delays.as_ref().map_or(f64::NAN, |delays| delays.at(share))
    }

    fn row(&self, name: &str) -> Vec<String> {
        let ms = |share| match &self.delays {
            Some(delays) => format!("{:.2}", delays.at(share) / 1000.0),
            None => "-".to_owned(),
        };
        let launch = self.launched.as_ref();
        let answer = launch.and_then(|launched| launched.answers.as_ref());
        vec![
            name.to_owned(),
            launch.map_or("-".to_owned(), |launched| format!("{:.1}", launched.seconds)),
            answer.map_or("-".to_owned(), |answers| format!("{:.1}", answers.at(0.99) / 1000.0)),
            grouped(self.sent as f64),
            grouped(self.arrived as f64),
            ms(0.5),
            ms(0.99),
            ms(0.999),
            format!("{:.0}", self.cpu_us),
            self.threads.to_string(),
            self.load.clone(),
        ]
    }

    fn keep(&self, load: &Load, who: Who, report: &mut Report) {
        let name = format!("agents {}, {}", load.name(), who.as_str());
        report.keep(format!("{name}: p99"), self.at(0.99));
        report.keep(format!("{name}: cpu"), self.cpu_us);
        report.keep(format!("{name}: threads"), self.threads as f64);
        report.keep(format!("{name}: arrived"), self.arrived as f64 / self.sent as f64);
        if let Some(launched) = &self.launched {
            let name = format!("launch of {}, {}", load.agents, who.as_str());
            report.keep(name.clone(), launched.seconds);
            if let Some(answers) = &launched.answers {
                report.keep(format!("{name}: get"), answers.at(0.99));
            }
        }
        if self.arrived < self.sent && who == Who::Tokenrail {
            let Self { sent, arrived, .. } = self;
            report.fail(format!(
                "{name}: {arrived} of {sent} tokens had arrived {} s after the last",
                GRACE.as_secs()
            ));
        }
    }
}

/// If not all tokens of a peer arrived, its figures cover those that did.
fn ratio(ours: &Outcome, other: &Outcome, load: &Load, who: Who) -> Vec<String> {
    let text = |ours: f64, other: f64| {
        let ratio = ours / other;
        if ratio.is_finite() { format!("{ratio:.2}") } else { "-".to_owned() }
    };
    let mut row = vec![format!("{}: {}", load.name(), who.as_str())];
    row.extend([0.5, 0.99, 0.999].map(|share| text(ours.at(share), other.at(share))));
    row.push(text(ours.cpu_us, other.cpu_us));
    row
}
