//! Bugs that are put in on purpose, to prove that the simulation finds them: see `cargo xtask planted-bugs`.
//! Compiled only with `--cfg planted_bugs`, which no product build has.

use std::cell::Cell;

/// One bug each; exactly one is active in a thread, or none.
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
    /// Keys grow old with the clock, which may be set.
    KeysByTheClock,
    /// Each client that has given the answer that counts is told that it was his.
    EachAnswerCounts,
    KnownIsNotRun,
    RecoverForgetsQueued,
    ExitCodeDecides,
    ToldBeforeSaved,
    AnswersBeforeReplay,
    QuestionsNotReadAgain,
    AnswersAfterStop,
    AnswerOfAnother,
    QueuedTurnStartsAfterCancel,
    CancelIgnored,
    CommandsWaitForTheStore,
    PendingUnbounded,
    TailsUnbounded,
    PagesUnbounded,
    GraceTimesTen,
    AheadIsNothing,
    /// A packed frame goes on after the end of a message, with the deltas of the next one.
    PackedAcrossMessages,
}

impl Bug {
    pub const ALL: [Self; 34] = [
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
        Self::EachAnswerCounts,
        Self::KnownIsNotRun,
        Self::RecoverForgetsQueued,
        Self::ExitCodeDecides,
        Self::ToldBeforeSaved,
        Self::AnswersBeforeReplay,
        Self::QuestionsNotReadAgain,
        Self::AnswersAfterStop,
        Self::AnswerOfAnother,
        Self::QueuedTurnStartsAfterCancel,
        Self::CancelIgnored,
        Self::CommandsWaitForTheStore,
        Self::PendingUnbounded,
        Self::TailsUnbounded,
        Self::PagesUnbounded,
        Self::GraceTimesTen,
        Self::AheadIsNothing,
        Self::PackedAcrossMessages,
    ];
}

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Makes a bug active in this thread.
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

pub fn is_planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}
