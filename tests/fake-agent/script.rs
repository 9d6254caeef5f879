//! What the agent is told to do.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The environment variable by which a script is handed on when the program starts itself again.
pub(crate) const HANDED_ON: &str = "FAKE_AGENT_SCRIPT";

/// The script: the JSON object in the first line of the prompt. Every field may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Script {
    pub(crate) mode: Mode,
    /// How many text deltas the message has.
    pub(crate) deltas: u64,
    /// From one delta to the next, in microseconds; 0 is as fast as it goes.
    pub(crate) pace_us: u64,
    /// Once this file is there, the pace is not kept any more.
    pub(crate) hurry: Option<PathBuf>,
    /// Each delta says the microseconds of the monotonic clock at which it was printed, instead of its number.
    pub(crate) stamp: bool,
    /// How long each delta is, at least.
    pub(crate) delta_bytes: usize,
    /// What the deltas say, one each, instead of their numbers.
    pub(crate) say: Vec<String>,
    /// What each delta says, instead of its number.
    pub(crate) word: Option<String>,
    /// Where `relay` connects to, and as whom.
    pub(crate) relay: Option<SocketAddr>,
    pub(crate) name: String,
    /// What is printed on standard error at first.
    pub(crate) complain: String,
    /// A file to write all of the prompt to, byte for byte.
    pub(crate) copy_prompt: Option<PathBuf>,
    /// Files that `env_dump` tries to read; it says how that went.
    pub(crate) peek: Vec<PathBuf>,
    /// How long the tool of `tool` runs, in milliseconds.
    pub(crate) pause_ms: u64,
    /// How much the modes that speak of MiB print.
    pub(crate) mib: usize,
    /// How many bytes of its character `half_utf8` prints: 1 to 3.
    pub(crate) cut: usize,
    /// The exit code of `crash` and `print`.
    pub(crate) code: u8,
    /// The signal that `crash` kills itself with, instead of the exit code.
    pub(crate) signal: Option<i32>,
    /// A file to wait for, after `gate_after` deltas; in `tool` while the tool runs.
    pub(crate) gate: Option<PathBuf>,
    pub(crate) gate_after: u64,
    /// A file to make when all is printed, just before the process ends or hangs.
    pub(crate) touch: Option<PathBuf>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            mode: Mode::Stream,
            deltas: 10,
            pace_us: 0,
            hurry: None,
            stamp: false,
            delta_bytes: 0,
            say: Vec::new(),
            word: None,
            relay: None,
            name: String::new(),
            complain: String::new(),
            copy_prompt: None,
            peek: Vec::new(),
            pause_ms: 0,
            mib: 1,
            cut: 3,
            code: 1,
            signal: None,
            gate: None,
            gate_after: 0,
            touch: None,
        }
    }
}

/// What kind of agent it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// No agent of any known kind: prints what it is to `say`, a line each, and ends with `code`.
    Print,
    /// A good one: deltas, the whole message, the result.
    #[default]
    Stream,
    /// Says nothing more after its deltas, and does not end.
    Hang,
    /// As `hang`, and neither it nor its grandchild, which has a session of its own and holds standard output,
    /// listens to SIGTERM, SIGINT or SIGHUP.
    IgnoreTerm,
    /// Ends with code 0 and without a result.
    NoResult,
    /// Prints its result and does not end.
    ResultThenHang,
    /// Connects to `relay`, says its `name` there, in a line, and prints what comes from there, as it comes; then
    /// its message has ended. Who paces many agents, paces them from one place.
    Relay,
    /// Ends after its deltas, with `code` or by `signal`.
    Crash,
    /// Prints `mib` MiB of deltas as fast as it goes, in messages of 10,000, then as `stream`.
    Flood,
    /// Prints `mib` MiB without a line end.
    NoNewline,
    /// Prints a delta that holds the first bytes of a character and not the rest, then as `stream`.
    HalfUtf8,
    /// Prints a tool result of `mib` MiB in one line, then as `stream`.
    LongLine,
    /// Reads no more of its prompt than the first line.
    CloseStdin,
    /// Calls a tool, which takes `pause_ms` and waits for `gate`, and then says its text.
    Tool,
    /// Says what it sees of its process: one JSON object
    /// `{env, cwd, umask, fds, cmdline, core_limit, peeked, nice, oom_score}` as its text.
    EnvDump,
    /// Prints `mib` MiB on standard error, then as `stream`.
    StderrFlood,
    /// Ends with code 0 in the middle of its result line.
    PartialLastLine,
    /// Prints `mib` MiB of lines that mean nothing, then as `stream`.
    TinyLines,
    /// As `stream`, and leaves a process behind that has a session of its own and holds standard output.
    Daemon,
    /// As `hang`, with 200 processes that have sessions of their own.
    ManyProcesses,
    /// Chains of processes, each of which begins the next one and ends.
    Hoppers,
    /// As `hang`, with processes each of which begins two more, as fast as it goes; 2047 of them, for a minute at most.
    ForkBomb,
    /// As `stream`, with as many files open as it may have, or 50,000.
    Descriptors,
    /// As `hang`, but stopped by its own signal.
    StopItself,
    /// As `hang`, with standard output closed.
    CloseStdout,
    /// As `hang`, with `mib` MiB of memory of its own.
    Memory,
    /// As `stream`, after it has written `mib` MiB to a file in its folder, down to the disk, and removed it.
    Disk,
}

impl Script {
    /// Reads the first line of a prompt.
    pub(crate) fn parse(line: &str) -> Self {
        // A prompt of people is no script.
        serde_json::from_str(line).unwrap_or_default()
    }

    /// How many deltas the message has.
    pub(crate) fn deltas(&self) -> u64 {
        if self.say.is_empty() { self.deltas } else { self.say.len() as u64 }
    }

    /// Whether each line is written by itself, as agents do.
    pub(crate) fn unbuffered(&self) -> bool {
        self.mode != Mode::Flood
    }
}
