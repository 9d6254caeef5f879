//! A way to run an agent.

use std::io::ErrorKind;
use std::path::PathBuf;

use async_trait::async_trait;
use bytes::Bytes;
use tokenrail_domain::{
    AgentError, AgentId, ErrorClass, ImageFile, JsonText, PermissionReply, SessionId, TurnNumber,
};

/// Runs one kind of agent, one turn at a time.
///
/// Promise: the agent's output reaches [`IAgentRun::next`] complete, in order and byte for byte, however slowly it is
/// read. The agent never waits for its reader.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IAgentRunner: Send + Sync {
    /// Starts the agent on one prompt: in a new process, or in the process that is idle since an earlier turn of the
    /// agent. The run may be returned before the agent's program is executed: if that fails, only [`RunEnd::error`]
    /// reports it.
    async fn start(&self, order: &TurnOrder) -> Result<Box<dyn IAgentRun>, RunnerError>;

    /// Takes over a run that was started before the server was restarted. Its output comes again from the first byte.
    /// The journal already has `committed` bytes of it, for which the runner need not wait.
    async fn adopt(&self, order: &TurnOrder, committed: u64) -> Result<Adoption, RunnerError>;

    /// Whether agents of this kind can be started now, and which program would be run.
    async fn probe(&self) -> Probe;

    /// Whether the agent knows earlier turns only from [`TurnOrder::history`].
    fn wants_history(&self) -> bool {
        false
    }

    /// Whether a run goes on without the server that started it, so that [`IAgentRunner::adopt`] finds it.
    fn outlives_server(&self) -> bool {
        true
    }

    /// Whether agents of this kind have something on the disk of the node that runs them: the folder in which they
    /// work, or their session. Otherwise, any node can run their next turn.
    fn needs_home(&self) -> bool {
        true
    }

    /// Ends the idle process of an agent, if there is one ([`RunEnd::idle`]), and waits for its end. Does not touch a
    /// process that runs a turn.
    async fn dismiss(&self, agent: AgentId) {
        // Most kinds of agents end with their turn.
        let _ = agent;
    }

    /// Does the same for all agents, when no further turn will start.
    async fn dismiss_all(&self) {}
}

/// One run of an agent: one turn, and the turns that the agent then begins by itself.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IAgentRun: Send {
    /// Waits for more output. After [`RunOutput::Ended`], call it again only after [`IAgentRun::cancel`] of a run that
    /// [became idle](RunEnd::idle).
    ///
    /// The future can be dropped at any await without losing output.
    async fn next(&mut self) -> Result<RunOutput, RunnerError>;

    /// Asks the agent to stop: first politely and, after the configured grace periods, by force. Does not wait for the
    /// agent's end: [`IAgentRun::next`] continues, and returns [`RunOutput::Ended`] when no process of the run is left,
    /// or with an error in it if some could not be ended in time. Further calls have no effect. After an error it can
    /// be called again.
    async fn cancel(&mut self) -> Result<(), RunnerError>;

    /// Passes on an answer to a permission request. Only the output shows whether this answer settled the request. The
    /// first answer counts, so this one may still be too late.
    async fn answer(&mut self, answer: &PermissionAnswer) -> Result<(), RunnerError> {
        let _ = answer;
        // Most kinds of agents request no permissions.
        Err(RunnerError::Contact(ErrorKind::Unsupported.into()))
    }

    /// Frees the disk space of the run's output if the disk is full, because the journal may need the space to save
    /// what was read. Output that was not read is lost, and [`RunEnd::error`] contains its size. While the wait
    /// [continues](SpaceWait::Continues), only a run that the full disk has ended frees its space.
    async fn free_spool(&mut self, wait: SpaceWait) -> Result<SpoolRoom, RunnerError> {
        let _ = wait;
        Ok(SpoolRoom::None)
    }

    /// Leaves the run after all its output is in the journal. Removes what the run kept on disk. If its process is idle
    /// ([`RunEnd::idle`]), the process and its files stay for the agent's next turn.
    async fn leave(&mut self);
}

/// The journal's wait for space on a full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpaceWait {
    Continues,
    /// It has lasted for the maximum time.
    Over,
}

/// The disk space of a run's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpoolRoom {
    /// The run uses no space.
    None,
    /// The space was freed.
    Freed,
    /// The space was not freed, and cannot be freed while the run continues.
    Held,
}

/// What to run.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnOrder {
    pub agent: AgentId,
    /// The run to which the output will belong: see [`Turn::run`](tokenrail_domain::Turn::run).
    pub run: TurnNumber,
    pub prompt: String,
    /// The images of the prompt. Empty for a run that is adopted, because its agent has already received them.
    pub images: Vec<ImageFile>,
    pub model: Option<String>,
    /// The working directory: absolute and existing.
    pub cwd: PathBuf,
    /// The session to resume.
    pub session: Option<SessionId>,
    /// The launch options: a JSON object.
    pub options: Option<JsonText>,
    /// The turns before this one, the oldest first. Empty unless [`IAgentRunner::wants_history`]. Also empty for a run
    /// that is adopted, because its agent has already received them.
    pub history: Vec<PastTurn>,
}

/// An ended turn, as a reader of the conversation sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PastTurn {
    pub prompt: String,
    /// The agent's text, even if it is incomplete. Empty if there is none.
    pub answer: String,
}

