//! Bugs that are planted on purpose, to prove that the simulation finds them: see `cargo xtask planted-bugs`.
//!
//! Only a build with `--cfg planted_bugs` can plant one. In every other build [`is_planted`] is the constant `false`,
//! and the compiler removes what depends on it.

#[cfg(planted_bugs)]
use std::cell::Cell;

/// The bugs. At most one is active in a thread.
///
/// The code of `FloodGoesFirst` runs in a thread of the real store, and `passed_on` passes the active bug to it. The
/// code of all others runs in the thread of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    AnnounceBeforeCommit,
    SnapshotBeforeSubscribe,
    SequenceBurntOnError,
    RetryWithNewIds,
    UnknownTakenForSaved,
    LostWakeUp,
    DropOnLag,
    CancelBeforeReaping,
    CancelInMemoryOnly,
    DisconnectCancels,
    ParserNotReplayed,
    LinesTwiceAfterRestart,
    OffsetAheadOfEvents,
    RetireIgnoresNews,
    KeyForgotten,
    /// Keys age by the system clock, which can be changed.
    KeysByTheClock,
    /// A node knows only the keys that were used at it.
    KeyPerNode,
    /// If several clients sent the option that was chosen, each of them gets the response that its answer counted.
    EachAnswerCounts,
    KnownIsNotRun,
    RecoverForgetsQueued,
    ExitCodeDecides,
    ToldBeforeSaved,
    AnswersBeforeReplay,
    QuestionsNotReadAgain,
    /// An agent counts as waiting before its permission request is saved.
    NeedsBeforeSaved,
    /// After a restart, an agent that waits does not count as waiting.
    NeedsNotReadAgain,
    AnswersAfterStop,
    AnswerOfAnother,
    QueuedTurnStartsAfterCancel,
    CancelIgnored,
    /// A turn that has begun is withdrawn.
    WithdrawsWhatRuns,
    CommandsWaitForTheStore,
    PendingUnbounded,
    TailsUnbounded,
    PagesUnbounded,
    GraceTimesTen,
    AheadIsNothing,
    /// A packed frame continues past the end of a message with the deltas of the next one.
    PackedAcrossMessages,
    /// A batch waits for the followers of the previous one without a bound.
    WaitsForTheSlowest,
    /// Events that are held back for followers are announced only together with further ones.
    HeldUntilTheNext,
    /// The store ignores the epoch of an append.
    FenceIgnored,
    /// A server that starts keeps the epochs of its previous process.
    JoinKeepsEpoch,
    /// Of all runs that print within one pass of the watcher, only the last one is woken.
    OneOfAPassIsWoken,
    /// Large writes always go before small ones.
    FloodGoesFirst,
    /// Without hints, nothing is read of the journals that are followed.
    HintIsTruth,
    /// Nothing is looked at without a hint.
    PollOff,
    /// What is in lists is read only after hints, and a node that has missed some goes on as before.
    MissedIgnored,
    /// A node that takes an agent over keeps its epoch.
    TakeoverWithoutEpoch,
    /// A node is declared lost after one read that shows no new beat.
    LostByOneRead,
    /// The gatherer announces a page with a hole.
    GatherSkips,
    /// A node that has taken an agent over ends each turn again.
    EndTwice,
    /// A node that has taken an agent over runs the prompt that waits.
    PromptTwice,
    /// The node of an agent confirms an answer and does not hand it on.
    AnswerLostBetweenNodes,
    /// A node that others may have declared lost starts agents.
    NodeStartsOutOfTouch,
    /// Numbers that were shown, and whose events a failover has lost, are given to other events.
    ShownNumbersReused,
    /// A turn that waits at a lost node ends, although any node could run it.
    WaitingTurnEndsWithNode,
    /// A node that is back does not remove what it has of agents that were purged meanwhile.
    LeftoversForgotten,
    /// Readers at other nodes are not told that an agent is purged.
    PurgeUntoldElsewhere,
    /// An agent whose purge was asked for before its node was lost stays until the node is back.
    PurgeWaitsForLostNode,
}

impl Bug {
    pub const ALL: [Self; 59] = [
        Self::AnnounceBeforeCommit,
        Self::SnapshotBeforeSubscribe,
        Self::SequenceBurntOnError,
        Self::RetryWithNewIds,
        Self::UnknownTakenForSaved,
        Self::LostWakeUp,
        Self::DropOnLag,
        Self::CancelBeforeReaping,
        Self::CancelInMemoryOnly,
        Self::DisconnectCancels,
        Self::ParserNotReplayed,
        Self::LinesTwiceAfterRestart,
        Self::OffsetAheadOfEvents,
        Self::RetireIgnoresNews,
        Self::KeyForgotten,
        Self::KeysByTheClock,
        Self::KeyPerNode,
        Self::EachAnswerCounts,
        Self::KnownIsNotRun,
        Self::RecoverForgetsQueued,
        Self::ExitCodeDecides,
        Self::ToldBeforeSaved,
        Self::AnswersBeforeReplay,
        Self::QuestionsNotReadAgain,
        Self::NeedsBeforeSaved,
        Self::NeedsNotReadAgain,
        Self::AnswersAfterStop,
        Self::AnswerOfAnother,
        Self::QueuedTurnStartsAfterCancel,
        Self::CancelIgnored,
        Self::WithdrawsWhatRuns,
        Self::CommandsWaitForTheStore,
        Self::PendingUnbounded,
        Self::TailsUnbounded,
        Self::PagesUnbounded,
        Self::GraceTimesTen,
        Self::AheadIsNothing,
        Self::PackedAcrossMessages,
        Self::WaitsForTheSlowest,
        Self::HeldUntilTheNext,
        Self::FenceIgnored,
        Self::JoinKeepsEpoch,
        Self::OneOfAPassIsWoken,
        Self::FloodGoesFirst,
        Self::HintIsTruth,
        Self::PollOff,
        Self::MissedIgnored,
        Self::TakeoverWithoutEpoch,
        Self::LostByOneRead,
        Self::GatherSkips,
        Self::EndTwice,
        Self::PromptTwice,
        Self::AnswerLostBetweenNodes,
        Self::NodeStartsOutOfTouch,
        Self::ShownNumbersReused,
        Self::WaitingTurnEndsWithNode,
        Self::LeftoversForgotten,
        Self::PurgeUntoldElsewhere,
        Self::PurgeWaitsForLostNode,
    ];
}

#[cfg(planted_bugs)]
thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Makes a bug active in this thread.
#[cfg(planted_bugs)]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Whether a bug is active in this thread.
#[cfg(planted_bugs)]
pub fn is_planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Whether a bug is active in this thread: never, in this build.
#[cfg(not(planted_bugs))]
#[inline]
pub const fn is_planted(_: Bug) -> bool {
    false
}

/// Wraps work for another thread, so that the same bug is active there.
#[cfg(planted_bugs)]
pub fn passed_on<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let bug = PLANTED.get();
    move || {
        plant(bug);
        work()
    }
}
