//! An earlier version of the server and this one, alternately: `--before REVISION`.
//!
//! Both keep their data in memory, so that the disk, which varies most, does not decide. In each round, both run, and
//! one measures right after the other, row by row; every second round begins with the other one. What counts is the
//! ratio within a round: whatever slows the machine down for longer than two measurements slows both.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

use crate::history;
use crate::latency::{Delays, delays_at};
use crate::rate::flood;
use crate::report::{Report, Table, grouped, progress};
use crate::server::{Durability, Server, Setup, program};
use crate::websocket::{Until, Way, WebSocket};
use crate::{Failure, Scale};

/// The number of rounds, unless the command line has another one.
pub(crate) const ROUNDS: usize = 7;

/// The share by which this version may be slower.
const SLOWER_MAX: f64 = 0.03;

/// The number of followers, how many deltas the agent prints, and how often.
const FLOODS: [(u64, u64, usize); 3] = [(1, 400_000, 4), (100, 50_000, 2), (1000, 10_000, 2)];

/// The numbers of followers at 500 events/s.
const PACED: [u64; 2] = [1, 100];

/// Five seconds of deltas.
const PACED_DELTAS: u64 = 2500;

/// How many deltas a client reads that connects late.
const CATCH_UP: u64 = 100_000;

/// How often it is measured.
const CATCH_UPS: usize = 6;

/// How often agents are launched, how many of them one after the other, and how many lists are read then.
const LAUNCH_PASSES: usize = 10;
const LAUNCHES: usize = 10;
const LISTS: usize = 300;

/// The variable with the path of the earlier server program.
const PROGRAM: &str = "TOKENRAIL_BENCH_BEFORE";

/// What to compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// The earlier version.
    pub(crate) revision: String,
    pub(crate) rounds: usize,
    pub(crate) rows: Vec<Rows>,
}

/// Rows that are measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// At 500 events/s.
    Delays,
    Floods,
    CatchUp,
    /// Launches and lists.
    Requests,
}

impl Rows {
    pub(crate) const ALL: [Self; 4] = [Self::Delays, Self::Floods, Self::CatchUp, Self::Requests];

    /// The rows with these names, separated by commas.
    pub(crate) fn named(names: &str) -> Result<Vec<Self>, Failure> {
        let all = Self::ALL.map(Self::name);
        let rows = names.split(',').map(|name| Self::ALL.into_iter().find(|rows| rows.name() == name));
        rows.collect::<Option<_>>().ok_or_else(|| format!("--rows {names}: some of {}", all.join(",")).into())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Delays => "delays",
            Self::Floods => "floods",
            Self::CatchUp => "catch-up",
            Self::Requests => "requests",
        }
    }
}

pub(crate) async fn measure(
    comparison: &Comparison,
    scale: Scale,
    report: &mut Report,
) -> Result<(), Failure> {
    let Comparison { revision, rounds, rows } = comparison;
    let before =
        std::env::var_os(PROGRAM).map(PathBuf::from).ok_or_else(|| format!("{PROGRAM} is not set"))?;
    let mut series: Vec<Series> = Vec::new();
    for round in 0..*rounds {
        progress(&format!("round {} of {rounds}", round + 1));
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        let copies = [tempfile::tempdir()?, tempfile::tempdir()?];
        let programs = [copied(&before, copies[0].path())?, copied(&program()?, copies[1].path())?];
        let mut pair = Pair::start(&programs, order, scale).await?;
        for rows in rows {
            pair.measure(*rows).await?;
        }
        let [before, now] = pair.figures;
        series.resize_with(now.len(), Series::default);
        for (series, (before, now)) in series.iter_mut().zip(before.iter().zip(&now)) {
            series.add(before, now);
        }
    }
    let columns = ["data in memory, `normal`", "before", "now", "slower by", "from", "to", "verdict"];
    let table = Table::begin(&format!("compare: {revision} and this version, {rounds} rounds"), &columns);
    println!("(medians; from and to are the quartiles of the rounds; a negative number: faster)");
    for series in &series {
        table.row(&series.row());
        if series.verdict() == Verdict::Slower {
            report.fail(format!("{} is slower by more than {:.0} %", series.name, SLOWER_MAX * 100.0));
        }
    }
    Ok(())
}

/// A copy of a server with its supervisor. A copied program seems to run a few percent faster than one that a linker
/// wrote, probably because the operating system keeps it in larger pieces. So both versions are copies. They are new
/// in each round: where a copy happens to be in memory may make its version faster, but not in all rounds.
fn copied(program: &Path, folder: &Path) -> Result<PathBuf, Failure> {
    let name = program.file_name().ok_or("the server is not a file")?;
    let supervisor = program.with_file_name("tokenrail-supervisor");
    if supervisor.exists() {
        std::fs::copy(&supervisor, folder.join("tokenrail-supervisor"))?;
    }
    std::fs::copy(program, folder.join(name))?;
    Ok(folder.join(name))
}

