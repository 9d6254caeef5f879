//! One agent's own output format.

use tokenrail_domain::{ErrorClass, Said};

use crate::ExitStatus;

/// Reads the output of one run of an agent, line by line, and keeps what it must remember between lines.
///
/// Promise:
/// * *Total.* No input makes it fail or panic. A line that makes no sense becomes an error event.
/// * *Deterministic.* The same lines give the same answers: a restarted server reads them again to get back to
///   where it was.
/// * *No content, then nothing.* A line that displays nothing gives nothing; the pump keeps its raw bytes.
/// * *Each text once.* Text that the agent prints both in pieces and whole is said once.
/// * *No success by exit code where there are results.* Only a format whose lines cannot tell the end of a turn says
///   anything in [`IMessageParser::end`], and only where the process exited with 0.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
pub trait IMessageParser: Send {
    /// Reads one line, without its line end, and appends what it says to `said`.
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>);

    /// The process has ended, and there are no more lines: appends what that alone tells. Called at most once, and not
    /// where somebody has stopped the turn.
    ///
    /// Most formats have results, and say nothing here. One that has none says the result, which exit code 0 is, and
    /// before it the end of what is open. Any other end is not the parser's to judge, so it says nothing then. Nothing
    /// else of how a process ended is in the journal: by this, reading stored lines again comes to the same events.
    fn end(&mut self, status: ExitStatus, said: &mut Vec<Said>) {
        let _ = (status, said);
    }

    /// What kind of error a process tells on standard error that has ended without a result; none where what it has
    /// written there does not tell. Only words that the format's programs are known to end with say anything.
    fn complaint(&self, stderr: &str) -> Option<ErrorClass> {
        let _ = stderr;
        None
    }

    /// What the agent is doing, as far as its output so far tells.
    fn activity(&self) -> Activity;
}

/// What the agent is doing: decides which timers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    /// A tool runs: silence is no sign of a hang.
    pub tool_running: bool,
    /// Something of the agent goes on after its result: a background task.
    pub background: bool,
    /// The open message has said all that the agent printed of it, and only waits for the word that it has ended: its
    /// silence is that of the agent, not one in the middle of a message.
    pub message_whole: bool,
}

/// What agents of a format can do, beyond what all can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is there or not, whatever the others are")]
pub struct Abilities {
    /// They speak in pieces, and not in whole messages.
    pub deltas: bool,
    /// They go on with a session: a later turn knows of the earlier ones.
    pub resume: bool,
    /// An interrupt lets them end their turn by themselves, with a result. All agents can be cancelled; of the others,
    /// that ends the process.
    pub interrupt: bool,
    /// They ask before they do what they may not do without being allowed, and wait for the answer.
    pub permissions: bool,
}
