//! The conversation state that most parsers share. `ClaudeParser` keeps its own, because its program prints more: the
//! text of a turn in the result, and which work goes on in the background. `PlainTextParser` has neither sessions nor
//! turns.

use std::collections::HashSet;

use tokenrail_domain::{
    AgentError, ContentBlock, ErrorClass, EventBody, MessageOutcome, Said, ToolCall, ToolResult, TurnClose,
};
use tokenrail_ports::Activity;

use crate::emitter::Emitter;
use crate::errors;
use crate::open_message::OpenMessage;

/// The session, and the current turn of its agent.
///
/// A message after the end of a turn begins the next turn. Tool results, errors and notices alone do not: they belong
/// to the previous turn.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    session: String,
    /// The ordinal of the turn's next message.
    next_message: u32,
    /// The end of the turn was emitted.
    closed: bool,
    /// The turn's last error.
    told: Option<AgentError>,
    /// Tool calls without a result.
    calls: HashSet<String>,
    /// The text of the turn's last message that contains text.
    last_text: String,
}

impl Conversation {
    /// Emits the session id if it differs from the last one emitted.
    pub(crate) fn session(&mut self, session: Option<impl AsRef<str>>, said: &mut Vec<Said>) {
        let Some(session) = session else { return };
        let session = session.as_ref();
        if !session.is_empty() && session != self.session {
            session.clone_into(&mut self.session);
            said.push(Said::Session(session.to_owned()));
        }
    }

    /// The session id that was emitted last. Empty if there is none.
    pub(crate) fn session_id(&self) -> &str {
        &self.session
    }

    /// Begins the next turn if the last one has ended.
    pub(crate) fn begin_turn(&mut self, said: &mut Vec<Said>) {
        if std::mem::take(&mut self.closed) {
            self.next_message = 0;
            self.told = None;
            self.last_text.clear();
            said.push(Said::OwnTurn);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// An [`Emitter`] for a message that emits a delta or ends.
    pub(crate) fn emitter<'a>(&'a mut self, said: &'a mut Vec<Said>) -> Emitter<'a> {
        self.begin_turn(said);
        Emitter { said, next: &mut self.next_message }
    }

    /// Emits a message that arrived whole.
    pub(crate) fn whole(&mut self, blocks: Vec<ContentBlock>, said: &mut Vec<Said>) {
        self.heard(blocks.iter().filter_map(ContentBlock::as_text).collect());
        self.emitter(said).whole(blocks, MessageOutcome::Complete, None);
    }

    /// Stores the text of a message that was emitted in pieces. The last such text is the turn's final text.
    pub(crate) fn heard(&mut self, text: String) {
        if !text.is_empty() {
            self.last_text = text;
        }
    }

    /// Ends the open message, if there is one.
    pub(crate) fn end(&mut self, open: &mut Option<OpenMessage>, said: &mut Vec<Said>) {
        if let Some(mut open) = self.break_off(open, said) {
            open.finish(None, &mut self.emitter(said));
        }
    }

    /// Emits the held-back rest of the open message and leaves it open. It is closed together with the turn.
    pub(crate) fn break_off(
        &mut self,
        open: &mut Option<OpenMessage>,
        said: &mut Vec<Said>,
    ) -> Option<OpenMessage> {
        let mut open = open.take()?;
        open.flush(&mut self.emitter(said));
        self.heard(open.text());
        Some(open)
    }

    /// Whether the turn has a message with text.
    pub(crate) fn has_spoken(&self) -> bool {
        !self.last_text.is_empty()
    }

    /// Emits a tool call: a message of its own, and the call.
    pub(crate) fn call(&mut self, call: ToolCall, said: &mut Vec<Said>) {
        let ToolCall { call: id, tool, input, .. } = call.clone();
        self.calls.insert(id.clone());
        self.whole(vec![ContentBlock::ToolUse { call: id, tool, input }], said);
        said.push(Said::Event(EventBody::ToolCall(Box::new(call))));
    }

    /// Whether the call was made and has no result.
    pub(crate) fn awaits(&self, call: &str) -> bool {
        self.calls.contains(call)
    }

    pub(crate) fn returned(&mut self, result: ToolResult, said: &mut Vec<Said>) {
        self.calls.remove(&result.call);
        said.push(Said::Event(EventBody::ToolResult(Box::new(result))));
    }

    /// Emits an error, unless it equals the turn's last error: the end of a turn repeats it.
    pub(crate) fn tell(&mut self, error: AgentError, said: &mut Vec<Said>) {
        if self.told.as_ref() != Some(&error) {
            said.push(Said::Event(EventBody::Error(Box::new(error.clone()))));
            self.told = Some(error);
        }
    }

    /// The turn's last error, or an error without a reason if there is none.
    pub(crate) fn last_error(&self) -> AgentError {
        self.told.clone().unwrap_or_else(|| {
            let text = "the agent failed without giving a reason";
            errors::agent_error(ErrorClass::Unknown, None, text.to_owned())
        })
    }

    /// Emits the end of the turn. Each end belongs to a turn of its own.
    pub(crate) fn close(&mut self, mut close: TurnClose, said: &mut Vec<Said>) {
        self.begin_turn(said);
        if let Some(error) = close.error.as_ref().filter(|_| !close.interrupted) {
            self.tell(error.clone(), said);
        }
        let last_text = std::mem::take(&mut self.last_text);
        if close.error.is_none() && close.text.is_empty() {
            close.text = last_text;
        }
        said.push(Said::Close(Box::new(close)));
        self.closed = true;
        self.calls.clear();
    }

    pub(crate) fn activity(&self) -> Activity {
        Activity { tool_running: !self.calls.is_empty(), ..Activity::default() }
    }
}
