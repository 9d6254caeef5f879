//! The bugs that are planted outside the application: in its limits, in its parser, and behind its ports. Without
//! `--cfg planted_bugs`, each function returns its argument.

use std::sync::Arc;

use tokenrail_application::Limits;
use tokenrail_domain::{AgentStatus, ErrorClass};
use tokenrail_domain::{Event, ListedAgent, Said, Sequence, Timestamp, Turn, TurnState};
use tokenrail_ports::planted::{Bug, is_planted};
use tokenrail_ports::{
    Activity, Append, Epoch, ExitStatus, IMessageParser, Idempotency, OutputLine, StoreError,
};

/// Longer than any simulation.
const FOR_EVER: std::time::Duration = std::time::Duration::from_hours(24);

/// The limits that the application applies. The checks use the original limits.
pub(crate) fn limits(mut limits: Limits) -> Limits {
    if is_planted(Bug::PendingUnbounded) {
        (limits.saving.pending_events, limits.saving.pending_bytes) = (usize::MAX, usize::MAX);
    }
    if is_planted(Bug::TailsUnbounded) {
        (limits.reading.tail_bytes, limits.reading.tails_bytes) = (usize::MAX / 4, usize::MAX / 4);
    }
    if is_planted(Bug::PagesUnbounded) {
        limits.reading.history_events = usize::MAX;
    }
    if is_planted(Bug::GraceTimesTen) {
        limits.run.result_grace *= 10;
        limits.run.idle_timeout *= 10;
        limits.run.stream_timeout *= 10;
    }
    if is_planted(Bug::WaitsForTheSlowest) {
        limits.saving.follower_wait = limits.run.turn_timeout;
    }
    if is_planted(Bug::CommandsWaitForTheStore) {
        limits.commands.command_timeout = FOR_EVER;
    }
    limits
}

/// A parser that treats exit code 0 as a successful result.
struct ExitCodeDecides(Box<dyn IMessageParser>);

impl IMessageParser for ExitCodeDecides {
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>) {
        self.0.parse(line, said);
    }

    fn end(&mut self, status: ExitStatus, said: &mut Vec<Said>) {
        self.0.end(status, said);
        if status == ExitStatus::Code(0) {
            said.push(Said::Close(Box::default()));
        }
    }

    fn complaint(&self, stderr: &str) -> Option<ErrorClass> {
        self.0.complaint(stderr)
    }

    fn activity(&self) -> Activity {
        self.0.activity()
    }
}

pub(crate) fn parser(parser: impl IMessageParser + 'static) -> Box<dyn IMessageParser> {
    let parser = Box::new(parser);
    if is_planted(Bug::ExitCodeDecides) { Box::new(ExitCodeDecides(parser)) } else { parser }
}

/// An append that has failed `failed` times before.
pub(crate) fn again(mut append: Append, failed: u64) -> Append {
    if is_planted(Bug::SequenceBurntOnError) {
        change(&mut append, |event| event.sequence = Sequence(event.sequence.0 + failed));
    }
    if is_planted(Bug::RetryWithNewIds) {
        change(&mut append, |event| event.at = Timestamp(event.at.0 + failed as i64));
    }
    append
}

fn change(append: &mut Append, change: impl Fn(&mut Event)) {
    let mut events = append.events.to_vec();
    events.iter_mut().for_each(change);
    append.events = Arc::from(events);
}

/// The epoch that the store checks, where `current` is the agent's.
pub(crate) fn checked_epoch(epoch: Epoch, current: Epoch) -> Epoch {
    if is_planted(Bug::FenceIgnored) { current } else { epoch }
}

/// Whether a server that starts raises the epochs.
pub(crate) fn raises_epochs() -> bool {
    !is_planted(Bug::JoinKeepsEpoch)
}

/// The result of an append, as the application sees it.
pub(crate) fn appended(done: Result<(), StoreError>) -> Result<(), StoreError> {
    match done {
        Err(StoreError::OutcomeUnknown(_)) if is_planted(Bug::UnknownTakenForSaved) => Ok(()),
        done => done,
    }
}

/// The agents that a server recovers when it starts.
pub(crate) fn to_recover(mut agents: Vec<ListedAgent>) -> Vec<ListedAgent> {
    if is_planted(Bug::RecoverForgetsQueued) {
        agents.retain(|listed| listed.agent.status == AgentStatus::Running);
    }
    agents
}

/// The open turns of an agent.
pub(crate) fn open_turns(mut turns: Vec<Turn>) -> Vec<Turn> {
    for turn in &mut turns {
        if is_planted(Bug::QueuedTurnStartsAfterCancel) && turn.state == TurnState::Queued {
            turn.stop = None;
        }
        if is_planted(Bug::LinesTwiceAfterRestart) {
            turn.spool_offset = 0;
        }
    }
    turns
}

/// Whether a cancel is saved.
pub(crate) fn saves_cancels() -> bool {
    !is_planted(Bug::CancelInMemoryOnly)
}

/// The key of a command; `None` if it has none.
pub(crate) fn key(key: Idempotency) -> Option<Idempotency> {
    let is_message = key.scope.starts_with("message:");
    (!(is_message && is_planted(Bug::KeyForgotten))).then_some(key)
}

/// Whether a run that is asked to stop does so.
pub(crate) fn heeds_cancels() -> bool {
    !is_planted(Bug::CancelIgnored)
}

/// Whether the server waits for the end of a run that it asked to stop.
pub(crate) fn is_reaped() -> bool {
    !is_planted(Bug::CancelBeforeReaping)
}

/// The lines of an adopted run whose output up to `committed` is already saved.
pub(crate) fn lines(mut lines: Vec<OutputLine>, committed: u64) -> Vec<OutputLine> {
    if is_planted(Bug::ParserNotReplayed) {
        lines.retain(|line| committed < line.end_offset);
    }
    lines
}
