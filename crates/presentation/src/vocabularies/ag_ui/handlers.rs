//! What AG-UI's clients call.

mod answers;
mod requests;
pub(super) mod runs;
mod streams;
mod thread;
pub(super) mod threads;
