//! What AG-UI's clients call.

mod answers;
mod blocks;
pub(super) mod runs;
mod shared;
pub(super) mod threads;
