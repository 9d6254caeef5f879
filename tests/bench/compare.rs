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
        progress(&format!("round {} of {rounds}", round + 1));
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        let [before, now] = figures_of(&programs, order, scale).await?;
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

/// The figures of both versions, measured one right after the other in this order.
async fn figures_of(
    programs: &[PathBuf; 2],
    order: [usize; 2],
    scale: Scale,
) -> Result<[Vec<Figure>; 2], Failure> {
    let servers = [set_up(&programs[0])?, set_up(&programs[1])?];
    let others = [servers[0].other_events().await?, servers[1].other_events().await?];
    let mut both = [Vec::new(), Vec::new()];
    for followers in PACED {
        let mut delays = [Vec::new(), Vec::new()];
        for version in passes(order, 2) {
            rest(&servers).await?;
            let server = &servers[version];
            delays[version].push(delays_at(server, &server.place, scale.of(PACED_DELTAS), followers).await?);
        }
        for (figures, delays) in both.iter_mut().zip(delays) {
            let delays = Delays::of_all(delays).ok_or("nothing was said")?;
            for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
                figures.push(low(format!("500/s, {followers}: {name} ms"), delays.at(share) / 1000.0));
            }
        }
    }
    for (followers, deltas, times) in FLOODS {
        let deltas = scale.of(deltas);
        let [mut rates, mut costs] = [(); 2].map(|()| [Vec::new(), Vec::new()]);
        for version in passes(order, times) {
            rest(&servers).await?;
            let script = json!({ "deltas": deltas });
            let flood = flood(&servers[version], script, followers, others[version] + deltas).await?;
            rates[version].push(flood.rate());
            costs[version].push(flood.cpu_us_per_event());
        }
        for (figures, (rates, costs)) in both.iter_mut().zip(rates.iter().zip(&costs)) {
            figures.push(high(format!("flood, {followers}: events/s"), median(rates)));
            figures.push(low(format!("flood, {followers}: CPU us/event"), median(costs)));
        }
    }
    let mut agents = Vec::new();
    for server in &servers {
        let id = server.launch(&json!({ "deltas": scale.of(CATCH_UP) })).await?;
        let head = server.wait_for_end(&id).await?;
        agents.push((id, head));
    }
    rest(&servers).await?;
    let mut rates = [Vec::new(), Vec::new()];
    for version in passes(order, CATCH_UPS) {
        let (id, head) = &agents[version];
        rates[version].push(history::read(&servers[version], id, *head, Way::WebSocket).await?.rate);
    }
    for (figures, rates) in both.iter_mut().zip(&rates) {
        figures.push(high("catch-up: events/s".to_owned(), median(rates)));
    }
    rest(&servers).await?;
    let requests = requests_of(&servers, order, others.map(|others| others + 1)).await?;
    for (figures, requests) in both.iter_mut().zip(requests) {
        figures.extend(requests);
    }
    Ok(both)
}

/// The versions in this order, then in the reverse one, and so on, so that neither always comes later.
fn passes(order: [usize; 2], times: usize) -> impl Iterator<Item = usize> {
    (0..times).flat_map(move |pass| if pass % 2 == 0 { order } else { [order[1], order[0]] })
}

fn set_up(program: &Path) -> Result<Server, Failure> {
    let durability = Durability::Normal;
    Server::set_up(&Setup { durability, more: "", in_memory: true, cores: None, program: Some(program) })
}

/// Waits until neither server has background work.
async fn rest([before, now]: &[Server; 2]) -> Result<(), Failure> {
    before.rest().await?;
    now.rest().await
}

fn low(name: String, value: f64) -> Figure {
    Figure { name, value, is_better_if_high: false }
}

fn high(name: String, value: f64) -> Figure {
    Figure { name, value, is_better_if_high: true }
}

/// How long it takes until an agent is launched, until a client has read all of its events (up to `heads`), and until
/// the newest agents are listed: the medians. The two versions take turns.
async fn requests_of(
    servers: &[Server; 2],
    order: [usize; 2],
    heads: [u64; 2],
) -> Result<[[Figure; 3]; 2], Failure> {
    let [mut launches, mut turns, mut lists] = [(); 3].map(|()| [Vec::new(), Vec::new()]);
    let ms_since = |started: Instant| started.elapsed().as_secs_f64() * 1000.0;
    for version in passes(order, LAUNCH_PASSES) {
        // What a version does after its turns must not be measured as the other one's.
        rest(servers).await?;
        let server = &servers[version];
        for _ in 0..LAUNCHES {
            let started = Instant::now();
            let id = server.launch(&json!({ "deltas": 1 })).await?;
            launches[version].push(ms_since(started));
            let follower = WebSocket::follow(&server.place, &id, 0).await?;
            follower.read_until(Until::Event(heads[version])).await?;
            turns[version].push(ms_since(started));
        }
    }
    for version in passes(order, LISTS) {
        let started = Instant::now();
        servers[version].place.get("/api/agents?limit=50").await?;
        lists[version].push(ms_since(started));
    }
    Ok([0, 1].map(|version| {
        [
            low("launch: ms".to_owned(), median(&launches[version])),
            low("launch until all is read: ms".to_owned(), median(&turns[version])),
            low("list of 50 agents: ms".to_owned(), median(&lists[version])),
        ]
    }))
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
    }
}
