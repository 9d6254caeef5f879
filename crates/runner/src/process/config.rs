//! What the configuration says about a process agent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::SupervisorProgram;
use crate::{FramerLimits, Protocol, Unanswered};

/// One kind of process agent.
#[derive(Debug, Clone)]
pub struct ProcessConfig {
    pub supervisor: SupervisorProgram,
    /// The folder of the run folders. It is made where it is missing, for this user alone.
    pub runs: PathBuf,
    /// The agent's program: an absolute path, or a name that is looked up in the server's `PATH`.
    pub program: String,
    pub args: Vec<String>,
    /// Come after `args` where a session is resumed; `{session}` stands for its id.
    pub resume_args: Vec<String>,
    /// Come after `args` where a model is asked for; `{model}` stands for its name.
    pub model_args: Vec<String>,
    /// Fixed values of the agent's environment.
    pub env: BTreeMap<String, String>,
    /// What the agent gets of the server's environment; nothing else of it reaches the agent.
    pub pass_env: Vec<String>,
    /// Whether a cancel begins with an interrupt (SIGINT), which lets the agent close its turn in good order.
    pub interrupt: bool,
    /// How the program is spoken with; none where it takes its prompt and needs nothing more.
    pub converse: Option<ConverseConfig>,
    pub limits: ProcessLimits,
}

/// How a program is spoken with that takes its prompt as a message of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConverseConfig {
    pub protocol: Protocol,
    /// How long a question of the program waits for its answer.
    pub question_timeout_ms: u64,
    /// What becomes of it then.
    pub unanswered: Unanswered,
    /// Whether the program may ask for files in the folder that it works in.
    pub files: bool,
    /// How long the process waits for the next turn of its agent after one; with 0 each turn has a process of its own.
    /// Not with each protocol it can wait: [`Protocol::can_rest`].
    pub rest_ms: u64,
}

/// The bounds of a process agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    /// A longer line is [`Line::TooLong`](tokenrail_ports::Line::TooLong).
    pub line_bytes: usize,
    /// How much of the beginning of such a line is given.
    pub head_bytes: usize,
    /// How much of the spool is read at once.
    pub read_bytes: usize,
    /// How many lines are given at once.
    pub output_lines: usize,
    /// From a cancel to the first SIGKILL. With an interrupt, SIGTERM follows after half of it.
    pub cancel_grace_ms: u64,
    /// How long processes that outlive the agent may take to end after SIGTERM.
    pub leftover_grace_ms: u64,
    /// How long after the first SIGKILL the run may take to vanish; what is left then is reported.
    pub kill_grace_ms: u64,
    /// How much of what the agent prints on standard error is kept: one half of it from the beginning, one from
    /// the end.
    pub stderr_bytes: usize,
    /// How long a supervisor waits for room on a full disk, to write down how its agent ended.
    pub exit_patience_ms: u64,
    /// How long the agent's output may wait for room on a full disk. Then the run is ended.
    pub full_disk_wait_ms: u64,
    /// How many processes a run may have at once; with more it is ended. 0 is no limit.
    pub agent_processes: u64,
    /// How much memory the processes of a run may have together, in memory or swapped out, without the files that they
    /// have mapped; with more it is ended. 0 is no limit.
    pub agent_memory_bytes: u64,
    /// How much the processes of a run give way to others where the processor is short, as in nice(1): 0 to 19.
    pub agent_nice: u64,
    /// How often it is looked whether a run is over its limits.
    pub look_ms: u64,
    /// How long a supervisor may take to start.
    pub spawn_timeout_ms: u64,
    /// How long a program that is spoken with may take to end after its turn.
    pub exit_grace_ms: u64,
    /// How many questions of it may be open; one more is settled as if nobody had answered.
    pub open_questions: usize,
    /// How much may wait for it when it does not read. With more, the conversation breaks off.
    pub unread_bytes: usize,
    /// The largest file that it may ask for, or have written.
    pub file_bytes: usize,
    /// How many processes may wait for the next turns of their agents.
    pub resting_agents: usize,
    /// A process whose spool is longer does not wait: what is of its turns stays on the disk for as long as it lives.
    pub resting_spool_bytes: u64,
    /// How long the program may take to tell its version.
    pub probe_timeout_ms: u64,
    /// How much of what it says then is read.
    pub probe_bytes: usize,
}

impl ProcessLimits {
    pub(super) fn framer(&self) -> FramerLimits {
        FramerLimits { line_bytes: self.line_bytes, head_bytes: self.head_bytes.min(self.line_bytes) }
    }
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self {
            line_bytes: 16 << 20,
            head_bytes: 4 << 10,
            read_bytes: 256 << 10,
            output_lines: 256,
            cancel_grace_ms: 5_000,
            leftover_grace_ms: 500,
            kill_grace_ms: 2_000,
            stderr_bytes: 64 << 10,
            exit_patience_ms: 3_600_000,
            full_disk_wait_ms: 30_000,
            agent_processes: 1000,
            agent_memory_bytes: 0,
            agent_nice: 5,
            look_ms: 100,
            spawn_timeout_ms: 10_000,
            exit_grace_ms: 5_000,
            open_questions: 64,
            unread_bytes: 64 << 20,
            file_bytes: 16 << 20,
            resting_agents: 4,
            resting_spool_bytes: 64 << 20,
            probe_timeout_ms: 5_000,
            probe_bytes: 4 << 10,
        }
    }
}
