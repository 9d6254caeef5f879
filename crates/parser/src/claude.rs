//! The stream-json of Claude Code: `claude -p --output-format stream-json --verbose`.
//!
//! Every text arrives up to three times: in deltas (`stream_event`, with `--include-partial-messages`), as a whole
//! block (`assistant`, just before the block's stop) and in the `result`. The parser emits it once, as deltas if there
//! are any. The whole blocks are authoritative: by them the deltas are completed, cancelled or abandoned.
//!
//! | line | what is emitted |
//! | --- | --- |
//! | any, with a new `session_id` | [`Said::Session`] |
//! | `stream_event/content_block_delta` | a delta of text, reasoning or tool input |
//! | `stream_event/message_stop` | [`Said::End`]; with `abandoned_blocks`, `Abandoned` and the whole blocks again |
//! | `stream_event/message_start` | nothing; a message that is still open lost its stream and is abandoned |
//! | `stream_event/message_delta` | usage |
//! | `stream_event/error`, `error` | error |
//! | other `stream_event`; those of a sub-agent | nothing |
//! | `assistant` that repeats deltas | what they lack; a tool call for each `tool_use` |
//! | `assistant` without deltas, or of a sub-agent | a complete message; a tool call for each `tool_use` |
//! | the same, if its text may have been cut | its text as deltas; [`Said::End`] at the next decisive line |
//! | `assistant` that is the agent's report of an API error | error |
//! | `user` with `tool_result` | a tool result each; the only one has the patch of `tool_use_result` |
//! | `user` with anything else | notice `interrupt_note`, `subagent_prompt`, `synthetic_prompt`, `user_echo` |
//! | `user` with `isReplay` | nothing: the server has recorded the user's message |
//! | `system/init` | notice; after a `result`, [`Said::OwnTurn`] before it |
//! | `system/thinking_tokens` | nothing: it arrives with every token |
//! | `system/api_retry` | notice; an open message is abandoned |
//! | other `system` | notice with its subtype |
//! | `control_response` that is an error | notice `control_error` |
//! | other `control_response`, `control_request`, `control_cancel_request`; `command_lifecycle`, `keep_alive` | nothing |
//! | `result` | [`Said::Close`]; before it an error, if the turn failed and the error was not emitted before |
//! | `message` (old format) | like `assistant` or `user` |
//! | a stream event without its `stream_event` | like the same event with it |
//! | an object of any other type | notice named after the type |
//! | an array | the events of its elements; of the elements that are not objects, only the first |
//! | anything else | error `line_invalid` |
//!
//! When they are interrupted, some versions print the partial text in a line like that of a whole text, and only
//! afterwards report the interrupt. A text that such a version prints whole therefore ends with the next decisive line
//! of the main thread: as cancelled if that line reports an interrupt, as failed if it reports an API error, otherwise
//! as complete.
//!
//! A new turn begins at the first `init`, message or `result` after a `result`. Lines in between (task notifications,
//! hooks) belong to the previous turn.

mod busy;
mod errors;
mod lines;
mod messages;
mod result;
mod stream;

use std::borrow::Cow;

use serde_json::value::RawValue;
use tokenrail_domain::{
    AgentError, ErrorClass, EventBody, JsonText, MessageOrdinal, MessageOutcome, Said, Usage,
};
use tokenrail_ports::{Activity, AddedLine, IMessageParser};

use self::busy::Busy;
use self::lines::{
    ControlLine, Delta, DeltaLine, Head, InitLine, Labelled, Message, MessageLine, Raw, StreamEvent, reread,
};
use self::stream::Stream;
use crate::added_lines::{self, AddedLines};
use crate::emitter::Emitter;
use crate::line::{self, nonsense, notice};

/// Parses the output of one run of Claude Code. Create a new parser for each run, also for a run in a process that was
/// idle.
///
/// The table at the top of the source file shows what each line becomes.
#[derive(Debug, Default)]
pub struct ClaudeParser {
    /// The session id, as printed.
    session: String,
    stream: Stream,
    /// The agent's version does not mark a text that it has cut.
    cuts_unmarked: bool,
    /// All printed text of this message was emitted. The next decisive line shows whether it was cut.
    unsettled: Option<MessageOrdinal>,
    /// The ordinal of the turn's next message.
    next_message: u32,
    /// The turn's result was read.
    closed: bool,
    /// The agent was interrupted in this turn.
    interrupted: bool,
    /// The turn's last error.
    told: Option<AgentError>,
    busy: Busy,
    /// `None` unless the agent is interactive: only then does Tokenrail add lines to its output.
    added: Option<AddedLines>,
}

impl ClaudeParser {
    pub fn new() -> Self {
        Self::default()
    }

