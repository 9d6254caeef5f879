//! A spool may serve several runs: the first turn of a process, and each further one.

use super::{BecomesIdle, NextLook};
use crate::{FramerLimits, LineFramer};

/// The part of a spool that belongs to one run, and how far it has been read. Everything else in a
/// [`ProcessRun`](super::ProcessRun) belongs to the process, which may serve further runs.
pub(super) struct SpoolPart {
    /// How many bytes of the spool belong to earlier runs. All other offsets are counted from there.
    pub(super) begins: u64,
    /// How many bytes of standard error belong to earlier runs.
    pub(super) stderr_begins: u64,
    /// How many bytes of the spool the framer was fed.
    pub(super) offset: u64,
    /// How many bytes were saved before the server was restarted.
    pub(super) committed: u64,
    pub(super) framer: LineFramer,
    pub(super) next_look: NextLook,
    /// The framer has returned everything, including the unfinished last line.
    pub(super) finished: bool,
    pub(super) idle: BecomesIdle,
}

impl SpoolPart {
    /// A part of which nothing has been read. It begins at these offsets.
    pub(super) fn beginning_at(begins: u64, stderr_begins: u64, framer: FramerLimits) -> Self {
        Self {
            begins,
            stderr_begins,
            offset: 0,
            committed: 0,
            framer: LineFramer::new(framer),
            next_look: NextLook::Now,
            finished: false,
            idle: BecomesIdle::Never,
        }
    }

    /// How far the spool has been read, counted from its first byte.
    pub(super) fn read_to(&self) -> u64 {
        self.begins + self.offset
    }
}
