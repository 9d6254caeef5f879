//! One agent's own output format.

use tokenrail_domain::{ErrorClass, Said};

use crate::ExitStatus;

/// Parses the output of one run of an agent, line by line, and keeps the state that it needs between lines.
///
/// Promise:
/// * *Total.* No input makes it fail or panic. A malformed line becomes an error event.
/// * *Deterministic.* The same lines always have the same result. A restarted server parses them again to restore its
///   state.
/// * *No content, no output.* A line that displays nothing emits nothing. The recorder keeps its raw bytes.
/// * *Each text once.* Text that the agent prints both in pieces and whole is emitted once.
/// * *No success by exit code if there are results.* Only a format whose lines cannot show the end of a turn emits
///   anything in [`IMessageParser::end`], and only if the process exited with 0.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
pub trait IMessageParser: Send {
    /// Parses one line, without its line end, and appends what it says to `said`.
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>);

    /// Called after the last line, when the process has ended. Appends what only the exit status shows. Called at most
    /// once, and never if the turn was stopped.
    ///
    /// Most formats have results and emit nothing here. If the exit code is 0, a format without results emits the
    /// ends of open messages and then the result. After any other exit it emits nothing, because a parser cannot judge
    /// that.
    /// The journal contains nothing else about how a process ended, so that parsing stored lines again produces the
    /// same events.
    fn end(&mut self, status: ExitStatus, said: &mut Vec<Said>) {
        let _ = (status, said);
    }

    /// The class of error that standard error shows, for a process that ended without a result. `None` if it shows
    /// none. Only messages with which the programs of the format are known to end are recognized.
    fn complaint(&self, stderr: &str) -> Option<ErrorClass> {
        let _ = stderr;
        None
    }

    /// What the agent is doing, as far as its output so far shows.
    fn activity(&self) -> Activity;
}

/// What the agent is doing. Determines which timers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    /// A tool is running, or the agent waits for an answer, so silence is no sign of a hang.
    pub tool_running: bool,
    /// A background task of the agent continues after the result.
    pub background: bool,
    /// The agent has printed the whole open message, and only the report of its end is missing. Silence then counts as
    /// silence of the agent, not as silence in the middle of a message.
    pub message_whole: bool,
}

/// What the agents of a format can do, beyond what all agents can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is there or not, whatever the others are")]
pub struct Abilities {
    /// They print their messages in pieces, not only as a whole.
    pub deltas: bool,
    /// They can resume a session: a later turn knows the earlier ones.
    pub resume: bool,
    /// If interrupted, they end their turn by themselves, with a result. All agents can be cancelled. If an agent
    /// cannot be interrupted, a cancel ends its process.
    pub interrupt: bool,
    /// They ask before an action that needs a permission, and wait for the answer.
    pub permissions: bool,
    /// They accept images with a prompt.
    pub images: bool,
}