    /// For the interactive mode, in which Tokenrail adds lines to the agent's output.
    pub fn two_way() -> Self {
        Self { added: Some(AddedLines::default()), ..Self::default() }
    }
}

impl IMessageParser for ClaudeParser {
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>) {
        match self.added.as_mut().and_then(|added| added.read(line, said)) {
            None => {}
            Some(AddedLine::Error(failure)) => return self.failed(added_lines::error(failure), said),
            Some(_) => return,
        }
        let line = line::text(line);
        let line = line::trimmed(&line);
        match line.as_bytes().first() {
            None => {}
            Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(line) {
                Ok(elements) => self.elements(&elements, said),
                Err(_) => said.push(nonsense(line)),
            },
            Some(_) => self.object(line, said),
        }
    }

    fn complaint(&self, stderr: &str) -> Option<ErrorClass> {
        crate::errors::of_complaint(stderr)
    }

    fn activity(&self) -> Activity {
        let activity = self.busy.activity();
        let asked = self.added.as_ref().is_some_and(AddedLines::is_asked);
        let message_whole = self.unsettled.is_some();
        Activity { tool_running: activity.tool_running || asked, message_whole, ..activity }
    }
}

impl ClaudeParser {
    /// Of the elements that are not objects, only the first is reported. A list of numbers would otherwise become as
    /// many errors, each a hundred times as long as its number.
    fn elements(&mut self, elements: &[&RawValue], said: &mut Vec<Said>) {
        let mut told = false;
        for element in elements {
            if element.get().starts_with('{') || !std::mem::replace(&mut told, true) {
                self.object(element.get(), said);
            }
        }
    }

    fn object(&mut self, line: &str, said: &mut Vec<Said>) {
        if let Some(of_line) = DeltaLine::read(line) {
            self.session(of_line.session_id, said);
            self.settle(MessageOutcome::Complete, said);
            let (stream, mut emitter) = self.stream_and_emitter(said);
            return stream.delta(of_line.event.index, &of_line.event.delta, &mut emitter);
        }
        let head: Head<'_> = match serde_json::from_str(line) {
            Ok(head) if line.starts_with('{') => head,
            _ => return said.push(nonsense(line)),
        };
        self.session(head.session_id, said);
        let kind = lines::text(head.kind).unwrap_or_default();
        if let Some(outcome) = self.unsettled.and_then(|_| settles(&kind, &head)) {
            self.settle(outcome, said);
        }
        match &*kind {
            "stream_event" if head.parent_tool_use_id.is_none() => {
                self.stream_event(&lines::read(head.event), &head, said);
            }
            "stream_event" | "command_lifecycle" | "keep_alive" => {}
            "system" => self.system(&head, line, said),
            "result" => self.result(&reread(line), said),
            "assistant" | "user" | "message" => self.message(&kind, line, said),
            "control_request" | "control_response" | "control_cancel_request" => control(&kind, line, said),
            "message_start"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop"
            | "ping"
            | "error" => {
                self.stream_event(&reread(line), &head, said);
            }
            _ => said.push(unknown(&head, line)),
        }
    }

    fn session(&mut self, session_id: Raw<'_>, said: &mut Vec<Said>) {
        let Some(raw) = session_id.filter(|raw| raw.get() != self.session) else { return };
        if let Some(session) = lines::text(Some(raw)).filter(|session| !session.is_empty()) {
            raw.get().clone_into(&mut self.session);
            said.push(Said::Session(session.into_owned()));
        }
    }

    /// Begins the next turn if the last one has ended.
    fn begin_turn(&mut self, said: &mut Vec<Said>) {
        if std::mem::take(&mut self.closed) {
            self.next_message = 0;
            self.stream = Stream::default();
            self.interrupted = false;
            self.told = None;
            said.push(Said::OwnTurn);
        }
    }

    fn stream_event(&mut self, event: &StreamEvent<'_>, head: &Head<'_>, said: &mut Vec<Said>) {
        let index = stream::index(event.index);
        match lines::text(event.kind).as_deref() {
            Some("content_block_delta") => {
                let delta: Delta<'_> = lines::read(event.delta);
                let (stream, mut emitter) = self.stream_and_emitter(said);
                stream.delta(index, &delta, &mut emitter);
            }
            Some("message_start") => {
                self.begin_turn(said);
                let message: Message<'_> = lines::read(event.message);
                let id = lines::text(message.id).map(Cow::into_owned);
                let (stream, mut emitter) = self.stream_and_emitter(said);
                stream.start(id, &mut emitter);
            }
            Some("content_block_start") => {
                if let Some(block) = event.content_block {
                    self.stream.start_block(index, block);
                }
            }
            Some("content_block_stop") => {
                let (stream, mut emitter) = self.stream_and_emitter(said);
                stream.stop_block(index, &mut emitter);
            }
            Some("message_delta") => said.extend(usage(event)),
            Some("message_stop") => {
                let abandoned = head.abandoned_blocks.map(|blocks| {
                    let blocks: lines::AbandonedBlocks<'_> = lines::read(Some(blocks));
                    stream::index(blocks.from_block_index)
                });
                let (stream, mut emitter) = self.stream_and_emitter(said);
                stream.stop(abandoned, &mut emitter);
            }
            Some("error") => self.tell(errors::of_api(event.error), said),
            _ => {}
        }
    }

    fn message(&mut self, kind: &str, line: &str, said: &mut Vec<Said>) {
        let mut of_line: MessageLine<'_> = reread(line);
        // In the old format the message may be the line itself.
        of_line.message = of_line.message.or_else(|| serde_json::from_str(line).ok());
        let message: Message<'_> = lines::read(of_line.message);
        let role = lines::text(message.role);
        match (kind, role.as_deref()) {
            ("user", _) | ("message", Some("user")) => self.user(&of_line, &message, said),
            _ => self.assistant(&of_line, &message, said),
        }
    }

    fn system(&mut self, head: &Head<'_>, line: &str, said: &mut Vec<Said>) {
        let subtype = lines::text(head.subtype).unwrap_or("system".into());
        match &*subtype {
            "thinking_tokens" => return,
            "init" => {
                self.begin_turn(said);
                let init: InitLine<'_> = reread(line);
                self.cuts_unmarked = init.cuts_unmarked();
            }
            "api_retry" => {
                let (stream, mut emitter) = self.stream_and_emitter(said);
                stream.give_up_unfinished(&mut emitter);
            }
            task if busy::is_about_tasks(task) => self.busy.task(task, &reread(line)),
            _ => {}
        }
        said.push(notice(&subtype, JsonText::new_unchecked(line)));
    }

    /// Emits an error of the agent and remembers it, because the result may repeat it.
    fn tell(&mut self, error: AgentError, said: &mut Vec<Said>) {
        said.push(Said::Event(EventBody::Error(Box::new(error.clone()))));
        self.told = Some(error);
    }

    fn stream_and_emitter<'a>(&'a mut self, said: &'a mut Vec<Said>) -> (&'a mut Stream, Emitter<'a>) {
        (&mut self.stream, Emitter { said, next: &mut self.next_message })
    }
}

