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

/// The output of an agent that has run once, line by line, and when each line came.
#[derive(Debug, Clone)]
pub struct Transcript {
    name: String,
    lines: Arc<[(Duration, OutputLine)]>,
}

impl Transcript {
    /// Takes a recording: what the agent printed, and the times of its lines. `times` has one line for each of
    /// them, and what counts is its first word: the milliseconds since the start. A line without a time comes with
    /// the one before.
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
            // Lines stay in order whatever the times say.
            due = due.max(told.map_or(due, Duration::from_millis));
            (due, line)
        });
        Self { name: name.into(), lines: with_times.collect() }
    }

    /// Reads a recording `x.jsonl`, and the times from `x.times` beside it if that is there. It blocks.
    pub fn read(path: &Path) -> io::Result<Self> {
        let output = std::fs::read(path)?;
        let times = match std::fs::read_to_string(path.with_extension("times")) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            times => times?,
        };
        Ok(Self::new(path.display().to_string(), output, &times))
    }
}

/// Plays a recording, whatever the prompt is.
#[derive(Debug, Clone)]
pub struct ReplayRunner {
    transcript: Transcript,
    speed: f64,
}

impl ReplayRunner {
    /// `speed` 1 is as it was, 2 twice as fast; 0 (and what makes no sense) is as fast as it goes.
    pub fn new(transcript: Transcript, speed: f64) -> Self {
        Self { transcript, speed }
    }

    /// A run in which what was printed up to `committed` has come already.
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
}

struct ReplayRun {
    lines: Vec<(Duration, OutputLine)>,
    next: usize,
    started: Instant,
    /// How much of the recording had been played when this run began.
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