impl PastTurn {
    /// The size of its text, in bytes.
    pub fn text_bytes(&self) -> usize {
        self.prompt.len() + self.answer.len()
    }
}

/// An answer to a permission request of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionAnswer {
    /// The id of the permission request.
    pub request_id: String,
    pub reply: PermissionReply,
}

/// The state of a run that was started before the server was restarted.
pub enum Adoption {
    /// Its output can be read, whether its agent is still running or has ended.
    Run(Box<dyn IAgentRun>),
    /// Nothing is left of it.
    Gone,
}

/// More output of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOutput {
    /// At least one line, in order.
    Lines(Vec<OutputLine>),
    /// More of a line that has not ended yet. `offset` is the number of bytes of output so far. An agent that prints is
    /// not silent, and its output counts against the limit, whether or not the line ever ends.
    Progress { offset: u64 },
    /// The agent has ended, and there are no more lines. Either no process of it is left, or one is
    /// [idle](RunEnd::idle).
    Ended(RunEnd),
}

/// One line of an agent's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLine {
    pub line: Line,
    /// The number of bytes of output up to the end of this line, including its line end.
    pub end_offset: u64,
}

/// A line, as far as it is available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// The whole line, without its line end (LF, or CR LF).
    Whole(Bytes),
    /// The output ended before the line did.
    Cut(Bytes),
    /// The line is longer than the limit. `head` is its beginning, `length_bytes` its length. The spool keeps all of
    /// it.
    TooLong { head: Bytes, length_bytes: u64 },
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunEnd {
    pub status: ExitStatus,
    /// The beginning and the end of the agent's standard error.
    pub stderr: String,
    /// How many processes other than the agent got a signal when the run was ended.
    pub reaped: u32,
    /// What went wrong outside the agent: for example, the connection broke, or the model API refused the request.
    pub error: Option<AgentError>,
    /// Set if a full disk, or another error of a write, may have cut the output. It explains a missing result; with a
    /// result it is ignored.
    pub disk_full: Option<String>,
    /// The agent has ended its turn, and its process is idle until the next one. The process prints nothing more for
    /// this turn. After a cancel it continues to its actual end.
    pub idle: bool,
}

/// How the agent's process ended. This is no verdict on the turn: real agents exit with 0 after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
    /// Nobody saw it, because its supervisor died.
    Lost,
    /// The process ended together with the server, and nothing is left of it.
    Gone,
    /// There is no process, or it could not be started.
    #[default]
    None,
}

/// Whether agents of a kind could be started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Probe {
    /// The program that would be run: a path or a URL. `None` if it was not found.
    pub program: Option<String>,
    /// The version, as the program reports it.
    pub version: Option<String>,
    /// What is missing.
    pub problem: Option<String>,
    /// The environment variables that can hold a key for the program, if none of them is set. Without a key, the
    /// program needs a login of its own.
    pub unset_keys: Vec<String>,
}

/// Why an agent could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    #[error("the program {program:?} was not found; install it or set its path in the configuration")]
    ProgramMissing { program: String },
    #[error("the program {program:?} cannot be executed; check its permissions")]
    NotExecutable { program: String },
    #[error(
        "the folder {cwd:?} cannot be used as the working directory; check that it exists and that the server's \
         user can enter it"
    )]
    CwdUnusable { cwd: PathBuf },
    #[error("no model is set; pass one at launch, or set model in the configuration")]
    ModelMissing,
    #[error("the environment variable {variable} is not set; set it to the API key and restart the server")]
    KeyMissing { variable: String },
    #[error(
        "cannot reach the proxied service; check that it is running and that `url` of the agent type is correct"
    )]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("cannot start the agent")]
    Io(#[from] std::io::Error),
    /// The agent runs, but its output cannot be read, or it cannot receive a cancel or an answer.
    #[error("lost the connection to the agent's supervisor")]
    Contact(#[source] std::io::Error),
}

impl RunnerError {
    /// The error as it is recorded in the agent's journal.
    pub fn to_agent_error(&self) -> AgentError {
        let (class, code) = match self {
            Self::ProgramMissing { .. } => (ErrorClass::Process, "program_missing"),
            Self::NotExecutable { .. } => (ErrorClass::Process, "program_not_executable"),
            Self::CwdUnusable { .. } => (ErrorClass::Process, "cwd_unusable"),
            Self::ModelMissing => (ErrorClass::InvalidRequest, "model_missing"),
            Self::KeyMissing { .. } => (ErrorClass::Authentication, "api_key_missing"),
            Self::Unreachable(_) => (ErrorClass::Network, "upstream_unreachable"),
            Self::Io(error) | Self::Contact(error) if is_disk_full(error) => {
                (ErrorClass::Process, "storage_full")
            }
            Self::Io(_) => (ErrorClass::Process, "spawn_failed"),
            Self::Contact(_) => (ErrorClass::Process, "run_unreadable"),
        };
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        AgentError {
            class,
            code: Some(code.to_owned()),
            text,
            retry_after_ms: None,
            // There may be space again at the next attempt.
            recoverable: class.is_recoverable() || code == "storage_full",
        }
    }
}

/// Whether the error means that there is no space left: on the disk, or in the user's quota.
pub fn is_disk_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
