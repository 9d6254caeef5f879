//! An agent that is a recording.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokenrail_ports::{
    Adoption, IAgentRun, IAgentRunner, OutputLine, Probe, RunEnd, RunOutput, RunnerError, TurnOrder,
};
use tokio::time::{Instant, sleep_until};

use crate::{FramerLimits, LineFramer};

/// The recorded output of an agent, line by line, and the time of each line.
#[derive(Debug, Clone)]
pub struct Transcript {
    name: String,
    lines: Arc<[(Duration, OutputLine)]>,
}

impl Transcript {
    /// Creates a transcript from the output of an agent and the times of its lines. `times` has one line for each of
    /// them. Its first word is the time in milliseconds since the start; the rest is ignored. A line without a time
    /// comes with the one before.
    pub fn new(name: impl Into<String>, output: impl Into<Bytes>, times: &str) -> Self {
        let output = output.into();
        let limits = FramerLimits { line_bytes: output.len(), head_bytes: 0 };
        let mut framer = LineFramer::new(limits);
        framer.feed(output);
        let mut lines: Vec<_> = std::iter::from_fn(|| framer.next_line()).collect();
        lines.extend(framer.finish());
        let mut times = times.lines();
        let mut due = Duration::ZERO;
        let with_times = lines.into_iter().map(|line| {
            let told = times.next().and_then(|time| time.split_ascii_whitespace().next()?.parse().ok());
            // Lines stay in order, whatever the times are.
            due = due.max(told.map_or(due, Duration::from_millis));
            (due, line)
        });
        Self { name: name.into(), lines: with_times.collect() }
    }

    /// Reads a recording `x.jsonl`, and its times from `x.times` in the same folder, if that file exists. Blocks.
    pub fn read(path: &Path) -> io::Result<Self> {
        let output = std::fs::read(path)?;
        let times = match std::fs::read_to_string(path.with_extension("times")) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            times => times?,
        };
        Ok(Self::new(path.display().to_string(), output, &times))
    }
}

/// Plays a recording, and ignores the prompt.
#[derive(Debug, Clone)]
pub struct ReplayRunner {
    transcript: Transcript,
    speed: f64,
}

impl ReplayRunner {
    /// `speed` is a factor: 1 is the original speed, 2 is twice as fast. 0 or an invalid value is as fast as possible.
    pub fn new(transcript: Transcript, speed: f64) -> Self {
        Self { transcript, speed }
    }

    /// A run whose output up to `committed` is due at once.
    fn play(&self, committed: u64) -> ReplayRun {
        let due = |time: Duration| match time.as_secs_f64() / self.speed {
            seconds if self.speed > 0.0 => Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
            _ => Duration::ZERO,
        };
        let lines: Vec<_> =
            self.transcript.lines.iter().map(|(time, line)| (due(*time), line.clone())).collect();
        let before = lines.iter().take_while(|(_, line)| line.end_offset <= committed).last();
        let played = before.map_or(Duration::ZERO, |(due, _)| *due);
        ReplayRun { lines, next: 0, started: Instant::now(), played, cancelled: false }
    }
}

#[async_trait]
impl IAgentRunner for ReplayRunner {
    async fn start(&self, _order: &TurnOrder) -> Result<Box<dyn IAgentRun>, RunnerError> {
        Ok(Box::new(self.play(0)))
    }

    async fn adopt(&self, _order: &TurnOrder, committed: u64) -> Result<Adoption, RunnerError> {
        Ok(Adoption::Run(Box::new(self.play(committed))))
    }

    async fn probe(&self) -> Probe {
        Probe { program: Some(self.transcript.name.clone()), ..Probe::default() }
    }

    fn needs_home(&self) -> bool {
        false
    }
}

struct ReplayRun {
    lines: Vec<(Duration, OutputLine)>,
    next: usize,
    started: Instant,
    /// The playing time that had passed when this run began.
    played: Duration,
    cancelled: bool,
}

#[async_trait]
impl IAgentRun for ReplayRun {
    async fn next(&mut self) -> Result<RunOutput, RunnerError> {
        let rest = &self.lines[self.next..];
        let Some((due, _)) = rest.first().filter(|_| !self.cancelled) else {
            return Ok(RunOutput::Ended(RunEnd::default()));
        };
        let wait = due.saturating_sub(self.played);
        if let Some(at) = self.started.checked_add(wait) {
            sleep_until(at).await;
        }
        let now = self.started.elapsed().saturating_add(self.played);
        let ready = rest.iter().take_while(|(due, _)| *due <= now);
        let lines: Vec<_> = ready.map(|(_, line)| line.clone()).collect();
        self.next += lines.len();
        Ok(RunOutput::Lines(lines))
    }

    async fn cancel(&mut self) -> Result<(), RunnerError> {
        self.cancelled = true;
        Ok(())
    }

    async fn leave(&mut self) {}
}

#[cfg(test)]
mod tests;
