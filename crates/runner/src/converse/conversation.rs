//! The turns of a run in one protocol, without I/O.

use tokenrail_domain::ErrorClass;
use tokenrail_ports::{Choosable, OwnFailure, OwnLine};

use serde::Serialize;
use serde_json::value::RawValue;

/// The turns of a run in one protocol: lines of the program in, messages for it out.
pub(super) trait Conversation {
    /// Says what begins the turn.
    fn open(&mut self, out: &mut Outbox);

    /// Takes one line of the program, without its line end. What makes no sense is not for the conversation to judge:
    /// the parser reads the same line.
    fn line(&mut self, line: &[u8], out: &mut Outbox);

    /// Tells the program how its question was settled. `question` is its key.
    fn answer(&mut self, question: &str, choice: &Choice, out: &mut Outbox);

    /// Asks the program to end its turn. Its questions were settled before.
    fn cancel(&mut self, out: &mut Outbox);

    /// Begins a further turn. Asked only of a conversation that has said [`Outbox::rests`].
    fn further_turn(&mut self, prompt: String, out: &mut Outbox) {
        let _ = prompt;
        out.over = true;
    }
}

/// How a question was settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// One of the options that were offered.
    Option(String),
    /// Whoever was asked has chosen none.
    Dismissed,
    /// The whole turn is being cancelled.
    TurnCancelled,
}

/// A question of the program.
#[derive(Debug)]
pub(super) struct Question {
    /// By which the conversation knows it again.
    pub(super) key: String,
    pub(super) tool_call_id: Option<String>,
    pub(super) tool_name: String,
    pub(super) input: Box<RawValue>,
    pub(super) options: Vec<Choosable>,
}

/// What a conversation wants done.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Lines for the program's standard input.
    pub(super) to_program: Vec<u8>,
    /// Lines for the spool.
    pub(super) own: Vec<OwnLine>,
    pub(super) asked: Vec<Question>,
    /// The keys of questions that the program has taken back.
    pub(super) withdrawn: Vec<String>,
    /// The turn has ended, and the program could be asked for another one.
    pub(super) rests: bool,
    /// The turn has ended: there is nothing more to say.
    pub(super) over: bool,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        let Self { to_program, own, asked, withdrawn, rests, over } = self;
        !over && !rests && to_program.is_empty() && own.is_empty() && asked.is_empty() && withdrawn.is_empty()
    }

    /// Says something to the program.
    pub(super) fn say(&mut self, message: &impl Serialize) {
        // It is made of texts and values that are JSON already.
        if serde_json::to_writer(&mut self.to_program, message).is_ok() {
            self.to_program.push(b'\n');
        }
    }

    /// The turn cannot go on: the reader of the journal is told why.
    pub(super) fn fail(&mut self, class: ErrorClass, code: &'static str, text: String) {
        self.own.push(OwnLine::Error(OwnFailure::new(class, code, text)));
        self.over = true;
    }
}
