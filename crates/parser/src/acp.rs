//! The Agent Client Protocol, version 1: JSON-RPC over lines, as `tokenrail converse acp` finds it.
//!
//! Messages come in pieces only, without an end: a message ends where the agent says something of another kind, has
//! another message id, or calls a tool. `claude-agent-acp` tells the usage after each of its messages; where it begins
//! another one without that, the stream of the first was cut. What is known of a tool call grows with each update; it is said once its
//! input is known.
//!
//! | line | what is said |
//! | --- | --- |
//! | answer to `initialize` | notice `init` |
//! | answer to `session/new`, an update | [`Said::Session`] |
//! | `agent_message_chunk`, `agent_thought_chunk` | a delta of text or reasoning; what is no text, whole |
//! | `tool_call`, `tool_call_update`, `session/request_permission` | a tool call, when its input is known |
//! | `_meta` of these | what terminals show: the tool result has it |
//! | the same with the status `completed` or `failed` | a tool result |
//! | `plan` | notice `todo_list` |
//! | `usage_update` | usage |
//! | `user_message_chunk` | nothing: the server has recorded what the user said |
//! | other updates | notice with the kind for a name |
//! | updates of a session that is being loaded | nothing: they were said before; states are notices as ever |
//! | messages and tool calls after the end of the turn | notice with the kind for a name |
//! | answer to `session/prompt` | usage, and [`Said::Close`] |
//! | an error in answer to a request without which there is no turn | error, and [`Said::Close`] |
//! | an error in answer to `session/load`, `session/resume` | the error of the line `{"tokenrail":"error"…}` that follows, unless another session is begun |
//! | an error in answer to another request | notice `control_error` |
//! | the agent's requests for files, other answers | nothing |
//! | other requests and notifications | notice with the method for a name |
//! | anything else | error `line_invalid` |
//!
//! A session is loaded until its prompt is sent, for some agents answer before they have told all of it.
//!
//! Exit codes say nothing that the lines do not.

mod answers;
mod lines;
mod shown;
mod terminals;
mod tools;

use std::collections::BTreeMap;

use tokenrail_domain::{AgentError, ContentBlock, EventBody, JsonText, MessageOutcome, Said, Usage};
use tokenrail_ports::{Activity, IMessageParser};

use self::lines::{Block, Cost, Message, Params, Update};
use self::tools::{Call, From};
use crate::conversation::Conversation;
use crate::fields::{self, Raw};
use crate::line::{self, notice};
use crate::open_message::{OpenMessage, Piece};
use crate::own_lines::{OwnLine, OwnLines};

/// Reads what one process of an agent prints that speaks the Agent Client Protocol: make a new one for each process.
///
/// The table at the top of its source file says what becomes of each line.
#[derive(Debug, Default)]
pub struct AcpParser {
    conversation: Conversation,
    own: OwnLines,
    /// The methods of requests that were sent and not answered, by their ids.
    sent: BTreeMap<u64, String>,
    /// The session tells what it was before.
    is_loading: bool,
    /// Why the agent does not go on with its session.
    refused: Option<AgentError>,
    open: Option<OpenMessage>,
    /// What the open message is made of, and its id.
    open_as: Option<(Piece, Option<String>)>,
    calls: BTreeMap<String, Call>,
    /// The call whose input is still coming, piece by piece.
    growing: Option<String>,
    end_told: EndTold,
    /// The agent was asked to end its turn: a message that is open may have been cut.
    cancelled: bool,
    /// What the session has cost so far.
    cost_usd: Option<f64>,
}

/// What the usage says of the open message, which some agents tell after each message that has ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EndTold {
    /// Nothing: the agent does not tell it so.
    #[default]
    Never,
    NotYet,
    /// It has ended.
    Told,
}

impl AcpParser {
    pub fn new() -> Self {
        Self::default()
    }
}

impl IMessageParser for AcpParser {
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>) {
        match self.own.read(line, said) {
            OwnLine::Foreign => {}
            OwnLine::Said => return,
            OwnLine::Sent { id, method } => return self.sent(id, method),
            OwnLine::Agent { name } => return self.named(&name),
            OwnLine::Cancel => return self.cancelled = true,
            OwnLine::Failed(error) => return self.failed(error, said),
        }
        let text = line::text(line);
        let text = line::trimmed(&text);
        let Some(message) = line::object::<Message<'_>>(text, said) else { return };
        match (fields::text(message.method).as_deref(), message.id) {
            (Some("session/update"), _) => self.update(&fields::read(message.params), said),
            (Some("session/request_permission"), Some(_)) => {
                let params: Params<'_> = fields::read(message.params);
                self.tool(From::Question, params.tool_call, said);
            }
            (Some("fs/read_text_file" | "fs/write_text_file" | "$/cancel_request"), _) => {}
            (Some(method), _) => said.push(notice(method, JsonText::new_unchecked(text))),
            (None, Some(id)) => self.answer(id, &message, text, said),
            (None, None) => said.push(notice("untyped", JsonText::new_unchecked(text))),
        }
    }

    fn activity(&self) -> Activity {
        let activity = self.conversation.activity();
        Activity { tool_running: activity.tool_running || self.own.is_asked(), ..activity }
    }
}

