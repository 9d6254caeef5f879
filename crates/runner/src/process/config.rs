//! What the configuration says about a process agent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::SupervisorProgram;
use crate::{FramerLimits, Protocol, Unanswered};

/// The configuration of one type of process agent.
#[derive(Debug, Clone)]
pub struct ProcessConfig {
    pub supervisor: SupervisorProgram,
    /// The folder that contains the run folders. If it is missing, it is created with access for this user only.
    pub runs: PathBuf,
    /// The agent program: an absolute path, or a name that is looked up in the server's `PATH`.
    pub program: String,
    pub args: Vec<String>,
    /// Follow `args` if a session is resumed. `{session}` is replaced with its id.
    pub resume_args: Vec<String>,
    /// Follow `args` if the turn names a model. `{model}` is replaced with its name.
    pub model_args: Vec<String>,
    /// Environment variables with fixed values.
    pub env: BTreeMap<String, String>,
    /// The variables that the agent gets from the server's environment. It gets no others.
    pub pass_env: Vec<String>,
    /// Whether a cancel begins with an interrupt (SIGINT), which lets the agent end its turn cleanly.
    pub interrupt: bool,
    /// How Tokenrail speaks with the program. `None` if the program needs only its prompt.
    pub converse: Option<ConverseConfig>,
    pub limits: ProcessLimits,
}

/// How Tokenrail speaks with a program that takes its prompt as a message of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConverseConfig {
    pub protocol: Protocol,
    /// How long a permission request of the program waits for its answer.
    pub permission_timeout_ms: u64,
    /// The answer if nobody answers in time.
    pub unanswered: Unanswered,
    /// Whether the program may request files in its working directory.
    pub files: bool,
    /// How long the process stays idle after a turn, to run the agent's next turn. 0: each turn has its own process.
    /// Not every protocol allows it: see [`Protocol::can_be_idle`].
    pub idle_ms: u64,
}

/// The limits of a process agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    /// A longer line is [`Line::TooLong`](tokenrail_ports::Line::TooLong).
    pub line_bytes: usize,
    /// How many bytes of the beginning of such a line are returned.
    pub head_bytes: usize,
    /// How many bytes of the spool are read at once.
    pub read_bytes: usize,
    /// How many lines are returned at once.
    pub output_lines: usize,
    /// The time from a cancel to the first SIGKILL. With an interrupt, SIGTERM follows after half of it.
    pub cancel_grace_ms: u64,
    /// How long processes that outlive the agent may take to end after SIGTERM.
    pub leftover_grace_ms: u64,
    /// How long it may take to kill all processes of the run. Leftovers get SIGTERM first; those that are left after
    /// at most half of this time get SIGKILL. Processes that are left at its end are reported.
    pub kill_grace_ms: u64,
    /// How many bytes of the agent's standard error are kept: one half from the beginning, one from the end.
    pub stderr_bytes: usize,
    /// How long a supervisor waits for free space on a full disk, to record how its agent ended.
    pub exit_patience_ms: u64,
    /// How long the agent's output may wait for free space on a full disk. Then the supervisor ends the run.
    pub full_disk_wait_ms: u64,
    /// How many processes a run may have at once. A run with more is ended. 0: no limit.
    pub agent_processes: u64,
    /// How much memory the processes of a run may have together: in memory or swapped out, without mapped files. A run
    /// with more is ended. 0: no limit.
    pub agent_memory_bytes: u64,
    /// The niceness of a run's processes, as in nice(1): 0 to 19. If the processor is busy, others go first.
    pub agent_nice: u64,
    /// How often a supervisor checks whether its run is over a limit. While few processes begin on the machine, and
    /// without a memory limit, it checks less often.
    pub look_ms: u64,
    /// How long a supervisor may take to start.
    pub spawn_timeout_ms: u64,
    /// How long a program that speaks a protocol may take to end after its turn.
    pub exit_grace_ms: u64,
    /// How many of its permission requests may be open. A further one is settled like one that nobody answers.
    pub open_questions: usize,
    /// How many unread bytes may wait for the program. With more, the conversation ends.
    pub unread_bytes: usize,
    /// The largest file that the program may request, or ask Tokenrail to write.
    pub file_bytes: usize,
    /// How many processes may be idle until the next turns of their agents.
    pub idle_agents: usize,
    /// A process with a longer spool does not stay idle: the output of its turns is on the disk until it ends.
    pub idle_spool_bytes: u64,
    /// How long the program may take to print its version.
    pub probe_timeout_ms: u64,
    /// How many bytes of that output are read.
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
            idle_agents: 4,
            idle_spool_bytes: 64 << 20,
            probe_timeout_ms: 5_000,
            probe_bytes: 4 << 10,
        }
    }
}