/// One measured figure.
struct Figure {
    name: String,
    value: f64,
    is_better_if_high: bool,
}

/// Both versions, which run at the same time and are measured in turns.
struct Pair {
    servers: [Server; 2],
    /// How many events an agent of each version has besides its deltas.
    others: [u64; 2],
    order: [usize; 2],
    scale: Scale,
    figures: [Vec<Figure>; 2],
}

impl Pair {
    async fn start(programs: &[PathBuf; 2], order: [usize; 2], scale: Scale) -> Result<Self, Failure> {
        let servers = [set_up(&programs[0])?, set_up(&programs[1])?];
        let others = [servers[0].other_events().await?, servers[1].other_events().await?];
        Ok(Self { servers, others, order, scale, figures: [Vec::new(), Vec::new()] })
    }

    async fn measure(&mut self, rows: Rows) -> Result<(), Failure> {
        match rows {
            Rows::Delays => self.delays().await,
            Rows::Floods => self.floods().await,
            Rows::CatchUp => self.catch_up().await,
            Rows::Requests => self.requests().await,
        }
    }

    /// The delays of an agent at the pace of a fast model.
    async fn delays(&mut self) -> Result<(), Failure> {
        for followers in PACED {
            let mut delays = [Vec::new(), Vec::new()];
            for version in passes(self.order, 2) {
                self.rest().await?;
                let (server, deltas) = (&self.servers[version], self.scale.of(PACED_DELTAS));
                delays[version].push(delays_at(server, &server.place, deltas, followers).await?);
            }
            for (figures, delays) in self.figures.iter_mut().zip(delays) {
                let delays = Delays::of_all(delays).ok_or("nothing was said")?;
                for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
                    figures.push(low(format!("500/s, {followers}: {name} ms"), delays.at(share) / 1000.0));
                }
            }
        }
        Ok(())
    }

    async fn floods(&mut self) -> Result<(), Failure> {
        for (followers, deltas, times) in FLOODS {
            let deltas = self.scale.of(deltas);
            let [mut rates, mut costs] = [(); 2].map(|()| [Vec::new(), Vec::new()]);
            for version in passes(self.order, times) {
                self.rest().await?;
                let script = json!({ "deltas": deltas });
                let events = self.others[version] + deltas;
                let flood = flood(&self.servers[version], script, followers, events).await?;
                rates[version].push(flood.rate());
                costs[version].push(flood.cpu_us_per_event());
            }
            for (figures, (rates, costs)) in self.figures.iter_mut().zip(rates.iter().zip(&costs)) {
                figures.push(high(format!("flood, {followers}: events/s"), median(rates)));
                figures.push(low(format!("flood, {followers}: CPU us/event"), median(costs)));
            }
        }
        Ok(())
    }

    async fn catch_up(&mut self) -> Result<(), Failure> {
        let mut agents = Vec::new();
        for server in &self.servers {
            let id = server.launch(&json!({ "deltas": self.scale.of(CATCH_UP) })).await?;
            let head = server.wait_for_end(&id).await?;
            agents.push((id, head));
        }
        self.rest().await?;
        let mut rates = [Vec::new(), Vec::new()];
        for version in passes(self.order, CATCH_UPS) {
            let (id, head) = &agents[version];
            rates[version].push(history::read(&self.servers[version], id, *head, Way::WebSocket).await?.rate);
        }
        for (figures, rates) in self.figures.iter_mut().zip(&rates) {
            figures.push(high("catch-up: events/s".to_owned(), median(rates)));
        }
        Ok(())
    }

    /// How long it takes until an agent is launched, until a client has read all of its events, and until the newest
    /// agents are listed: the medians.
    async fn requests(&mut self) -> Result<(), Failure> {
        let [mut launches, mut turns, mut lists] = [(); 3].map(|()| [Vec::new(), Vec::new()]);
        let ms_since = |started: Instant| started.elapsed().as_secs_f64() * 1000.0;
        for version in passes(self.order, LAUNCH_PASSES) {
            // What a version does after its turns must not be measured as the other one's.
            self.rest().await?;
            let server = &self.servers[version];
            for _ in 0..LAUNCHES {
                let started = Instant::now();
                let id = server.launch(&json!({ "deltas": 1 })).await?;
                launches[version].push(ms_since(started));
                let follower = WebSocket::follow(&server.place, &id, 0).await?;
                follower.read_until(Until::Event(self.others[version] + 1)).await?;
                turns[version].push(ms_since(started));
            }
        }
        for version in passes(self.order, LISTS) {
            let started = Instant::now();
            self.servers[version].place.read("/api/agents?limit=50").await?;
            lists[version].push(ms_since(started));
        }
        let of_both = launches.iter().zip(&turns).zip(&lists);
        for (figures, ((launches, turns), lists)) in self.figures.iter_mut().zip(of_both) {
            figures.push(low("launch: ms".to_owned(), median(launches)));
            figures.push(low("launch until all is read: ms".to_owned(), median(turns)));
            figures.push(low("list of 50 agents: ms".to_owned(), median(lists)));
        }
        Ok(())
    }

    /// Waits until neither server has background work.
    async fn rest(&self) -> Result<(), Failure> {
        for server in &self.servers {
            server.rest().await?;
        }
        Ok(())
    }
}

