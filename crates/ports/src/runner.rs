//! A way to run an agent.

use std::io::ErrorKind;
use std::path::PathBuf;

use async_trait::async_trait;
use bytes::Bytes;
use tokenrail_domain::{AgentError, AgentId, ErrorClass, JsonText, SessionId, TurnNumber};

/// Runs one kind of agent, one turn at a time.
///
/// Promise: the agent's output reaches [`IAgentRun::next`] complete, in order and byte for byte, however slowly it is
/// read. The agent never waits for its reader.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IAgentRunner: Send + Sync {
    /// Starts the agent on one prompt: in a new process, or in the one that is idle since an earlier turn of the agent.
    async fn start(&self, order: &TurnOrder) -> Result<Box<dyn IAgentRun>, RunnerError>;

    /// Takes over a turn that was started before the server was restarted. Its output comes again from the first byte.
    /// The journal has `committed` bytes of it already, which need no waiting for.
    async fn adopt(&self, order: &TurnOrder, committed: u64) -> Result<Adoption, RunnerError>;

    /// Whether agents of this kind can be started now, and which program would be run.
    async fn probe(&self) -> Probe;

    /// Whether the agent knows earlier turns only from [`TurnOrder::history`].
    fn wants_history(&self) -> bool {
        false
    }

    /// Ends the idle process of an agent, if it has one ([`RunEnd::rests`]), and waits for its end. A process that runs
    /// a turn is not touched.
    async fn dismiss(&self, agent: AgentId) {
        // Agents of most kinds end with their turn.
        let _ = agent;
    }

    /// The same for all agents: no further turn begins.
    async fn dismiss_all(&self) {}
}

/// One turn of an agent, running.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IAgentRun: Send {
    /// Waits for more output. After [`RunOutput::Ended`] it must not be asked again, but
    /// of a process that rests and is then cancelled.
    ///
    /// May be dropped at any await without losing output.
    async fn next(&mut self) -> Result<RunOutput, RunnerError>;

    /// Asks the agent to stop: politely, then, after the graces of the configuration, by force. Returns at once;
    /// [`IAgentRun::next`] goes on and gives [`RunOutput::Ended`] when no process of the run is left. Calling it
    /// again changes nothing. After an error it may be called again.
    async fn cancel(&mut self) -> Result<(), RunnerError>;

    /// Hands on an answer to a question of the agent. That the agent has it is told by its output, and the first
    /// answer counts: this one may come too late all the same.
    async fn answer(&mut self, answer: &PermissionAnswer) -> Result<(), RunnerError> {
        let _ = answer;
        // Agents of most kinds ask nothing.
        Err(std::io::Error::from(ErrorKind::Unsupported).into())
    }

    /// Gives back the room that the run's output takes on a full disk: the journal may need it for what has been read.
    /// What has not been read is lost then, and [`RunEnd::error`] says how much that is. `waited` says that the journal
    /// has waited for room as long as it may; without it, only a run that a full disk has ended gives its room back.
    async fn give_back(&mut self, waited: bool) -> Result<SpoolRoom, RunnerError> {
        let _ = waited;
        Ok(SpoolRoom::None)
    }

    /// Leaves the run when all its output is in the journal. What it kept on disk is removed. If its process is idle
    /// ([`RunEnd::rests`]), the process and its files stay for the agent's next turn.
    async fn leave(&mut self);
}

/// The room that the output of a run takes on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpoolRoom {
    /// The run takes none.
    None,
    /// It has been given back.
    GivenBack,
    /// It has not, and cannot be while the run goes on.
    Held,
}

/// What to run.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnOrder {
    pub agent: AgentId,
    pub turn: TurnNumber,
    pub prompt: String,
    pub model: Option<String>,
    /// The folder to work in; absolute, and it exists.
    pub cwd: PathBuf,
    /// The session to resume.
    pub session: Option<SessionId>,
    /// The launch's options: a JSON object.
    pub options: Option<JsonText>,
    /// The turns before this one, the oldest first; none unless [`IAgentRunner::wants_history`], and none of a run that
    /// is adopted, for it has been told.
    pub history: Vec<PastTurn>,
}

/// A turn that has ended, as whoever reads the conversation sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PastTurn {
    pub prompt: String,
    /// What the agent has said, also where it did not come to an end; empty where it has said nothing.
    pub answer: String,
}

