//! The stream-json of Gemini CLI: `gemini -p … -o stream-json`.
//!
//! Messages arrive only in pieces: there are no ids, no end markers and no whole messages. A message ends when the
//! agent does something else.
//!
//! | line | what is emitted |
//! | --- | --- |
//! | `init` | [`Said::Session`], and a notice |
//! | `message` of the assistant, `delta` | a delta of text |
//! | `message` of the assistant, whole | a complete message |
//! | `message` of the user | nothing: the server has recorded the user's message |
//! | `tool_use` | a tool call; before it [`Said::End`] of the message |
//! | `tool_result` | a tool result |
//! | `error` with `severity` `error` | error |
//! | other `error` | notice `warning` |
//! | `result` | [`Said::Close`]; before it the end of the message, or an error |
//! | an object of any other type | notice named after the type |
//! | anything else | error `line_invalid` |
//!
//! A message that is open when the turn fails stays open, because its stream was cut.
//!
//! Exit codes add nothing to the lines: an interrupted run exits with 0 too, and a failed request exits with its HTTP
//! status modulo 256. Without a `result` line the run has no result.

use tokenrail_domain::{ContentBlock, ErrorClass, JsonText, Said, ToolCall, ToolResult, TurnClose};
use tokenrail_ports::{Activity, IMessageParser};

use crate::conversation::Conversation;
use crate::errors;
use crate::fields::{self, raw_structs};
use crate::line::{self, notice};
use crate::open_message::{OpenMessage, PartKind};

/// Parses the output of one process of Gemini CLI. Create a new parser for each process.
///
/// The table at the top of the source file shows what each line becomes.
#[derive(Debug, Default)]
pub struct GeminiParser {
    conversation: Conversation,
    open: Option<OpenMessage>,
}

raw_structs! {
    /// A line of any type.
    struct GeminiLine {
        kind = "type", session_id, role, content, delta, tool_name, tool_id, parameters, status, output,
        error, severity, message, stats,
    }

    /// Why a tool call or a turn failed.
    struct Failure { message }
}

impl GeminiParser {
    pub fn new() -> Self {
        Self::default()
    }
}

impl IMessageParser for GeminiParser {
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>) {
        let text = line::text(line);
        let text = line::trimmed(&text);
        let Some(line) = line::object::<GeminiLine<'_>>(text, said) else { return };
        self.conversation.session(fields::text(line.session_id), said);
        let kind = fields::text(line.kind).unwrap_or("untyped".into());
        match &*kind {
            "message" => self.message(&line, text, said),
            "tool_use" => self.tool_use(&line, said),
            "tool_result" => self.tool_result(&line, said),
            "error" => self.error(&line, text, said),
            "result" => self.result(&line, said),
            _ => said.push(notice(&kind, JsonText::new_unchecked(text))),
        }
    }

    fn complaint(&self, stderr: &str) -> Option<ErrorClass> {
        errors::of_complaint(stderr)
    }

    fn activity(&self) -> Activity {
        self.conversation.activity()
    }
}

impl GeminiParser {
    fn message(&mut self, line: &GeminiLine<'_>, text: &str, said: &mut Vec<Said>) {
        match (fields::text(line.role).as_deref(), line.content) {
            (Some("assistant"), Some(content)) if fields::is_true(line.delta) => {
                let open = self.open.get_or_insert_with(|| OpenMessage::new(None));
                open.say(0, PartKind::Text, content.get(), &mut self.conversation.emitter(said));
            }
            (Some("assistant"), content) => {
                self.conversation.end(&mut self.open, said);
                let whole = fields::text(content).unwrap_or_default().into_owned();
                self.conversation.whole(vec![ContentBlock::Text(whole)], said);
            }
            (Some("user"), _) => self.conversation.end(&mut self.open, said),
            _ => said.push(notice("message", JsonText::new_unchecked(text))),
        }
    }

    fn tool_use(&mut self, line: &GeminiLine<'_>, said: &mut Vec<Said>) {
        self.conversation.end(&mut self.open, said);
        let call = ToolCall {
            call: fields::text(line.tool_id).unwrap_or_default().into_owned(),
            tool: fields::text(line.tool_name).unwrap_or_default().into_owned(),
            input: fields::tool_input(line.parameters),
            parent_call: None,
        };
        self.conversation.call(call, said);
    }

    fn tool_result(&mut self, line: &GeminiLine<'_>, said: &mut Vec<Said>) {
        self.conversation.end(&mut self.open, said);
        let failure: Failure<'_> = fields::read(line.error);
        let result = ToolResult {
            call: fields::text(line.tool_id).unwrap_or_default().into_owned(),
            content: fields::as_given(line.output.or(failure.message)),
            is_error: fields::text(line.status).as_deref() == Some("error"),
            parent_call: None,
            patch: None,
        };
        self.conversation.returned(result, said);
    }

    /// Handles an error or a warning. A warning ends nothing. Whether an error ends the turn is decided by the result.
    fn error(&mut self, line: &GeminiLine<'_>, text: &str, said: &mut Vec<Said>) {
        match (fields::text(line.severity).as_deref(), fields::text(line.message)) {
            (Some("error"), Some(message)) => self.conversation.tell(errors::told(&message), said),
            _ => said.push(notice("warning", JsonText::new_unchecked(text))),
        }
    }

    fn result(&mut self, line: &GeminiLine<'_>, said: &mut Vec<Said>) {
        let failed = fields::text(line.status).as_deref() == Some("error") || line.error.is_some();
        let failure: Failure<'_> = fields::read(line.error);
        let error = failed.then(|| match fields::text(failure.message) {
            Some(message) => errors::told(&message),
            None => self.conversation.last_error(),
        });
        if failed {
            self.conversation.break_off(&mut self.open, said);
        } else {
            self.conversation.end(&mut self.open, said);
        }
        let usage = fields::object(line.stats);
        self.conversation.close(TurnClose { error, usage, ..TurnClose::default() }, said);
    }
}
