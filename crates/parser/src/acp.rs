//! The Agent Client Protocol, version 1: JSON-RPC over lines, as spoken by `tokenrail converse acp`.
//!
//! Messages arrive only in pieces and have no end marker. A message ends when the agent sends something of another
//! kind, uses another message id, or calls a tool. `claude-agent-acp` reports the usage after each of its messages; if
//! it starts another message without that, the stream of the first one was cut. Each update can add to what is known of
//! a tool call; the call is emitted once its input is known.
//!
//! | line | what is emitted |
//! | --- | --- |
//! | answer to `initialize` | notice `init` |
//! | answer to `session/new`, an update | [`Said::Session`] |
//! | `agent_message_chunk`, `agent_thought_chunk` | a delta of text or reasoning; content that is not text, whole |
//! | `tool_call`, `tool_call_update`, `session/request_permission` | a tool call, when its input is known |
//! | `_meta` of these | terminal output and the patch: parts of the tool result |
//! | the same with the status `completed` or `failed` | a tool result |
//! | `plan` | notice `todo_list` |
//! | `usage_update` | usage |
//! | `user_message_chunk` | nothing: the server has recorded the user's message |
//! | other updates | notice named after the kind |
//! | updates of a session that is being loaded | nothing: they were emitted before; states are still notices |
//! | messages and tool calls after the end of the turn | notice named after the kind |
//! | answer to `session/prompt` | usage, and [`Said::Close`] |
//! | an error in answer to a request that a turn requires | error, and [`Said::Close`] |
//! | an error in answer to `session/load`, `session/resume` | the error of the line `{"tokenrail":"error"…}` that follows, unless another session is started |
//! | an error in answer to another request | notice `control_error` |
//! | the agent's requests for files, other answers | nothing |
//! | other requests and notifications | notice named after the method |
//! | anything else | error `line_invalid` |
//!
//! A session counts as loading until its prompt is sent, because some agents answer before they have sent all of its
//! history.
//!
//! Exit codes add nothing to the lines.

mod answers;
mod lines;
mod shown;
mod terminals;
mod tools;

use std::collections::BTreeMap;

use tokenrail_domain::{AgentError, ContentBlock, EventBody, JsonText, MessageOutcome, Said, Usage};
use tokenrail_ports::{Activity, AddedLine, IMessageParser};

use self::lines::{Block, Cost, Message, Params, Update};
use self::tools::{Call, From};
use crate::added_lines::{self, AddedLines};
use crate::conversation::Conversation;
use crate::fields::{self, Raw};
use crate::line::{self, notice};
use crate::open_message::{OpenMessage, PartKind};

/// Parses the output of one process of an agent that implements the Agent Client Protocol. Create a new parser for each
/// process.
///
/// The table at the top of the source file shows what each line becomes.
#[derive(Debug, Default)]
pub struct AcpParser {
    conversation: Conversation,
    added: AddedLines,
    /// The methods of requests that were sent and are not answered, by request id.
    sent: BTreeMap<u64, String>,
    /// The agent is sending the history of the session.
    is_loading: bool,
    /// Why the agent cannot resume its session.
    refused: Option<AgentError>,
    open: Option<OpenMessage>,
    /// The kind of the open message, and its id.
    open_as: Option<(PartKind, Option<String>)>,
    calls: BTreeMap<String, Call>,
    /// The call whose input is still arriving in pieces.
    growing: Option<String>,
    end_told: EndTold,
    /// The agent was asked to cancel its turn: an open message may have been cut.
    cancelled: bool,
    /// The total cost of the session so far.
    cost_usd: Option<f64>,
}

/// Whether a usage update has marked the end of the open message. Some agents report usage after each message that has
/// ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EndTold {
    /// The agent does not report usage in this way.
    #[default]
    Never,
    NotYet,
    /// The message has ended.
    Told,
}

impl AcpParser {
    pub fn new() -> Self {
        Self::default()
    }
}

impl IMessageParser for AcpParser {
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>) {
        match self.added.read(line, said) {
            None => {}
            Some(AddedLine::Sent { id, method }) => return self.sent(id, method.into_owned()),
            Some(AddedLine::Agent { name }) => return self.named(&name),
            Some(AddedLine::Cancel {}) => return self.cancelled = true,
            Some(AddedLine::Error(failure)) => return self.failed(added_lines::error(failure), said),
            Some(_) => return,
        }
        let text = line::text(line);
        let text = line::trimmed(&text);
        let Some(message) = line::object::<Message<'_>>(text, said) else { return };
        match (fields::text(message.method).as_deref(), message.id) {
            (Some("session/update"), _) => self.update(&fields::read(message.params), said),
            (Some("session/request_permission"), Some(_)) => {
                let params: Params<'_> = fields::read(message.params);
                self.tool(From::Permission, params.tool_call, said);
            }
            (Some("fs/read_text_file" | "fs/write_text_file" | "$/cancel_request"), _) => {}
            (Some(method), _) => said.push(notice(method, JsonText::new_unchecked(text))),
            (None, Some(id)) => self.answer(id, &message, text, said),
            (None, None) => said.push(notice("untyped", JsonText::new_unchecked(text))),
        }
    }

    fn activity(&self) -> Activity {
        let activity = self.conversation.activity();
        Activity { tool_running: activity.tool_running || self.added.is_asked(), ..activity }
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
            // These would start a turn without a prompt, which would never end.
            _ if is_history && self.conversation.is_closed() => said.push(notice(&kind, data())),
            "agent_message_chunk" => self.chunk(PartKind::Text, &update, said),
            "agent_thought_chunk" => self.chunk(PartKind::Reasoning, &update, said),
            "tool_call" => self.tool(From::Begin, params.update, said),
            "tool_call_update" => self.tool(From::Update, params.update, said),
            "plan" => said.push(notice("todo_list", data())),
            "usage_update" => self.usage(&update, data(), said),
            _ => said.push(notice(&kind, data())),
        }
    }

    /// Handles a piece of a message.
    fn chunk(&mut self, piece: PartKind, update: &Update<'_>, said: &mut Vec<Said>) {
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
                open.say(0, piece, text.get(), &mut self.conversation.emitter(said));
            }
            _ => self.other_block(update.content, said),
        }
    }

    fn tell_end(&mut self, told: EndTold) {
        if self.end_told != EndTold::Never {
            self.end_told = told;
        }
    }

    /// Marks the open message as cut if the agent requested a new answer from the model in its place.
    fn cut_replaced(&mut self, by: Option<&str>) {
        let replaced = self.open_as.as_ref().and_then(|(_, id)| id.as_deref());
        let is_another = replaced.zip(by).is_some_and(|(replaced, by)| replaced != by);
        if let Some(open) = self.open.as_mut().filter(|_| is_another && self.end_told == EndTold::NotYet) {
            open.cut = Some(MessageOutcome::Failed);
        }
    }

    /// Ends the open message, because the agent sends something else. If the turn is being cancelled, the message may
    /// be cut.
    fn end_before(&mut self, said: &mut Vec<Said>) {
        if let Some(open) = self.open.as_mut().filter(|_| self.cancelled && self.end_told != EndTold::Told) {
            open.cut = open.cut.or(Some(MessageOutcome::Cancelled));
        }
        self.conversation.end(&mut self.open, said);
    }

    /// Emits an image, a file or the like as a message of its own.
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