impl PastTurn {
    /// How many bytes of text it holds.
    pub fn text_bytes(&self) -> usize {
        self.prompt.len() + self.answer.len()
    }
}

/// An answer to a question of the agent: whether it may do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionAnswer {
    /// Which question.
    pub question: String,
    /// One of the options that the agent has offered; none where none of them is chosen.
    pub option: Option<String>,
}

/// What became of a turn that an earlier life of this server started.
pub enum Adoption {
    /// Its output can be had: of an agent that still runs, or the rest of one that has ended meanwhile.
    Run(Box<dyn IAgentRun>),
    /// Nothing is left of it.
    Gone,
}

/// More of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOutput {
    /// At least one line, in order.
    Lines(Vec<OutputLine>),
    /// More of a line that has not ended yet: how many bytes of output there are by now. An agent that prints is not
    /// silent, and what it prints counts, whether or not it ever ends its line.
    Progress { offset: u64 },
    /// The agent has ended, no process of it is left unless it [rests](RunEnd::rests), and there are no more lines.
    Ended(RunEnd),
}

/// One line of an agent's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLine {
    pub line: Line,
    /// How many bytes of output there are up to the end of this line, its line end included.
    pub end_offset: u64,
}

/// What there is of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// All of it, without the line end (LF, or CR LF).
    Whole(Bytes),
    /// The output ended before the line did.
    Cut(Bytes),
    /// It is longer than the limit: its beginning, and its length in bytes. The spool keeps all of it.
    TooLong { head: Bytes, length_bytes: u64 },
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunEnd {
    pub status: ExitStatus,
    /// The last part of what the agent printed on standard error.
    pub stderr: String,
    /// How many processes of the run outlived the agent and were killed.
    pub reaped: u32,
    /// What went wrong outside the agent: the connection broke, the upstream refused.
    pub error: Option<AgentError>,
    /// Why nothing more could be written where its output is kept, if that was so when it ended: then the disk may be
    /// why it said no more. Where it has given its result, that is of no account.
    pub disk_full: Option<String>,
    /// The agent has ended its turn, and its process waits for another one: it prints nothing more for this one, and a
    /// cancel makes it go on to its real end.
    pub rests: bool,
}

/// How the agent's process ended. That is no verdict on the turn: real agents exit with 0 after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
    /// Nobody was there to see it: its supervisor has died.
    Lost,
    /// It ended with the server, and nothing is left of it.
    Gone,
    /// It is no process.
    #[default]
    None,
}

/// Whether agents of a kind could be started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Probe {
    /// What would be run: a path, a URL; none where it was not found.
    pub program: Option<String>,
    /// What the program says of its version.
    pub version: Option<String>,
    /// What is missing.
    pub problem: Option<String>,
    /// Variables that would hold a key for it, and that are not set: without one it needs a login of its own.
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
        "the folder {cwd:?} cannot be used as the working directory; check that it exists and that the server's user can enter it"
    )]
    CwdUnusable { cwd: PathBuf },
    #[error("no model is set; pass one at launch, or set model in the configuration")]
    ModelMissing,
    #[error("the environment variable {variable} is not set; set it to the API key and restart the server")]
    KeyMissing { variable: String },
    #[error("cannot reach the proxied service; check that it is running and that url is right")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the run folder cannot be used")]
    Io(#[from] std::io::Error),
}

impl RunnerError {
    /// The error as the reader of the agent's journal is told.
    pub fn to_agent_error(&self) -> AgentError {
        let (class, code) = match self {
            Self::ProgramMissing { .. } => (ErrorClass::Process, "program_missing"),
            Self::NotExecutable { .. } => (ErrorClass::Process, "program_not_executable"),
            Self::CwdUnusable { .. } => (ErrorClass::Process, "cwd_unusable"),
            Self::ModelMissing => (ErrorClass::InvalidRequest, "model_missing"),
            Self::KeyMissing { .. } => (ErrorClass::Authentication, "api_key_missing"),
            Self::Unreachable(_) => (ErrorClass::Network, "upstream_unreachable"),
            Self::Io(error) if is_disk_full(error) => (ErrorClass::Process, "storage_full"),
            Self::Io(_) => (ErrorClass::Process, "spawn_failed"),
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
            // There may be room again the next time.
            recoverable: class.is_recoverable() || code == "storage_full",
        }
    }
}

/// Whether it is for want of room: on the disk, or of what this user may take of it.
pub fn is_disk_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
