//! The measurements of Tokenrail: `cargo xtask bench`, or `bench [--quick] [--only NAME] [--peers]`.
//!
//! A real server on a loopback address, the scripted agent, and clients that do as little as possible: they read frames
//! and check that the sequence numbers are consecutive, so a lost or doubled event fails the run.
//!
//! * [`raw`]: the throughput of the store alone
//! * [`rate`]: from the agent's output to all followers, as fast as possible
//! * [`agents`]: many agents that print slowly, and what they cost; optionally compared with other servers
//! * [`packed`]: a flood of short tokens, each in its own frame, and packed
//! * [`latency`]: from the agent's output to all followers, at the pace of a fast model
//! * [`neighbours`]: the same beside an agent that takes all resources it can get
//! * [`history`]: how fast a client that connects late catches up
//! * [`memory`]: the memory of a connection, and what remains after a flood
//! * [`cluster`]: several servers on one PostgreSQL, for `--cluster`
//! * [`compare`]: an earlier version and this one, alternately, for `--before`
//! * [`peers`], [`nats`]: other servers, for `--peers`
//! * [`server`], [`http`], [`websocket`], [`event_stream`], [`seen`], [`pacer`], [`cores`], [`machine`], [`report`]:
//!   the building blocks
#![expect(clippy::print_stdout, reason = "a measurement for the terminal")]
#![expect(clippy::print_stderr, reason = "and it complains there")]

mod agents;
mod cluster;
mod compare;
mod cores;
mod event_stream;
mod history;
mod http;
mod latency;
mod machine;
mod memory;
mod nats;
mod neighbours;
mod pacer;
mod packed;
mod peers;
mod rate;
mod raw;
mod report;
mod seen;
mod server;
mod websocket;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use compare::{Comparison, Rows};
use report::Report;
use tokio::runtime::{Builder, Runtime};

/// What went wrong, as a sentence for the terminal.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// The time limit of one measurement. It only ends a run that hangs.
const PATIENCE: Duration = Duration::from_mins(5);
/// The time limit of measurements that run several servers many times.
const PATIENCE_WITH_PEERS: Duration = Duration::from_mins(40);

const NAMES: [&str; 8] = ["raw", "rate", "agents", "packed", "latency", "neighbours", "history", "memory"];

/// The part that needs PostgreSQL. It runs only if it is asked for.
const CLUSTER: &str = "cluster";

/// The part that compares with an earlier version. It runs only if one is named.
const COMPARE: &str = "compare";

const HELP: &str = include_str!("help.txt");

/// The command line.
#[derive(Debug, Default)]
struct Options {
    help: bool,
    /// A tenth of everything: a check that it works, not how fast.
    quick: bool,
    only: Option<String>,
    peers: bool,
    agents: Option<Vec<u64>>,
    beside: Option<Vec<String>>,
    before: Option<String>,
    rounds: Option<u64>,
    rows: Option<Vec<Rows>>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--help" | "-h" => options.help = true,
                "--quick" => options.quick = true,
                "--peers" => options.peers = true,
                "--cluster" => options.only = Some(CLUSTER.to_owned()),
                "--only" => options.only = Some(arguments.next().ok_or("--only needs a name")?),
                "--agents" => {
                    let counts = arguments.next().ok_or("--agents needs numbers")?;
                    options.agents = Some(numbers(&counts)?);
                }
                "--beside" => {
                    let names = arguments.next().ok_or("--beside needs names")?;
                    options.beside = Some(neighbours::named(&names)?);
                }
                "--before" => {
                    options.before = Some(arguments.next().ok_or("--before needs a revision")?);
                    options.only = Some(COMPARE.to_owned());
                }
                "--rounds" => {
                    let rounds = arguments.next().ok_or("--rounds needs a number")?;
                    options.rounds = rounds.parse().ok().filter(|rounds| 0 < *rounds);
                    options.rounds.ok_or_else(|| format!("--rounds {rounds}: a number above 0"))?;
                }
                "--rows" => {
                    options.rows = Some(Rows::named(&arguments.next().ok_or("--rows needs names")?)?);
                }
                _ => return Err(format!("no such option: {argument}\n\n{HELP}").into()),
            }
        }
        match &options.only {
            Some(name) if ![CLUSTER, COMPARE].contains(&name.as_str()) && !NAMES.contains(&name.as_str()) => {
                Err(format!("--only is one of {}", NAMES.join(", ")).into())
            }
            _ => Ok(options),
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.as_deref().map_or(NAMES.contains(&name), |only| only == name)
    }

    fn plan(&self) -> Plan {
        let scale = Scale { divisor: if self.quick { 10 } else { 1 } };
        Plan {
            scale,
            peers: self.peers,
            agents: self.agents.clone(),
            beside: self.beside.clone(),
            before: self.before.clone().map(|revision| Comparison {
                revision,
                rounds: self.rounds.map_or(compare::ROUNDS, |rounds| rounds as usize),
                rows: self.rows.clone().unwrap_or_else(|| Rows::ALL.to_vec()),
            }),
        }
    }
}

