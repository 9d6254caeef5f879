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
    /// The protocol that the program speaks. `None` if it needs only its prompt.
    #[serde(default)]
    pub(crate) converse: Option<String>,
    /// The program that runs `converse`, if the supervisor's own program cannot.
    #[serde(default, rename = "speaker")]
    pub(crate) converse_program: Option<OsString>,
    pub(crate) interrupt: bool,
    pub(crate) leftover_grace_ms: u64,
    pub(crate) kill_grace_ms: u64,
    pub(crate) stderr_bytes: usize,
    pub(crate) exit_patience_ms: u64,
    /// 0: no wait. Orders of early versions lack it.
    #[serde(default)]
    pub(crate) full_disk_wait_ms: u64,
    /// 0: no limit. Orders of early versions lack it.
    #[serde(default)]
    pub(crate) agent_processes: u64,
    /// 0: no limit. Orders of early versions lack it.
    #[serde(default)]
    pub(crate) agent_memory_bytes: u64,
    #[serde(default)]
    pub(crate) agent_nice: u64,
    #[serde(default)]
    pub(crate) look_ms: u64,
}

/// Which process supervises the run. The kernel reuses process ids, but not together with the other fields.
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
    /// How many processes other than the agent got a signal when the run was ended.
    pub(crate) reaped: u32,
    /// How many could not be ended.
    pub(crate) left: u32,
    /// Whether a cancel had come. No program of this release reads it. It stays because servers of earlier releases
    /// cannot read a record without it, and one of them may adopt the run after a downgrade. It can go when no such
    /// release can start on a data folder of this one.
    pub(crate) cancelled: bool,
    /// Why the agent could not be started.
    pub(crate) failure: Option<RunFailure>,
    /// The error of a write to the run folder when the agent ended, if the disk was full.
    pub(crate) disk_full: Option<String>,
    /// The part of the agent's output that is missing from the spool, if any.
    #[serde(default)]
    pub(crate) unkept: Option<Unkept>,
    /// The limit that the run exceeded, if it was ended for that.
    #[serde(default)]
    pub(crate) over_limit: Option<OverLimit>,
    /// How many bytes of the spool had been read when it was emptied to free space on a full disk. They may not have
    /// been saved.
    #[serde(default)]
    pub(crate) emptied_at: Option<u64>,
}

/// Output that could not be written to the spool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unkept {
    /// How many bytes of it had been printed when the run ended.
    pub(crate) bytes: u64,
    pub(crate) cause: RunFailure,
}

/// A run exceeded one of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OverLimit {
    pub(crate) limit: RunLimit,
    pub(crate) allowed: u64,
    pub(crate) seen: u64,
}

/// What a limit counts, for all processes of a run together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunLimit {
    Processes,
    MemoryBytes,
}

/// Why the agent could not be started, or its output could not be saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunFailure {
    pub(crate) text: String,
    /// The disk was full. A later try may succeed.
    #[serde(default)]
    pub(crate) disk_full: bool,
}

impl From<&io::Error> for RunFailure {
    fn from(error: &io::Error) -> Self {
        Self { text: error.to_string(), disk_full: is_disk_full(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The supervisor may be of another release than the server.
    #[test]
    fn the_converse_program_is_read_under_the_name_of_earlier_releases() {
        let order = r#"{"program":{"Unix":[97]},"args":[],"env":[],"cwd":{"Unix":[47]},"speaker":{"Unix":[98]},
            "interrupt":false,"leftover_grace_ms":0,"kill_grace_ms":0,"stderr_bytes":0,"exit_patience_ms":0}"#;
        let order: ExecOrder = serde_json::from_str(order).unwrap();
        assert_eq!(order.converse_program.as_deref(), Some("b".as_ref()));
        let written = serde_json::to_value(&order).unwrap();
        assert_eq!(written["speaker"], serde_json::json!({ "Unix": [98] }));
    }
}