impl AcpParser {
    fn sent(&mut self, id: u64, method: String) {
        match method.as_str() {
            "session/load" => self.is_loading = true,
            "session/prompt" => self.is_loading = false,
            "session/new" => (self.is_loading, self.refused) = (false, None),
            _ => {}
        }
        self.sent.insert(id, method);
    }

    fn update(&mut self, params: &Params<'_>, said: &mut Vec<Said>) {
        self.conversation.session(fields::text(params.session), said);
        let update: Update<'_> = fields::read(params.update);
        let kind = fields::text(update.kind).unwrap_or("untyped".into());
        let is_history = matches!(
            &*kind,
            "agent_message_chunk" | "agent_thought_chunk" | "tool_call" | "tool_call_update" | "plan"
        );
        if (is_history || kind == "usage_update") && self.is_loading {
            return;
        }
        if !matches!(&*kind, "tool_call" | "tool_call_update") {
            self.say_grown(said);
        }
        let data = || fields::object(params.update).unwrap_or_else(JsonText::null);
        match &*kind {
            "user_message_chunk" => {}
            // A turn that nobody has asked for would have no end.
            _ if is_history && self.conversation.is_closed() => said.push(notice(&kind, data())),
            "agent_message_chunk" => self.chunk(Piece::Text, &update, said),
            "agent_thought_chunk" => self.chunk(Piece::Reasoning, &update, said),
            "tool_call" => self.tool(From::Begin, params.update, said),
            "tool_call_update" => self.tool(From::Update, params.update, said),
            "plan" => said.push(notice("todo_list", data())),
            "usage_update" => self.usage(&update, data(), said),
            _ => said.push(notice(&kind, data())),
        }
    }

    /// A piece of a message.
    fn chunk(&mut self, piece: Piece, update: &Update<'_>, said: &mut Vec<Said>) {
        let message = fields::text(update.message).map(Into::into);
        let is_same = self.open_as.as_ref().is_some_and(|(open, id)| *open == piece && *id == message);
        if !is_same {
            self.cut_replaced(message.as_deref());
            self.end_before(said);
        }
        self.tell_end(EndTold::NotYet);
        let block: Block<'_> = fields::read(update.content);
        match (fields::text(block.kind).as_deref(), block.text) {
            (Some("text"), Some(text)) => {
                self.open_as = Some((piece, message));
                let open = self.open.get_or_insert_with(|| OpenMessage::new(None));
                open.say(0, piece, text.get(), &mut self.conversation.voice(said));
            }
            _ => self.other_block(update.content, said),
        }
    }

    fn tell_end(&mut self, told: EndTold) {
        if self.end_told != EndTold::Never {
            self.end_told = told;
        }
    }

    /// Where the agent had the model answer anew, what it has said of its first answer is cut.
    fn cut_replaced(&mut self, by: Option<&str>) {
        let replaced = self.open_as.as_ref().and_then(|(_, id)| id.as_deref());
        let is_another = replaced.zip(by).is_some_and(|(replaced, by)| replaced != by);
        if let Some(open) = self.open.as_mut().filter(|_| is_another && self.end_told == EndTold::NotYet) {
            open.cut = Some(MessageOutcome::Failed);
        }
    }

    /// The agent says something else: the open message has ended, unless that was because the turn is cancelled.
    fn end_before(&mut self, said: &mut Vec<Said>) {
        if let Some(open) = self.open.as_mut().filter(|_| self.cancelled && self.end_told != EndTold::Told) {
            open.cut = open.cut.or(Some(MessageOutcome::Cancelled));
        }
        self.conversation.end(&mut self.open, said);
    }

    /// A picture, a file and the like: a message of its own.
    fn other_block(&mut self, content: Raw<'_>, said: &mut Vec<Said>) {
        self.end_before(said);
        if let Some(block) = fields::object(content) {
            self.conversation.whole(vec![ContentBlock::Other(block)], said);
        }
    }

    fn usage(&mut self, update: &Update<'_>, usage: JsonText, said: &mut Vec<Said>) {
        self.tell_end(EndTold::Told);
        let cost: Cost<'_> = fields::read(update.cost);
        if fields::text(cost.currency).as_deref() == Some("USD") {
            self.cost_usd = fields::number(cost.amount);
        }
        said.push(Said::Event(EventBody::Usage(Box::new(Usage { stop_reason: None, usage }))));
    }
}
