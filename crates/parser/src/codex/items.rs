//! Items of a thread: messages, reasoning, commands, patches, tools.

use std::borrow::Cow;
use std::collections::VecDeque;

use tokenrail_domain::{ContentBlock, JsonText, Said, ToolCall, ToolResult};

use super::lines::{Failure, ThreadItem};
use super::{CodexParser, Phase};
use crate::fields::{self, Raw};
use crate::line::notice;
use crate::patches;

/// The complete items of the model's current answer, to recognize them when the stream is retried.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    answer: Vec<ContentBlock>,
    expected: VecDeque<ContentBlock>,
}

impl Repeats {
    /// The stream is retried: the answer starts again.
    pub(super) fn expect(&mut self) {
        self.expected = self.answer.iter().cloned().collect();
    }

    /// A tool was called: the next item belongs to another answer.
    fn end_answer(&mut self) {
        *self = Self::default();
    }

    /// Whether the block was emitted before the stream was cut. The first block that was not ends the repetition.
    fn is_repeated(&mut self, block: &ContentBlock) -> bool {
        if self.expected.pop_front().as_ref() == Some(block) {
            return true;
        }
        self.expected.clear();
        self.answer.push(block.clone());
        false
    }
}

impl CodexParser {
    /// Handles an item that has started or is complete.
    pub(super) fn item(&mut self, phase: Phase, raw: Raw<'_>, said: &mut Vec<Said>) {
        let item: ThreadItem<'_> = fields::read(raw);
        let kind = fields::text(item.kind).unwrap_or("untyped".into());
        let data = || fields::object(raw).unwrap_or_else(JsonText::null);
        match (&*kind, phase) {
            ("userMessage" | "user_message", _) => {}
            ("agent_message" | "agentMessage" | "reasoning", Phase::Completed) => {
                self.words(&item, &kind, said);
            }
            ("agent_message" | "agentMessage" | "reasoning", Phase::Started) => {
                self.conversation.begin_turn(said);
            }
            ("command_execution" | "commandExecution", _) => {
                let input = object_of("command", item.command);
                self.tool(phase, &item, "command_execution", input, said);
            }
            ("file_change" | "fileChange", _) => {
                let input = object_of("changes", item.changes);
                self.tool(phase, &item, "file_change", input, said);
            }
            ("web_search" | "webSearch", _) => {
                let input = object_of("query", item.query);
                self.tool(phase, &item, "web_search", input, said);
            }
            ("mcp_tool_call" | "mcpToolCall", _) => {
                let name = |raw| fields::text(raw).unwrap_or_default();
                let tool = format!("mcp__{}__{}", name(item.server), name(item.tool));
                let input = fields::tool_input(item.arguments);
                self.tool(phase, &item, &tool, input, said);
            }
            ("error", Phase::Completed) => said.push(notice("warning", data())),
            (_, _) if item.is_todo_list() => said.push(notice("todo_list", data())),
            (_, Phase::Completed) => said.push(notice(&kind, data())),
            // The item is emitted when it is complete.
            (_, Phase::Started) => {}
        }
    }

    fn words(&mut self, item: &ThreadItem<'_>, kind: &str, said: &mut Vec<Said>) {
        let blocks = blocks(item, kind);
        let id = fields::text(item.id).unwrap_or_default();
        if let Some(mut open) = self.open.remove(&*id) {
            self.conversation.heard(blocks.iter().filter_map(ContentBlock::as_text).collect());
            let mut emitter = self.conversation.emitter(said);
            for block in blocks {
                open.repeat(block, &mut emitter);
            }
            return open.finish(None, &mut emitter);
        }
        let new = blocks.into_iter().filter(|block| !self.repeats.is_repeated(block)).collect();
        self.conversation.whole(new, said);
    }

    fn tool(
        &mut self,
        phase: Phase,
        item: &ThreadItem<'_>,
        tool: &str,
        input: JsonText,
        said: &mut Vec<Said>,
    ) {
        self.repeats.end_answer();
        let call = fields::text(item.id).unwrap_or_default().into_owned();
        // Some calls are reported only when they are complete.
        if !self.conversation.awaits(&call) {
            let (call, tool) = (call.clone(), tool.to_owned());
            self.conversation.call(ToolCall { call, tool, input, parent_call: None }, said);
        }
        if phase == Phase::Completed {
            self.conversation.returned(result(call, item), said);
        }
    }

    /// Abandons the messages that were emitted in pieces, because the agent starts again.
    pub(super) fn abandon(&mut self, said: &mut Vec<Said>) {
        for (_, mut open) in std::mem::take(&mut self.open) {
            open.finish(Some(0), &mut self.conversation.emitter(said));
        }
    }

    /// Ends the open messages with the turn. If the turn is complete, a message without an end is complete too.
    /// Otherwise it stays open and is closed together with the turn.
    pub(super) fn leave_open(&mut self, complete: bool, said: &mut Vec<Said>) {
        for (_, mut open) in std::mem::take(&mut self.open) {
            let mut emitter = self.conversation.emitter(said);
            open.flush(&mut emitter);
            if complete {
                open.finish(None, &mut emitter);
            }
            self.conversation.heard(open.text());
        }
    }
}

fn blocks(item: &ThreadItem<'_>, kind: &str) -> Vec<ContentBlock> {
    let text = fields::text(item.text).map(Cow::into_owned);
    if kind != "reasoning" {
        return vec![ContentBlock::Text(text.unwrap_or_default())];
    }
    let parts = fields::elements(item.summary).into_iter().chain(fields::elements(item.content));
    let parts = parts.filter_map(|part| fields::text(Some(part)).map(Cow::into_owned));
    text.into_iter().chain(parts).map(ContentBlock::Reasoning).collect()
}

fn result(call: String, item: &ThreadItem<'_>) -> ToolResult {
    let status = fields::text(item.status).unwrap_or_default();
    let exit: Option<i64> = fields::number(item.exit_code);
    let failure: Failure<'_> = fields::read(item.error);
    let given = item.aggregated_output.or(failure.message).or(item.result);
    let is_error = matches!(&*status, "failed" | "declined") || exit.is_some_and(|code| code != 0);
    ToolResult {
        call,
        content: given
            .map_or_else(|| JsonText::string(&status), |given| JsonText::new_unchecked(given.get())),
        is_error,
        parent_call: None,
        patch: patches::of_codex(item.changes).filter(|_| !is_error),
    }
}

/// A JSON object with one field, or an empty object if there is no value.
fn object_of(name: &str, value: Raw<'_>) -> JsonText {
    let text = value.map_or_else(|| "{}".to_owned(), |value| format!("{{\"{name}\":{}}}", value.get()));
    JsonText::new_unchecked(text)
}
