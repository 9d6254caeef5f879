//! The two formats of Codex: `codex exec --json`, and the output of `codex app-server`.
//!
//! Both report the same things in different ways. `exec` reports only what is complete. `app-server` (JSON-RPC) also
//! sends deltas, and runs several turns in one process. Each line shows which of the two formats it belongs to.
//!
//! | `exec` | `app-server` | what is emitted |
//! | --- | --- | --- |
//! | `thread.started` | a result with a `thread`, `thread/started` | [`Said::Session`] |
//! | `turn.started` | `turn/started` | nothing; after a turn's end [`Said::OwnTurn`] |
//! | | `item/…/delta` and the like | a delta of text or reasoning |
//! | `item.completed` of a message, of reasoning | `item/completed` | a complete message; the end of its deltas |
//! | `item.started` of a command, a patch, a tool | `item/started` | a tool call |
//! | `item.completed` of one | `item/completed` | a tool result; `app-server` also reports the patch |
//! | item `todo_list` | `turn/plan/updated` | notice `todo_list` |
//! | item `error` | `configWarning` | notice `warning` |
//! | `error` that announces a retry | `error` with `willRetry` | notice `api_retry`; open messages are abandoned |
//! | other `error` | other `error` | error |
//! | | `thread/tokenUsage/updated` | usage |
//! | `turn.completed`, `turn.failed` | `turn/completed` | [`Said::Close`]; before it an error, if it is a new one |
//! | | a request of the agent | notice `permission_request` |
//! | | an error in answer to a request | error and [`Said::Close`]; in a turn, notice `control_error` |
//! | | other answers, states, limits, diffs, other threads | nothing |
//! | item of any other type | item of any other type | notice named after the type |
//! | an object of any other type | any other method | notice named after the type or the method |
//! | anything else | anything else | error `line_invalid` |
//!
//! If a stream of `exec` is cut and retried, the items that it had completed are repeated under new ids. They are
//! emitted once.
//!
//! Exit codes add nothing to the lines: 1 means a failed turn, and also an interrupt without a last line. Calls of
//! tools that do not exist are reported on standard error only.

mod app_server;
mod errors;
mod items;
mod lines;

use std::collections::BTreeMap;

use tokenrail_domain::{ErrorClass, JsonText, Said, TurnClose};
use tokenrail_ports::{Activity, AddedLine, IMessageParser};

use self::items::Repeats;
use self::lines::{Failure, Head, ThreadItem};
use crate::added_lines::{self, AddedLines};
use crate::conversation::Conversation;
use crate::fields;
use crate::line::{self, notice};
use crate::open_message::OpenMessage;

/// The beginning of the line by which `exec` announces a retry: `Reconnecting... 1/5 (…)`.
const RETRY: &str = "Reconnecting...";

/// Parses the output of one process of Codex. Create a new parser for each process.
///
/// The table at the top of the source file shows what each line becomes.
#[derive(Debug, Default)]
pub struct CodexParser {
    conversation: Conversation,
    /// Messages that arrive in pieces, by item id.
    open: BTreeMap<String, OpenMessage>,
    repeats: Repeats,
    /// `app-server` is in a turn: an error in answer to a request does not end the turn.
    in_turn: bool,
    /// The token usage of the thread so far.
    usage: Option<JsonText>,
    /// `None` unless the agent is interactive: only then does Tokenrail add lines to its output.
    added: Option<AddedLines>,
}

/// The state of an item that a line reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Started,
    Completed,
}

impl CodexParser {
    pub fn new() -> Self {
        Self::default()
    }

    /// For `app-server`, to whose output Tokenrail adds lines.
    pub fn app_server() -> Self {
        Self { added: Some(AddedLines::default()), ..Self::default() }
    }
}

impl IMessageParser for CodexParser {
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>) {
        match self.added.as_mut().and_then(|added| added.read(line, said)) {
            None => {}
            Some(AddedLine::Error(failure)) => {
                let error = added_lines::error(failure);
                if self.conversation.is_closed() {
                    return self.conversation.tell(error, said);
                }
                return self.close(TurnClose { error: Some(error), ..TurnClose::default() }, said);
            }
            Some(_) => return,
        }
        let text = line::text(line);
        let text = line::trimmed(&text);
        let Some(head) = line::object::<Head<'_>>(text, said) else { return };
        match (fields::text(head.method), head.id) {
            // The agent's request is reported by a line that Tokenrail adds.
            (Some(_), Some(_)) => {}
            (Some(method), None) => self.notification(&method, &fields::read(head.params), text, said),
            (None, Some(_)) if head.kind.is_none() => self.answer(&head, text, said),
            _ => self.exec(&head, text, said),
        }
    }

    fn complaint(&self, stderr: &str) -> Option<ErrorClass> {
        crate::errors::of_complaint(stderr)
    }

    fn activity(&self) -> Activity {
        let activity = self.conversation.activity();
        let asked = self.added.as_ref().is_some_and(AddedLines::is_asked);
        Activity { tool_running: activity.tool_running || asked, ..activity }
    }
}

impl CodexParser {
    /// Handles a line of `codex exec --json`.
    fn exec(&mut self, head: &Head<'_>, text: &str, said: &mut Vec<Said>) {
        let kind = fields::text(head.kind).unwrap_or("untyped".into());
        match &*kind {
            "thread.started" => self.conversation.session(fields::text(head.thread_id), said),
            "turn.started" => self.conversation.begin_turn(said),
            "item.started" => self.item(Phase::Started, head.item, said),
            "item.completed" => self.item(Phase::Completed, head.item, said),
            // Every updated item is completed later, so updates are ignored. Only a to-do list is shown as it changes.
            "item.updated" => {
                let item: ThreadItem<'_> = fields::read(head.item);
                if item.is_todo_list() {
                    self.item(Phase::Completed, head.item, said);
                }
            }
            "turn.completed" => {
                self.usage = fields::object(head.usage);
                self.close(TurnClose::default(), said);
            }
            "turn.failed" => {
                let failure: Failure<'_> = fields::read(head.error);
                self.fail(&failure, false, said);
            }
            "error" => {
                let failure: Failure<'_> = fields::reread(text);
                let retry = fields::text(failure.message).is_some_and(|text| text.starts_with(RETRY));
                self.error(&failure, retry, text, said);
            }
            _ => said.push(notice(&kind, JsonText::new_unchecked(text))),
        }
    }

    /// Handles an error or the announcement of a retry.
    fn error(&mut self, failure: &Failure<'_>, retry: bool, text: &str, said: &mut Vec<Said>) {
        if retry {
            self.repeats.expect();
            self.abandon(said);
            said.push(notice("api_retry", JsonText::new_unchecked(text)));
        } else {
            self.conversation.tell(errors::of(failure), said);
        }
    }

    /// Ends the turn as failed or as interrupted.
    fn fail(&mut self, failure: &Failure<'_>, interrupted: bool, said: &mut Vec<Said>) {
        let error = match failure.message {
            Some(_) => errors::of(failure),
            None if interrupted => errors::interrupted(),
            None => self.conversation.last_error(),
        };
        self.close(TurnClose { error: Some(error), interrupted, ..TurnClose::default() }, said);
    }

    fn close(&mut self, close: TurnClose, said: &mut Vec<Said>) {
        self.leave_open(close.error.is_none(), said);
        self.repeats = Repeats::default();
        self.in_turn = false;
        let usage = self.usage.take();
        self.conversation.close(TurnClose { usage, ..close }, said);
    }
}
