//! What parsers keep of a conversation, whatever the format.

use std::collections::HashSet;

use tokenrail_domain::{
    AgentError, ContentBlock, ErrorClass, EventBody, MessageOutcome, Said, ToolCall, ToolResult, TurnClose,
};
use tokenrail_ports::Activity;

use crate::errors;
use crate::open_message::OpenMessage;
use crate::voice::Voice;

/// The session, and the turn in which its agent is.
///
/// What the agent says after the end of a turn begins the next one. Tool results, errors and notices alone do not:
/// they belong to the turn before.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    session: String,
    /// The ordinal of the turn's next message.
    next_message: u32,
    /// The turn's end was said.
    closed: bool,
    /// The turn's last error.
    told: Option<AgentError>,
    /// Tool calls without a result.
    calls: HashSet<String>,
    /// The text of the turn's last message that has one.
    last_text: String,
}

impl Conversation {
    /// Says the session, where it is not the one that was said last.
    pub(crate) fn session(&mut self, session: Option<impl AsRef<str>>, said: &mut Vec<Said>) {
        let Some(session) = session else { return };
        let session = session.as_ref();
        if !session.is_empty() && session != self.session {
            session.clone_into(&mut self.session);
            said.push(Said::Session(session.to_owned()));
        }
    }

    /// The session that was said last; empty where none was.
    pub(crate) fn session_id(&self) -> &str {
        &self.session
    }

    /// Begins the next turn where the last one has ended.
    pub(crate) fn begin_turn(&mut self, said: &mut Vec<Said>) {
        if std::mem::take(&mut self.closed) {
            self.next_message = 0;
            self.told = None;
            self.last_text.clear();
            said.push(Said::NextTurn);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// For a message that says something, or ends.
    pub(crate) fn voice<'a>(&'a mut self, said: &'a mut Vec<Said>) -> Voice<'a> {
        self.begin_turn(said);
        Voice { said, next: &mut self.next_message }
    }

    /// Says a message that came whole.
    pub(crate) fn whole(&mut self, blocks: Vec<ContentBlock>, said: &mut Vec<Said>) {
        self.heard(blocks.iter().filter_map(ContentBlock::as_text).collect());
        self.voice(said).whole(blocks, MessageOutcome::Complete, None);
    }

    /// Keeps the text of a message that was said in pieces: the last one is the turn's final text.
    pub(crate) fn heard(&mut self, text: String) {
        if !text.is_empty() {
            self.last_text = text;
        }
    }

    /// Says the end of the message that is open, if one is.
    pub(crate) fn end(&mut self, open: &mut Option<OpenMessage>, said: &mut Vec<Said>) {
        if let Some(mut open) = self.break_off(open, said) {
            open.finish(None, &mut self.voice(said));
        }
    }

    /// Says what is held back of the open message, and leaves it open for whoever ends the turn.
    pub(crate) fn break_off(
        &mut self,
        open: &mut Option<OpenMessage>,
        said: &mut Vec<Said>,
    ) -> Option<OpenMessage> {
        let mut open = open.take()?;
        open.flush(&mut self.voice(said));
        self.heard(open.text());
        Some(open)
    }

    /// Whether the turn has a message with text.
    pub(crate) fn has_spoken(&self) -> bool {
        !self.last_text.is_empty()
    }

    /// Says a tool call: a message of its own, and the call.
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

    /// Says an error, but for one that was said just before: the end of a turn repeats it.
    pub(crate) fn tell(&mut self, error: AgentError, said: &mut Vec<Said>) {
        if self.told.as_ref() != Some(&error) {
            said.push(Said::Event(EventBody::Error(Box::new(error.clone()))));
            self.told = Some(error);
        }
    }

    /// The turn's last error, or else that there was none to be had.
    pub(crate) fn last_error(&self) -> AgentError {
        self.told.clone().unwrap_or_else(|| {
            let text = "the agent failed and does not say why";
            errors::agent_error(ErrorClass::Unknown, None, text.to_owned())
        })
    }

    /// The agent says that its turn has ended. Each end is that of a turn of its own.
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
