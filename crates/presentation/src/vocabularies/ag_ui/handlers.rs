//! What AG-UI's clients call.

mod answers;
mod requests;
pub(super) mod runs;
mod shared;
mod streams;
pub(super) mod threads;
