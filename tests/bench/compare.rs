//! An earlier version of the server and this one, alternately: `--before REVISION`.
//!
//! Both keep their data in memory, so that the disk, which varies most, does not decide. In each round, both do the
//! same, and every second round begins with the other one. What counts is the ratio within a round: whatever slows the
//! machine down for longer than that slows both.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

use crate::history;
use crate::latency::delays_of;
use crate::rate::flood;
use crate::report::{Report, Table, grouped, progress};
use crate::server::{Durability, Server, Setup, program};
use crate::websocket::{Until, Way, WebSocket};
use crate::{Failure, Scale};

/// The number of rounds, unless the command line has another one.
pub(crate) const ROUNDS: usize = 7;

/// The share by which this version may be slower.
const SLOWER_MAX: f64 = 0.03;

/// The number of followers, and how many deltas the agent prints.
const FLOODS: [(u64, u64); 3] = [(1, 400_000), (100, 50_000), (1000, 10_000)];

/// The numbers of followers at 500 events/s.
const PACED: [u64; 2] = [1, 100];

/// How many deltas a client reads that connects late.
const CATCH_UP: u64 = 100_000;

/// How many agents are launched, one after the other, and how many lists are read then.
const LAUNCHES: usize = 100;
const LISTS: usize = 300;

/// The variable with the path of the earlier server program.
const PROGRAM: &str = "TOKENRAIL_BENCH_BEFORE";

pub(crate) async fn measure(
    revision: &str,
    rounds: usize,
    scale: Scale,
    report: &mut Report,
) -> Result<(), Failure> {
    let before =
        std::env::var_os(PROGRAM).map(PathBuf::from).ok_or_else(|| format!("{PROGRAM} is not set"))?;
    let programs = [before, program()?];
    let mut series: Vec<Series> = Vec::new();
    for round in 0..rounds {
        let mut both = [Vec::new(), Vec::new()];
        for version in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            let name = ["before", "now"][version];
            progress(&format!("round {} of {rounds}, {name}", round + 1));
            both[version] = figures_of(&programs[version], scale).await?;
        }
        let [before, now] = both;
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

/// One measured figure.
struct Figure {
    name: String,
    value: f64,
    is_better_if_high: bool,
}

async fn figures_of(program: &Path, scale: Scale) -> Result<Vec<Figure>, Failure> {
    let setup = Setup {
        durability: Durability::Normal,
        more: "",
        in_memory: true,
        cores: None,
        program: Some(program),
    };
    let server = Server::set_up(&setup)?;
    let others = server.other_events().await?;
    let mut figures = Vec::new();
    for followers in PACED {
        let delays = delays_of(&server, scale, followers).await?;
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            figures.push(low(format!("500/s, {followers}: {name} ms"), delays.at(share) / 1000.0));
        }
    }
    for (followers, deltas) in FLOODS {
        let deltas = scale.of(deltas);
        server.rest().await?;
        let flood = flood(&server, json!({ "deltas": deltas }), followers, others + deltas).await?;
        figures.push(high(format!("flood, {followers}: events/s"), flood.rate()));
        figures.push(low(format!("flood, {followers}: CPU us/event"), flood.cpu_us_per_event()));
    }
    let id = server.launch(&json!({ "deltas": scale.of(CATCH_UP) })).await?;
    let head = server.wait_for_end(&id).await?;
    server.rest().await?;
    let reading = history::read(&server, &id, head, Way::WebSocket).await?;
    figures.push(high("catch-up: events/s".to_owned(), reading.rate));
    figures.extend(requests_of(&server, others + 1).await?);
    Ok(figures)
}

fn low(name: String, value: f64) -> Figure {
    Figure { name, value, is_better_if_high: false }
}

fn high(name: String, value: f64) -> Figure {
    Figure { name, value, is_better_if_high: true }
}

/// How long it takes until an agent is launched, until a client has read all of its events (`head`), and until the
/// newest agents are listed: the median.
async fn requests_of(server: &Server, head: u64) -> Result<[Figure; 3], Failure> {
    let [mut launches, mut turns, mut lists] = [(); 3].map(|()| Vec::new());
    let ms_since = |started: Instant| started.elapsed().as_secs_f64() * 1000.0;
    for _ in 0..LAUNCHES {
        let started = Instant::now();
        let id = server.launch(&json!({ "deltas": 1 })).await?;
        launches.push(ms_since(started));
        let follower = WebSocket::follow(&server.place, &id, 0).await?;
        follower.read_until(Until::Event(head)).await?;
        turns.push(ms_since(started));
    }
    for _ in 0..LISTS {
        let started = Instant::now();
        server.place.get("/api/agents?limit=50").await?;
        lists.push(ms_since(started));
    }
    let median = |values: &[f64]| quantile(values, 0.5);
    Ok([
        low("launch: ms".to_owned(), median(&launches)),
        low("launch until all is read: ms".to_owned(), median(&turns)),
        low("list of 50 agents: ms".to_owned(), median(&lists)),
    ])
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
        } else if SLOWER_MAX < quantile(&self.slower, 0.5) {
            Verdict::Unclear
        } else {
            Verdict::NotSlower
        }
    }

    fn row(&self) -> [String; 7] {
        let number = |value: f64| if value < 1000.0 { format!("{value:.2}") } else { grouped(value) };
        let percent = |share| format!("{:+.1} %", quantile(&self.slower, share) * 100.0);
        let verdict = match self.verdict() {
            Verdict::NotSlower => "ok",
            Verdict::Unclear => "unclear",
            Verdict::Slower => "slower",
        };
        [
            self.name.clone(),
            number(quantile(&self.before, 0.5)),
            number(quantile(&self.now, 0.5)),
            percent(0.5),
            percent(0.25),
            percent(0.75),
            verdict.to_owned(),
        ]
    }
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
    }
}
