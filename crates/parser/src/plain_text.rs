//! Plain text: any program that prints an answer and exits.
//!
//! | line | what is emitted |
//! | --- | --- |
//! | any | a delta of text: the line, after the end of the previous line |
//!
//! The whole output is one message. There is no session, there are no tools, and there is no result. The exit status
//! determines whether the program has succeeded: see [`IMessageParser::end`].

use tokenrail_domain::{EventBody, MessageOrdinal, MessageOutcome, Part, Said, TurnClose};
use tokenrail_ports::{Activity, ExitStatus, IMessageParser};

use crate::line;

/// The only message.
const MESSAGE: MessageOrdinal = MessageOrdinal(0);

/// Parses the output of one process as text. Create a new parser for each process.
#[derive(Debug, Default)]
pub struct PlainTextParser {
    /// A line was read, so the next one begins with a newline.
    begun: bool,
    text: String,
}

impl PlainTextParser {
    pub fn new() -> Self {
        Self::default()
    }
}

impl IMessageParser for PlainTextParser {
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>) {
        let line = line::text(line);
        let begun = std::mem::replace(&mut self.begun, true);
        let text = if begun { format!("\n{line}") } else { line.into_owned() };
        if text.is_empty() {
            return;
        }
        self.text.push_str(&text);
        said.push(Said::Event(EventBody::TextDelta { message: MESSAGE, part: Part(0), text }));
    }

    /// If the program exited with 0, that is its result. Any other exit is not a result: the caller, which sees the
    /// process, knows more about it.
    fn end(&mut self, status: ExitStatus, said: &mut Vec<Said>) {
        if status != ExitStatus::Code(0) {
            return;
        }
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            said.push(Said::End { message: MESSAGE, outcome: MessageOutcome::Complete, rest: Vec::new() });
        }
        said.push(Said::Close(Box::new(TurnClose { text, ..TurnClose::default() })));
    }

    fn activity(&self) -> Activity {
        Activity::default()
    }
}
