//! One load generator for many agents: it decides when each of them prints a token, and writes the time into the token.

use std::io::{ErrorKind, Write as _};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;

use crate::Failure;
use crate::machine::now_us;

/// How long to wait at the end before writing again to agents that have not read everything.
const AGAIN_US: u64 = 1000;
/// If an agent leaves more than this unread, the measurement fails.
const UNREAD_BYTES_MAX: usize = 16 << 20;

/// When agents print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// All at the same moment: the hardest case.
    Together,
    /// At different moments, evenly spread.
    Spread,
}

/// How much the agents print, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) agents: usize,
    /// Tokens per second of each agent.
    pub(crate) per_second: u64,
    pub(crate) phase: Phase,
    /// How many tokens each agent prints.
    pub(crate) tokens: u64,
}

impl Pace {
    /// When an agent prints a token, in microseconds after the beginning. The first token is number 0.
    fn due_us(&self, agent: usize, token: u64) -> u64 {
        let interval_us = 1_000_000 / self.per_second;
        let offset_us = match self.phase {
            Phase::Together => 0,
            Phase::Spread => interval_us * agent as u64 / self.agents as u64,
        };
        offset_us + token * interval_us
    }
}

/// Writes what an agent prints for a token.
pub(crate) type Write = fn(agent: usize, said_us: u64, out: &mut Vec<u8>);

/// A token as Claude Code prints it. Its text is the time.
pub(crate) fn claude_line(_agent: usize, said_us: u64, out: &mut Vec<u8>) {
    const BEFORE: &[u8] =
        b"{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"index\":0,\
        \"delta\":{\"type\":\"text_delta\",\"text\":\"";
    const AFTER: &[u8] = b" \"}},\"session_id\":\"5e551011-0000-4000-8000-000000000001\",\
        \"parent_tool_use_id\":null,\"uuid\":\"9ff3e1c0-aded-4f78-8ba2-6b636cd681b1\",\
        \"api_message_id\":\"msg_fake0001\"}\n";
    out.extend_from_slice(BEFORE);
    push_number(said_us, out);
    out.extend_from_slice(AFTER);
}

pub(crate) fn push_number(number: u64, out: &mut Vec<u8>) {
    // Writing to a vector does not fail.
    let _ = write!(out, "{number}");
}

struct Sink {
    stream: TcpStream,
    /// What the agent has not read yet.
    unread: Vec<u8>,
}

impl Sink {
    fn flush(&mut self) -> Result<(), Failure> {
        while !self.unread.is_empty() {
            match self.stream.try_write(&self.unread) {
                Ok(count) => drop(self.unread.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(format!("an agent has gone: {error}").into()),
            }
        }
        if UNREAD_BYTES_MAX < self.unread.len() { Err("an agent does not read".into()) } else { Ok(()) }
    }
}

/// Makes the agents print all their tokens from `begin_us` on. Returns the sockets after the last token was written.
/// When they are dropped, the agents end.
pub(crate) async fn print_all(
    streams: Vec<TcpStream>,
    pace: Pace,
    begin_us: u64,
    write: Write,
) -> Result<Vec<TcpStream>, Failure> {
    let empty = |stream| Sink { stream, unread: Vec::new() };
    let mut sinks: Vec<Sink> = streams.into_iter().map(empty).collect();
    let (alarm, mut reached_us) = (Alarm::new()?, 0);
    for token in 0..pace.tokens {
        for (agent, sink) in sinks.iter_mut().enumerate() {
            let due_us = begin_us + pace.due_us(agent, token);
            if reached_us < due_us {
                // Also if it is late, so that the followers can read meanwhile.
                alarm.wait_until(due_us).await?;
                reached_us = due_us;
            }
            // The token contains the time when it was due, so that a late generator does not make the server look
            // faster.
            write(agent, due_us, &mut sink.unread);
            sink.flush()?;
        }
    }
    while sinks.iter().any(|sink| !sink.unread.is_empty()) {
        alarm.wait_until(now_us() + AGAIN_US).await?;
        sinks.iter_mut().try_for_each(Sink::flush)?;
    }
    Ok(sinks.into_iter().map(|sink| sink.stream).collect())
}

/// A timer of the kernel. The timers of the async runtime are up to 2 ms late, which is more than most delays.
struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    fn new() -> Result<Self, Failure> {
        let flags = TimerfdFlags::NONBLOCK.union(TimerfdFlags::CLOEXEC);
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(deprecated, reason = "the descriptor is owned here, and closed by nobody else")]
        Ok(Self(AsyncFd::new(timer)?))
    }

    /// Waits until [`now_us`] has reached this time.
    async fn wait_until(&self, at_us: u64) -> Result<(), Failure> {
        let it_value = Timespec::try_from(Duration::from_micros(at_us))?;
        let once = Itimerspec { it_interval: Timespec::default(), it_value };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::ABSTIME, &once)?;
        loop {
            let mut ready = self.0.readable().await?;
            let reached = rustix::io::read(&self.0, &mut [0; 8]).is_ok();
            // Also if the time is reached. Otherwise the next wait would not return to the runtime if it is late.
            ready.clear_ready();
            if reached {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { agents: 4, per_second: 10, phase: Phase::Together, tokens: 20 };

    #[test]
    fn agents_print_together_or_spread_over_the_interval() {
        assert_eq!([0, 1, 2].map(|token| PACE.due_us(3, token)), [0, 100_000, 200_000]);
        let spread = Pace { phase: Phase::Spread, ..PACE };
        assert_eq!([0, 1, 2, 3].map(|agent| spread.due_us(agent, 1)), [100_000, 125_000, 150_000, 175_000]);
    }

    #[tokio::test]
    async fn an_alarm_is_never_early() {
        let alarm = Alarm::new().unwrap();
        for wait_us in [0, 300, 1500] {
            let at_us = now_us() + wait_us;
            alarm.wait_until(at_us).await.unwrap();
            assert!(at_us <= now_us());
        }
    }

    #[tokio::test]
    async fn a_late_alarm_lets_other_tasks_run() {
        let alarm = Alarm::new().unwrap();
        alarm.wait_until(now_us()).await.unwrap();
        let mut others = tokio::task::JoinSet::new();
        others.spawn(async {});
        alarm.wait_until(now_us() - 1000).await.unwrap();
        assert!(others.try_join_next().is_some());
    }

    #[test]
    fn a_token_is_a_line_of_json_with_its_time() {
        let mut line = Vec::new();
        claude_line(0, 1234, &mut line);
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["event"]["delta"]["text"], "1234 ");
        assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
    }
}
