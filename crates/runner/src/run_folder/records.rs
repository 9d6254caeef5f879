//! The records in a run folder: what to run, who supervises it, and how it ended.

use std::ffi::OsString;
use std::io;

use serde::{Deserialize, Serialize};
use tokenrail_ports::is_disk_full;

/// What to run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ExecOrder {
    /// An absolute path.
    pub(crate) program: OsString,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, OsString)>,
    pub(crate) cwd: OsString,
    /// The protocol in which the program is spoken with; none where it takes its prompt and needs nothing more.
    #[serde(default)]
    pub(crate) converse: Option<String>,
    /// The program that speaks with it then, where the supervisor's own cannot.
    #[serde(default)]
    pub(crate) speaker: Option<OsString>,
    pub(crate) interrupt: bool,
    pub(crate) leftover_grace_ms: u64,
    pub(crate) kill_grace_ms: u64,
    pub(crate) stderr_bytes: usize,
    pub(crate) exit_patience_ms: u64,
    /// 0 is no wait, as in an order of a version that knew none.
    #[serde(default)]
    pub(crate) full_disk_wait_ms: u64,
    /// 0 is no limit, as in an order of a version that knew none; and so with the next one.
    #[serde(default)]
    pub(crate) agent_processes: u64,
    #[serde(default)]
    pub(crate) agent_memory_bytes: u64,
    #[serde(default)]
    pub(crate) agent_nice: u64,
    #[serde(default)]
    pub(crate) look_ms: u64,
}

/// Which process supervises the run. A process id alone comes back; together with the rest it does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SupervisorRecord {
    pub(crate) pid: i32,
    /// In clock ticks since boot: field 22 of `/proc/<pid>/stat`.
    pub(crate) start_time: u64,
    pub(crate) boot_id: String,
}

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExitRecord {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// How many processes outlived the agent and were ended.
    pub(crate) reaped: u32,
    /// How many could not be.
    pub(crate) left: u32,
    pub(crate) cancelled: bool,
    /// Why there was no agent to begin with.
    pub(crate) failure: Option<ExecFailure>,
    /// Why nothing more could be written beside the spool when the agent ended, where that was so.
    pub(crate) disk_full: Option<String>,
    /// What the spool lacks of the agent's output, where it lacks any.
    #[serde(default)]
    pub(crate) unkept: Option<Unkept>,
    /// The limit for which it was ended, if it was.
    #[serde(default)]
    pub(crate) over_limit: Option<OverLimit>,
    /// How many bytes of the spool had been read when it was emptied, where a full disk needed its room. They may not
    /// have been saved.
    #[serde(default)]
    pub(crate) emptied_at: Option<u64>,
}

/// Output that could not be written to the spool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unkept {
    /// How much of it had been printed when the run ended.
    pub(crate) bytes: u64,
    pub(crate) cause: ExecFailure,
}

/// A run was over a limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OverLimit {
    pub(crate) limit: RunLimit,
    pub(crate) allowed: u64,
    pub(crate) seen: u64,
}

/// What all processes of a run together may have no more of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunLimit {
    Processes,
    MemoryBytes,
}

/// Why the agent could not be started, or its output not be kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExecFailure {
    pub(crate) text: String,
    /// There was no room on the disk: later there may be.
    #[serde(default)]
    pub(crate) disk_full: bool,
}

impl From<&io::Error> for ExecFailure {
    fn from(error: &io::Error) -> Self {
        Self { text: error.to_string(), disk_full: is_disk_full(error) }
    }
}
