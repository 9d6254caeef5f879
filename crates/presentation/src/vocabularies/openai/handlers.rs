//! One handler for each route of OpenAI's clients. The guard writes what they refuse in OpenAI's format.

pub(super) mod completions;
mod conversation;
pub(super) mod create;
mod intake;
pub(super) mod models;
mod response_turn;
pub(super) mod responses;
mod stream;
mod whole;
