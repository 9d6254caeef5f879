//! The measurements of Tokenrail: `cargo xtask bench`, or `bench [--quick] [--only NAME]`.
//!
//! A real server on a loopback address, the scripted agent, and clients that do as little as possible: they read
//! frames and check that the numbers follow each other, so that a lost or doubled event fails the run.
//!
//! * [`raw`]: what the store takes, without anything around it
//! * [`rate`]: from the agent's output to all followers, as fast as it goes
//! * [`latency`]: from the agent's output to all followers, at the pace of a fast model
//! * [`neighbours`]: the same beside an agent that takes all it can get
//! * [`history`]: how fast a client that comes late has caught up
//! * [`memory`]: what a connection takes, and what a flood leaves
//! * [`server`], [`http`], [`websocket`], [`event_stream`], [`machine`], [`report`]: what they are made of
#![expect(clippy::print_stdout, reason = "a measurement for the terminal")]
#![expect(clippy::print_stderr, reason = "and it complains there")]

mod event_stream;
mod history;
mod http;
mod latency;
mod machine;
mod memory;
mod neighbours;
mod rate;
mod raw;
mod report;
mod server;
mod websocket;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use report::Report;

/// What went wrong: a sentence for the terminal.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// The longest that one measurement may take: it only keeps a hang from being waited for forever.
const PATIENCE: Duration = Duration::from_mins(5);

const NAMES: [&str; 6] = ["raw", "rate", "latency", "neighbours", "history", "memory"];

/// What is to be measured.
struct Options {
    /// A tenth of everything: to see that it works, not how fast.
    quick: bool,
    only: Option<String>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self { quick: false, only: None };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--only" => options.only = arguments.next(),
                _ => return Err(format!("no such option: {argument}").into()),
            }
        }
        match &options.only {
            Some(name) if !NAMES.contains(&name.as_str()) => {
                Err(format!("--only is one of {}", NAMES.join(", ")).into())
            }
            _ => Ok(options),
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == name)
    }

    fn scale(&self) -> Scale {
        Scale { divisor: if self.quick { 10 } else { 1 } }
    }
}

/// How much of everything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    divisor: u64,
}

impl Scale {
    pub(crate) fn of(self, whole: u64) -> u64 {
        whole / self.divisor
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Failure> {
    let options = Options::parse(std::env::args().skip(1))?;
    machine::allow_many_descriptors()?;
    println!("{}", machine::describe(&server::program()?)?);
    let mut report = Report::default();
    for name in NAMES.into_iter().filter(|name| options.wants(name)) {
        let measuring = measure(name, options.scale(), &mut report);
        tokio::time::timeout(PATIENCE, measuring).await.map_err(|_| format!("{name} took too long"))??;
    }
    report.print_aims();
    Ok(())
}

async fn measure(name: &str, scale: Scale, report: &mut Report) -> Result<(), Failure> {
    match name {
        "raw" => raw::measure(scale, report).await,
        "rate" => rate::measure(scale, report).await,
        "latency" => latency::measure(scale, report).await,
        "neighbours" => neighbours::measure(scale, report).await,
        "history" => history::measure(scale, report).await,
        _ => memory::measure(scale).await,
    }
}
