//! JSON Lines of any program. The configuration maps the fields.
//!
//! | line | what is emitted |
//! | --- | --- |
//! | any, with a new `session` | [`Said::Session`] |
//! | of a kind in `deltas` | a delta of text |
//! | of a kind in `reasoning` | a delta of reasoning |
//! | of a kind in `messages` | a complete message; after deltas, what they lack and their end |
//! | of a kind in `tool_calls` | a tool call; before it the end of an open message |
//! | of a kind in `tool_results` | a tool result |
//! | of a kind in `errors` | error |
//! | of a kind in `results` | [`Said::Close`]; before it the end of an open message, the only message, or an error |
//! | an object of any other kind | notice named after the kind |
//! | an object without a kind | decided by the first of these fields: `result`, `error`, `text` as a delta |
//! | anything else | error `line_invalid` |
//!
//! For a program without results, the exit status determines whether it has succeeded: see [`IMessageParser::end`].

mod mapping;
mod path;

use std::borrow::Cow;

use tokenrail_domain::{
    AgentError, ContentBlock, ErrorClass, JsonText, Said, ToolCall, ToolResult, TurnClose,
};
use tokenrail_ports::{Activity, ExitStatus, IMessageParser};

pub use self::mapping::JsonlMapping;
use self::mapping::{Kind, is_failure};
use self::path::Fields;
use crate::conversation::Conversation;
use crate::errors;
use crate::fields::{self, Raw, raw_structs};
use crate::line::{self, notice};
use crate::open_message::{OpenMessage, PartKind};

/// The part of reasoning in a message: before the text.
const REASONING_PART: u32 = 0;
const TEXT_PART: u32 = 1;

/// Parses the output of one process as JSON Lines. Create a new parser for each process.
///
/// The table at the top of the source file shows what each line becomes.
#[derive(Debug)]
pub struct JsonlParser {
    mapping: JsonlMapping,
    conversation: Conversation,
    open: Option<OpenMessage>,
}

raw_structs! {
    /// An error that is an object.
    struct Failure { message }
}

impl JsonlParser {
    pub fn new(mapping: JsonlMapping) -> Self {
        Self { mapping, conversation: Conversation::default(), open: None }
    }
}

impl IMessageParser for JsonlParser {
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>) {
        let text = line::text(line);
        let text = line::trimmed(&text);
        let Some(line) = line::object::<Fields<'_>>(text, said) else { return };
        let mapping = &self.mapping;
        self.conversation.session(as_text(line.at(&mapping.session)), said);
        match mapping.kind_of(&line) {
            Kind::Delta => self.delta(TEXT_PART, PartKind::Text, &line, said),
            Kind::Reasoning => self.delta(REASONING_PART, PartKind::Reasoning, &line, said),
            Kind::Message => self.message(&line, said),
            Kind::ToolCall => self.tool_call(&line, said),
            Kind::ToolResult => self.tool_result(&line, said),
            Kind::Error => {
                let error = error_of(line.at(&mapping.error).or(line.at(&mapping.text)));
                self.conversation.tell(error, said);
            }
            Kind::Result => self.result(&line, said),
            Kind::Other(kind) => said.push(notice(&kind, JsonText::new_unchecked(text))),
        }
    }

    /// If the program has no results and exited with 0, that is its result. Any other exit is not a result: the caller,
    /// which sees the process, knows more about it.
    fn end(&mut self, status: ExitStatus, said: &mut Vec<Said>) {
        if status != ExitStatus::Code(0) || !self.mapping.results.is_empty() {
            return;
        }
        // A line without a kind may have been a result.
        if !self.conversation.is_closed() {
            self.conversation.end(&mut self.open, said);
            self.conversation.close(TurnClose::default(), said);
        }
    }

    fn activity(&self) -> Activity {
        self.conversation.activity()
    }
}

impl JsonlParser {
    fn delta(&mut self, part: u32, piece: PartKind, line: &Fields<'_>, said: &mut Vec<Said>) {
        let Some(text) = line.at(&self.mapping.text) else { return };
        let open = self.open.get_or_insert_with(|| OpenMessage::new(None));
        open.say(part, piece, text.get(), &mut self.conversation.emitter(said));
    }

    fn message(&mut self, line: &Fields<'_>, said: &mut Vec<Said>) {
        let text = fields::text(line.at(&self.mapping.text)).unwrap_or_default().into_owned();
        let block = ContentBlock::Text(text.clone());
        match &mut self.open {
            Some(open) => {
                open.repeat(block, &mut self.conversation.emitter(said));
                self.conversation.end(&mut self.open, said);
                self.conversation.heard(text);
            }
            None => self.conversation.whole(vec![block], said),
        }
    }

    fn tool_call(&mut self, line: &Fields<'_>, said: &mut Vec<Said>) {
        self.conversation.end(&mut self.open, said);
        let mapping = &self.mapping;
        let call = ToolCall {
            call: owned(line.at(&mapping.call)),
            tool: owned(line.at(&mapping.tool)),
            input: fields::tool_input(line.at(&mapping.input)),
            parent_call: None,
        };
        self.conversation.call(call, said);
    }

    fn tool_result(&mut self, line: &Fields<'_>, said: &mut Vec<Said>) {
        self.conversation.end(&mut self.open, said);
        let mapping = &self.mapping;
        let result = ToolResult {
            call: owned(line.at(&mapping.call)),
            content: fields::as_given(line.at(&mapping.output)),
            is_error: line.at(&mapping.error).is_some_and(is_failure),
            parent_call: None,
            patch: None,
        };
        self.conversation.returned(result, said);
    }

    fn result(&mut self, line: &Fields<'_>, said: &mut Vec<Said>) {
        let mapping = &self.mapping;
        let result = fields::text(line.at(&mapping.result));
        let usage = fields::object(line.at(&mapping.usage));
        let failure = line.at(&mapping.error).filter(|error| is_failure(error));
        let error = failure.map(|error| match (fields::is_true(Some(error)), &result) {
            (false, _) => error_of(Some(error)),
            (true, Some(text)) => errors::told(text),
            (true, None) => self.conversation.last_error(),
        });
        let text = owned(line.at(&mapping.result));
        if error.is_some() {
            self.conversation.break_off(&mut self.open, said);
        } else {
            self.conversation.begin_turn(said);
            self.conversation.end(&mut self.open, said);
            if !self.conversation.has_spoken() {
                self.conversation.whole(vec![ContentBlock::Text(text.clone())], said);
            }
        }
        self.conversation.close(TurnClose { error, text, usage, ..TurnClose::default() }, said);
    }
}

/// Reads an error. It is a text, or an object with a `message`. Anything else is shown unchanged.
fn error_of(error: Raw<'_>) -> AgentError {
    match (fields::text(error), error) {
        (Some(text), _) => errors::told(&text),
        (None, Some(given)) => {
            let failure: Failure<'_> = fields::read(error);
            let error = errors::told(given.get());
            let text = fields::text(failure.message).map_or(error.text, Cow::into_owned);
            AgentError { text, ..error }
        }
        (None, None) => {
            let text = "the agent reported an error without details".to_owned();
            errors::agent_error(ErrorClass::Unknown, None, text)
        }
    }
}

/// A string without its quotes. A number or another value in its JSON spelling.
fn as_text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    fields::text(raw).or_else(|| raw.map(|raw| raw.get().into()))
}

fn owned(raw: Raw<'_>) -> String {
    as_text(raw).unwrap_or_default().into_owned()
}