/// The outcome of a text that may have been cut, if this line of the main thread decides it: the model's next answer
/// begins, or the answer was cut off. Whole messages and results are decided elsewhere, because they need more
/// information. Other lines can arrive at any time, even between a text and the note that it was cut: lines of
/// sub-agents, tasks, hooks and rate limits.
fn settles(kind: &str, head: &Head<'_>) -> Option<MessageOutcome> {
    if head.parent_tool_use_id.is_some() {
        return None;
    }
    let event: Labelled<'_> = lines::read(head.event);
    let of_event = lines::text(event.type_name);
    match (kind, lines::text(head.subtype).as_deref(), of_event.as_deref()) {
        ("error", ..) | ("stream_event", _, Some("error")) | ("system", Some("api_retry"), _) => {
            Some(MessageOutcome::Failed)
        }
        ("stream_event", _, Some("ping")) => None,
        ("stream_event", ..) | ("system", Some("init"), _) => Some(MessageOutcome::Complete),
        _ if kind.starts_with("message_") || kind.starts_with("content_block_") => {
            Some(MessageOutcome::Complete)
        }
        _ => None,
    }
}

fn usage(event: &StreamEvent<'_>) -> Option<Said> {
    let delta: Delta<'_> = lines::read(event.delta);
    let stop_reason = lines::text(delta.stop_reason).map(Cow::into_owned);
    let usage = lines::object(event.usage);
    if stop_reason.is_none() && usage.is_none() {
        return None;
    }
    let usage = usage.unwrap_or_else(|| JsonText::new_unchecked("{}"));
    Some(Said::Event(EventBody::Usage(Box::new(Usage { stop_reason, usage }))))
}

fn control(kind: &str, line: &str, said: &mut Vec<Said>) {
    let of_line: ControlLine<'_> = reread(line);
    let body: Labelled<'_> = lines::read(of_line.request.or(of_line.response));
    let subtype = match (kind, lines::text(body.subtype).as_deref()) {
        ("control_response", Some("error")) => "control_error",
        _ => return,
    };
    said.push(notice(subtype, JsonText::new_unchecked(line)));
}

fn unknown(head: &Head<'_>, line: &str) -> Said {
    let kind = lines::text(head.kind).unwrap_or("untyped".into());
    let name = match lines::text(head.subtype) {
        Some(subtype) => format!("{kind}/{subtype}"),
        None => kind.into_owned(),
    };
    notice(&name, JsonText::new_unchecked(line))
}