/// The versions in this order, then in the reverse one, and so on, so that neither always comes later.
fn passes(order: [usize; 2], times: usize) -> impl Iterator<Item = usize> {
    (0..times).flat_map(move |pass| if pass % 2 == 0 { order } else { [order[1], order[0]] })
}

fn set_up(program: &Path) -> Result<Server, Failure> {
    let durability = Durability::Normal;
    Server::set_up(&Setup { durability, more: "", in_memory: true, cores: None, program: Some(program) })
}

fn low(name: String, value: f64) -> Figure {
    Figure { name, value, is_better_if_high: false }
}

fn high(name: String, value: f64) -> Figure {
    Figure { name, value, is_better_if_high: true }
}

/// A figure in all rounds.
#[derive(Default)]
struct Series {
    name: String,
    before: Vec<f64>,
    now: Vec<f64>,
    /// The share by which this version was slower, for each round.
    slower: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    NotSlower,
    /// Most rounds say so, but not three of four.
    Unclear,
    Slower,
}

impl Series {
    fn add(&mut self, before: &Figure, now: &Figure) {
        let ratio = if now.is_better_if_high { before.value / now.value } else { now.value / before.value };
        self.name.clone_from(&now.name);
        self.before.push(before.value);
        self.now.push(now.value);
        self.slower.push(ratio - 1.0);
    }

    fn verdict(&self) -> Verdict {
        if SLOWER_MAX < quantile(&self.slower, 0.25) {
            Verdict::Slower
        } else if SLOWER_MAX < median(&self.slower) {
            Verdict::Unclear
        } else {
            Verdict::NotSlower
        }
    }

    fn row(&self) -> [String; 7] {
        let number = |value: f64| if value < 1000.0 { format!("{value:.2}") } else { grouped(value) };
        let percent = |ratio| format!("{:+.1} %", ratio * 100.0);
        let verdict = match self.verdict() {
            Verdict::NotSlower => "ok",
            Verdict::Unclear => "unclear",
            Verdict::Slower => "slower",
        };
        [
            self.name.clone(),
            number(median(&self.before)),
            number(median(&self.now)),
            percent(median(&self.slower)),
            percent(quantile(&self.slower, 0.25)),
            percent(quantile(&self.slower, 0.75)),
            verdict.to_owned(),
        ]
    }
}

/// The mean of the two values in the middle, if their number is even. 0 if there are none.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    f64::midpoint(at(sorted.len().saturating_sub(1) / 2), at(sorted.len() / 2))
}

/// The value below which this share of the values is. 0 if there are none.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len().saturating_sub(1) as f64 * share).round() as usize).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(pairs: &[(f64, f64)], is_better_if_high: bool) -> Series {
        let mut series = Series::default();
        for (before, now) in pairs {
            let figure = |value| Figure { name: "x".to_owned(), value, is_better_if_high };
            series.add(&figure(*before), &figure(*now));
        }
        series
    }

    #[test]
    fn a_version_is_slower_if_three_of_four_rounds_say_so() {
        let rounds = [(100.0, 96.0), (50.0, 48.0), (100.0, 120.0), (100.0, 95.0), (10.0, 9.0)];
        assert_eq!(series(&rounds, true).verdict(), Verdict::Slower);
        assert_eq!(series(&rounds[..3], true).verdict(), Verdict::Slower);
        assert_eq!(series(&rounds, false).verdict(), Verdict::NotSlower, "it took less time");
        let scattered = [(100.0, 80.0), (100.0, 96.0), (100.0, 96.0), (100.0, 110.0), (100.0, 110.0)];
        assert_eq!(series(&scattered, true).verdict(), Verdict::Unclear);
        assert_eq!(series(&[(100.0, 98.0), (100.0, 99.0)], true).verdict(), Verdict::NotSlower);
        let as_often_faster = [(100.0, 110.0), (100.0, 90.0), (100.0, 110.0), (100.0, 90.0)];
        assert_eq!(series(&as_often_faster, true).verdict(), Verdict::NotSlower);
    }
}
