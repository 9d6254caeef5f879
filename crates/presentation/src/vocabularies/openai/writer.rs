//! What writes a stream of either API.

use super::fold::OpenAi;
use super::pieces::Pieces;
use crate::fold::Frames;

/// Writes what a stream contains, without what its client has already.
pub(crate) trait Writer: Frames<OpenAi> {
    fn unsent(&self) -> &Unsent;

    fn unsent_mut(&mut self) -> &mut Unsent;
}

/// The part of a stream that its client does not have yet.
pub(crate) struct Unsent {
    /// What was written and not taken.
    pub(crate) out: Pieces,
    /// The first block that the client does not have.
    from: u64,
    /// The number of the next block.
    next: u64,
}

impl Unsent {
    /// The blocks with the number `from` and greater.
    pub(super) fn new(from: u64) -> Self {
        Self { out: Pieces::default(), from, next: 0 }
    }

    /// The number of the next block.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Counts the block `number`. Returns whether the client does not have it yet.
    pub(super) fn count(&mut self, number: u64) -> bool {
        self.next = number + 1;
        self.from <= number
    }

    /// Whether everything that was written was taken. Otherwise, what was taken may end within a block.
    pub(crate) fn is_taken(&self) -> bool {
        self.out.is_empty()
    }

    /// Whether the client claims to have more than there was so far.
    pub(crate) fn is_ahead(&self) -> bool {
        self.next < self.from
    }
}
