//! `ClaudeParser` from the outside: cases, recordings of real agents, and hostile input.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "where a test cannot go on, it must panic")]

mod cases;
mod fixtures;
mod hostile;
mod pump;
mod recorded;
mod recording;
mod recordings;
mod rendering;
mod whole_messages;

use tokenrail_domain::Said;
use tokenrail_parser::ClaudeParser;

/// Everything that the parser says about some lines.
fn parse<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Vec<Said> {
    pump::read(&mut ClaudeParser::new(), lines)
}
