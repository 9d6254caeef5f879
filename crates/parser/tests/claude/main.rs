//! `ClaudeParser`, as its callers see it: by cases, by recordings of real agents, and by hostile input.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "where a test cannot go on, it must panic")]

mod cases;
mod fixtures;
mod hostile;
mod pump;
mod recordings;
mod rendering;
mod whole_messages;

use tokenrail_domain::Said;
use tokenrail_parser::ClaudeParser;

/// All that is said of some lines.
fn parse<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Vec<Said> {
    pump::read(&mut ClaudeParser::new(), lines)
}
