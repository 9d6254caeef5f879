//! The places where the simulation plants bugs in this crate: see `cargo xtask planted-bugs`.
//!
//! Each function is a rule of the flow that calls it, and breaks that rule if its bug is planted. That is possible only
//! with `--cfg planted_bugs`; in every other build each function is a constant, or returns its argument.
//!
//! Bugs that can be planted outside this crate, behind a port or in the limits, are in the simulation itself.

use tokenrail_domain::{Sequence, Timestamp};
use tokenrail_ports::planted::is_planted;
use tokio::sync::watch;

pub(crate) use tokenrail_ports::planted::Bug;

/// Does nothing, because `action` belongs to a later step.
#[inline]
pub(crate) fn too_early(bug: Bug, action: impl FnOnce()) {
    if is_planted(bug) {
        action();
    }
}

/// The requested cursor, even if it is ahead of the head.
#[inline]
pub(crate) fn asked_cursor(cursor: Sequence, head: Sequence) -> Sequence {
    if is_planted(Bug::AheadIsNothing) { cursor.min(head) } else { cursor }
}

/// A subscription from before the store was read stays in place.
#[inline]
pub(crate) fn subscribed_before<T>(early: T, late: impl FnOnce() -> T) -> T {
    if !is_planted(Bug::SnapshotBeforeSubscribe) {
        return early;
    }
    drop(early);
    late()
}

/// A reader that lags skips nothing.
#[inline]
pub(crate) fn lagging_cursor(cursor: Sequence, head: Sequence) -> Sequence {
    let lags = cursor.0 + 8 < head.0;
    if lags && is_planted(Bug::DropOnLag) { head.before() } else { cursor }
}

/// No change is lost between the check and the wait.
pub(crate) async fn keep_wake_up<T>(changes: &mut watch::Receiver<T>) {
    if is_planted(Bug::LostWakeUp) {
        tokio::task::yield_now().await;
        changes.mark_unchanged();
    }
}

/// A disconnect cancels only if the launch asked for that.
#[inline]
pub(crate) fn cancels_on_disconnect(asked_for: bool) -> bool {
    asked_for || is_planted(Bug::DisconnectCancels)
}

/// The age of keys follows a steady time, not the system clock.
#[inline]
pub(crate) fn key_time(steady: Timestamp, clock: impl FnOnce() -> Timestamp) -> Timestamp {
    if is_planted(Bug::KeysByTheClock) { clock() } else { steady }
}

/// A command that is repeated also makes sure that its agent runs.
#[inline]
pub(crate) fn runs_known_agents() -> bool {
    !is_planted(Bug::KnownIsNotRun)
}

/// A task does not end if it was poked meanwhile.
#[inline]
pub(crate) fn poke_keeps_task() -> bool {
    !is_planted(Bug::RetireIgnoresNews)
}

/// A turn that is being stopped takes no answers.
#[inline]
pub(crate) fn stop_ends_answers() -> bool {
    !is_planted(Bug::AnswersAfterStop)
}

/// At most one client receives the confirmation that its answer counted.
#[inline]
pub(crate) fn one_answer_counts() -> bool {
    !is_planted(Bug::EachAnswerCounts)
}

/// An answer belongs to the question that it names.
#[inline]
pub(crate) fn is_of_question(named: &str, question: &str) -> bool {
    named == question || is_planted(Bug::AnswerOfAnother)
}

/// Answers wait until the output that was saved before has been read again.
#[inline]
pub(crate) fn answers_wait_for_replay() -> bool {
    !is_planted(Bug::AnswersBeforeReplay)
}

/// After a restart, the needs of agents are reported again.
#[inline]
pub(crate) fn needs_are_read_again() -> bool {
    !is_planted(Bug::NeedsNotReadAgain)
}

/// Questions are read again after a restart.
#[inline]
pub(crate) fn questions_are_read_again() -> bool {
    !is_planted(Bug::QuestionsNotReadAgain)
}

/// The offset up to which the saved events account for the output. It may lie behind what was read.
#[inline]
pub(crate) fn saved_offset(accounted: u64, read: u64) -> u64 {
    if is_planted(Bug::OffsetAheadOfEvents) { read } else { accounted }
}
