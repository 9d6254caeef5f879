//! What writes a stream of either API.

use super::fold::OpenAi;
use super::pieces::Pieces;
use crate::fold::Frames;

/// Writes what a stream contains, without what its client has already.
pub(crate) trait Writer: Frames<OpenAi> {
    /// What was written and not taken.
    fn pieces(&mut self) -> &mut Pieces;

    /// Whether all of that was taken. Otherwise, what was taken may end within a block.
    fn is_taken(&self) -> bool;

    /// Whether the client claims to have more than there was so far.
    fn is_ahead(&self) -> bool;
}
