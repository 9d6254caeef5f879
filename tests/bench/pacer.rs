//! One load generator for many agents: it decides when each of them prints a token, and writes the time into the token.

use std::io::{ErrorKind, Write as _};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::MissedTickBehavior;

use crate::Failure;
use crate::machine::now_us;

/// The interval between two checks for due tokens.
const TICK: Duration = Duration::from_millis(1);
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
    token: u64,
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
    let empty = |stream| Sink { stream, token: 0, unread: Vec::new() };
    let mut sinks: Vec<Sink> = streams.into_iter().map(empty).collect();
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut left = true;
    while left {
        tick.tick().await;
        left = false;
        let now_us = now_us();
        for (agent, sink) in sinks.iter_mut().enumerate() {
            // The token contains the time when it was due, so that a late generator does not make the server look
            // faster.
            while sink.token < pace.tokens {
                let due_us = begin_us + pace.due_us(agent, sink.token);
                if now_us < due_us {
                    break;
                }
                write(agent, due_us, &mut sink.unread);
                sink.token += 1;
            }
            sink.flush()?;
            left |= sink.token < pace.tokens || !sink.unread.is_empty();
        }
    }
    Ok(sinks.into_iter().map(|sink| sink.stream).collect())
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

    #[test]
    fn a_token_is_a_line_of_json_with_its_time() {
        let mut line = Vec::new();
        claude_line(0, 1234, &mut line);
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["event"]["delta"]["text"], "1234 ");
        assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
    }
}
