//! `ClaudeParser`, as its callers see it: by cases, by recordings of real agents, and by hostile input.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "where a test cannot go on, it must panic")]

mod cases;
mod fixtures;
mod hostile;
mod pump;
mod recordings;
mod rendering;
mod whole_messages;
