//! The turns of a run in one protocol, without I/O.

use tokenrail_domain::{Accepts, ErrorClass};
use tokenrail_ports::{AddedLine, Choosable, FailureLine};

use super::prompt::EncodedPrompt;

use serde::Serialize;
use serde_json::value::RawValue;

/// The turns of a run in one protocol: lines of the program in, messages for it out.
pub(super) trait Conversation {
    /// Begins the first turn, or the handshake before it. The protocol's `line` begins the turn then, after the last
    /// answer of the handshake.
    fn open(&mut self, out: &mut Outbox);

    /// Handles one line of the program, without its line end. A line that makes no sense is ignored here: the parser
    /// reads the same line and decides what it means.
    fn line(&mut self, line: &[u8], out: &mut Outbox);

    /// The program has printed a line that is too long to be parsed. The parser reports it.
    fn line_too_long(&mut self, out: &mut Outbox) {
        let _ = out;
    }

    /// Sends the outcome of a permission request to the program. `key` is the key of the request.
    fn answer(&mut self, key: &str, choice: &Choice, out: &mut Outbox);

    /// Asks the program to end its turn. Its permission requests are settled before this call.
    fn cancel(&mut self, out: &mut Outbox);

    /// Begins a further turn. Called only if the conversation has set [`Outbox::idle`].
    fn further_turn(&mut self, prompt: EncodedPrompt, out: &mut Outbox) {
        let _ = prompt;
        out.over = true;
    }
}

/// The outcome of a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// One of the options that were offered.
    Option(String),
    /// An option that rejects, with a note to the agent. Only if the request accepts a note.
    OptionWithNote { option: String, note: String },
    /// Options that allow, and a text in the user's own words: together more than one option. Only if the request
    /// accepts that.
    Composed { options: Vec<String>, text: Option<String> },
    /// No option was chosen.
    Dismissed,
    /// The whole turn is being cancelled.
    TurnCancelled,
}

/// A permission request of the program.
#[derive(Debug)]
pub(super) struct NewRequest {
    /// Identifies the request within the conversation.
    pub(super) key: String,
    pub(super) tool_call_id: Option<String>,
    pub(super) tool_name: String,
    pub(super) input: Box<RawValue>,
    pub(super) options: Vec<Choosable>,
    /// What the program can receive besides one option.
    pub(super) accepts: Accepts,
}

/// What a conversation wants its process to do.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Lines for the program's standard input.
    pub(super) to_program: Vec<u8>,
    /// Lines for the spool.
    pub(super) added: Vec<AddedLine>,
    pub(super) asked: Vec<NewRequest>,
    /// The keys of permission requests that the program has withdrawn.
    pub(super) withdrawn: Vec<String>,
    /// The turn has ended, and the program can take another one.
    pub(super) idle: bool,
    /// The conversation has ended: there is nothing more to say.
    pub(super) over: bool,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        let Self { to_program, added, asked, withdrawn, idle, over } = self;
        !over
            && !idle
            && to_program.is_empty()
            && added.is_empty()
            && asked.is_empty()
            && withdrawn.is_empty()
    }

    /// Adds a message for the program.
    pub(super) fn say(&mut self, message: &impl Serialize) {
        // Writing cannot fail: messages consist of text and of values that are already JSON.
        if serde_json::to_writer(&mut self.to_program, message).is_ok() {
            self.to_program.push(b'\n');
        }
    }

    /// Ends the conversation with an error, which a reader of the journal sees.
    pub(super) fn fail(&mut self, class: ErrorClass, code: &'static str, text: String) {
        self.added.push(AddedLine::Error(FailureLine::new(class, code, text)));
        self.over = true;
    }
}