fn numbers(list: &str) -> Result<Vec<u64>, Failure> {
    let numbers = list.split(',').map(|number| number.parse().ok().filter(|number| 0 < *number));
    numbers.collect::<Option<_>>().ok_or_else(|| format!("--agents {list}: numbers, as in 10,100").into())
}

/// How to measure.
pub(crate) struct Plan {
    pub(crate) scale: Scale,
    /// Whether other servers are measured too.
    pub(crate) peers: bool,
    /// How many agents run at once, instead of all published numbers.
    pub(crate) agents: Option<Vec<u64>>,
    /// Which of the harmful agents to run, instead of all.
    pub(crate) beside: Option<Vec<String>>,
    /// The earlier version to compare with, and how.
    pub(crate) before: Option<Comparison>,
}

/// The factor by which all amounts are reduced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    divisor: u64,
}

impl Scale {
    pub(crate) fn of(self, whole: u64) -> u64 {
        whole / self.divisor
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let options = Options::parse(std::env::args().skip(1))?;
    if options.help {
        print!("{HELP}");
        return Ok(());
    }
    machine::allow_many_descriptors()?;
    println!("{}", machine::describe(&server::program()?)?);
    let (plan, mut report) = (options.plan(), Report::default());
    for name in NAMES.into_iter().chain([CLUSTER, COMPARE]).filter(|name| options.wants(name)) {
        runtime(name)?.block_on(async {
            let measuring = measure(name, &plan, &mut report);
            tokio::time::timeout(patience(name), measuring)
                .await
                .map_err(|_| format!("{name} took too long"))?
        })?;
    }
    if ![CLUSTER, COMPARE].iter().any(|part| options.wants(part)) {
        report.print_targets();
    }
    report.verdict()
}

/// If the load generator has its own core, it uses one thread.
fn runtime(name: &str) -> Result<Runtime, Failure> {
    let mut builder = if matches!(name, "agents" | "packed") {
        Builder::new_current_thread()
    } else {
        Builder::new_multi_thread()
    };
    Ok(builder.enable_all().build()?)
}

fn patience(name: &str) -> Duration {
    if matches!(name, "agents" | "packed" | COMPARE) { PATIENCE_WITH_PEERS } else { PATIENCE }
}

async fn measure(name: &str, plan: &Plan, report: &mut Report) -> Result<(), Failure> {
    let scale = plan.scale;
    match name {
        "raw" => raw::measure(scale, report).await,
        "rate" => rate::measure(scale, report).await,
        "agents" => agents::measure(plan, report).await,
        "packed" => packed::measure(plan, report).await,
        "latency" => latency::measure(scale, report).await,
        "neighbours" => neighbours::measure(plan, report).await,
        "history" => history::measure(scale, report).await,
        CLUSTER => cluster::measure(scale, report).await,
        COMPARE => match &plan.before {
            Some(comparison) => compare::measure(comparison, scale, report).await,
            None => Ok(()),
        },
        _ => memory::measure(scale).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, Failure> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read() {
        let options = parse("--quick --peers --only agents --agents 10,300").unwrap();
        assert!(options.quick && options.peers && options.wants("agents") && !options.wants("rate"));
        assert_eq!(options.agents, Some(vec![10, 300]));
        let wants = |line, name| parse(line).unwrap().wants(name);
        assert!(wants("--cluster", "cluster") && !wants("--cluster", "rate") && !wants("", "cluster"));
        assert_eq!(
            parse("--beside flood,disk").unwrap().beside.unwrap(),
            ["a disk hog", "a flood of output"]
        );
        let options = parse("--before HEAD~3 --rounds 5 --rows requests,delays").unwrap();
        assert!(options.wants("compare") && !options.wants("rate"));
        let rows = vec![Rows::Requests, Rows::Delays];
        let comparison = Comparison { revision: "HEAD~3".to_owned(), rounds: 5, rows };
        assert_eq!(options.plan().before, Some(comparison));
        let wrong = [
            "--before",
            "--rounds",
            "--rounds 0",
            "--rows",
            "--rows delays,nothing",
            "--only",
            "--only nothing",
            "--agents",
            "--agents 1,x",
            "--agents 0",
            "--beside angels",
            "--fast",
        ];
        for wrong in wrong {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_help_explains_every_part() {
        for name in NAMES.into_iter().chain(["--cluster", "--before", "--rounds", "--rows"]) {
            assert!(HELP.contains(&format!("\n  {name} ")), "{name}");
        }
    }
}
