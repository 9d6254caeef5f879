//! The script of the agent.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The environment variable that passes the script on when the program restarts itself.
pub(crate) const HANDED_ON: &str = "FAKE_AGENT_SCRIPT";

/// The script: the JSON object in the first line of the prompt. Every field is optional.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Script {
    pub(crate) mode: Mode,
    /// The number of text deltas in the message.
    pub(crate) deltas: u64,
    /// The time between two deltas, in microseconds. 0 means as fast as possible.
    pub(crate) pace_us: u64,
    /// When this file exists, the remaining deltas are printed without pauses.
    pub(crate) hurry: Option<PathBuf>,
    /// Each delta contains the time when it was printed, instead of its number: microseconds of the monotonic clock.
    pub(crate) stamp: bool,
    /// The minimum length of each delta.
    pub(crate) delta_bytes: usize,
    /// The texts of the deltas, instead of their numbers.
    pub(crate) say: Vec<String>,
    /// The text of each delta, instead of its number.
    pub(crate) word: Option<String>,
    /// Where `relay` connects to, and the name that it sends.
    pub(crate) relay: Option<SocketAddr>,
    pub(crate) name: String,
    /// Printed on standard error first.
    pub(crate) complain: String,
    /// A file to which the whole prompt is written, byte for byte.
    pub(crate) copy_prompt: Option<PathBuf>,
    /// A file to which each start of the program adds a line.
    pub(crate) log_start: Option<PathBuf>,
    /// Files that `env_dump` tries to read. It reports the results.
    pub(crate) peek: Vec<PathBuf>,
    /// How long the tool of `tool` runs, in milliseconds.
    pub(crate) pause_ms: u64,
    /// How much the modes that mention MiB print.
    pub(crate) mib: usize,
    /// How many bytes of its character `half_utf8` prints: 1 to 3.
    pub(crate) cut: usize,
    /// The exit code of `crash` and `print`.
    pub(crate) code: u8,
    /// The signal with which `crash` kills itself, instead of the exit code.
    pub(crate) signal: Option<i32>,
    /// A file to wait for: in `tool` while the tool runs, otherwise after `gate_after` deltas.
    pub(crate) gate: Option<PathBuf>,
    pub(crate) gate_after: u64,
    /// A file to create after everything was printed, just before the process ends or hangs.
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
            log_start: None,
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

/// The kind of agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// An agent of no known kind: prints the lines of `say`, and ends with `code`.
    Print,
    /// A well-behaved agent: deltas, the whole message, the result.
    #[default]
    Stream,
    /// Prints nothing more after its deltas, and does not end.
    Hang,
    /// As `hang`, but it ignores SIGTERM, SIGINT and SIGHUP, and so does its grandchild, which has its own session and
    /// holds standard output open.
    IgnoreTerm,
    /// Ends with code 0 and without a result.
    NoResult,
    /// Prints its result and does not end.
    ResultThenHang,
    /// Connects to `relay`, sends its `name` as a line, and prints what it receives. When the connection ends, so does
    /// the message. This way one process can pace many agents.
    Relay,
    /// Ends after its deltas, with `code` or by `signal`.
    Crash,
    /// Prints `mib` MiB of deltas as fast as possible, in messages of 10,000, then continues as `stream`.
    Flood,
    /// Prints `mib` MiB without a line break.
    NoNewline,
    /// Prints a delta that contains only the first bytes of a character, then continues as `stream`.
    HalfUtf8,
    /// Prints a tool result of `mib` MiB in one line, then continues as `stream`.
    LongLine,
    /// Reads only the first line of its prompt.
    CloseStdin,
    /// Calls a tool, which takes `pause_ms` and waits for `gate`, and then prints its text.
    Tool,
    /// Describes its process: prints one JSON object
    /// `{env, cwd, umask, fds, cmdline, core_limit, peeked, nice, oom_score}` as its text.
    EnvDump,
    /// Prints `mib` MiB on standard error, then continues as `stream`.
    StderrFlood,
    /// Ends with code 0 in the middle of its result line.
    PartialLastLine,
    /// Prints `mib` MiB of meaningless lines, then continues as `stream`.
    TinyLines,
    /// As `stream`, and leaves a process behind that has its own session and holds standard output open.
    Daemon,
    /// As `hang`, with 200 processes in their own sessions.
    ManyProcesses,
    /// Chains of processes. Each process starts the next one and ends.
    Hoppers,
    /// As `hang`, with processes each of which starts two more, as fast as possible: 2047 of them, for at most a
    /// minute.
    ForkBomb,
    /// As `stream`, with as many open files as the limit allows, or 50,000.
    Descriptors,
    /// As `hang`, but it stops itself with a signal.
    StopItself,
    /// As `hang`, with standard output closed.
    CloseStdout,
    /// As `hang`, with `mib` MiB of its own memory.
    Memory,
    /// As `stream`, after it has written `mib` MiB to a file in its folder, flushed it to disk, and removed it.
    Disk,
}

impl Script {
    /// Reads the first line of a prompt.
    pub(crate) fn parse(line: &str) -> Self {
        // A prompt from a user is not a script.
        serde_json::from_str(line).unwrap_or_default()
    }

    /// The number of deltas in the message.
    pub(crate) fn deltas(&self) -> u64 {
        if self.say.is_empty() { self.deltas } else { self.say.len() as u64 }
    }

    /// Whether each line is written separately, as agents do.
    pub(crate) fn unbuffered(&self) -> bool {
        self.mode != Mode::Flood
    }
}
