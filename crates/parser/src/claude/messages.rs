//! Whole messages: the agent's own, and those that it writes in the user's name.

use std::borrow::Cow;

use tokenrail_domain::{ContentBlock, EventBody, JsonText, MessageOutcome, Said, ToolCall, ToolResult};

use super::ClaudeParser;
use super::errors::{self, Fault};
use super::lines::{self, Block, Message, MessageLine};
use crate::fields;
use crate::line::notice;

/// How the agent notes that somebody stopped it.
const INTERRUPT_NOTE: &str = "[Request interrupted by user";

impl ClaudeParser {
    /// Reads an `assistant` line.
    pub(super) fn assistant(&mut self, line: &MessageLine<'_>, message: &Message<'_>, said: &mut Vec<Said>) {
        let blocks = lines::content(message.content);
        let parent_call = lines::text(line.parent_tool_use_id).map(Cow::into_owned);
        if parent_call.is_none() {
            self.begin_turn(said);
        }
        let first_text = blocks.iter().find_map(ContentBlock::as_text).unwrap_or_default();
        if errors::is_error(line, message.model, first_text) {
            let error = Fault::of_message(line).tell(first_text);
            let (stream, mut voice) = self.speaker(said);
            stream.give_up_unfinished(&mut voice);
            self.tell(error, said);
            return;
        }
        let calls: Vec<ToolCall> =
            blocks.iter().filter_map(|block| call(block, parent_call.as_deref())).collect();
        let aborted = lines::is_true(line.aborted);
        let blocks = if parent_call.is_some() {
            // Sub-agents are not streamed.
            blocks
        } else {
            let (stream, mut voice) = self.speaker(said);
            stream.repeat(message.id, blocks, aborted, &mut voice)
        };
        let outcome = if aborted { MessageOutcome::Cancelled } else { MessageOutcome::Complete };
        self.speaker(said).1.whole(blocks, outcome, parent_call);
        for call in calls {
            if call.parent_call.is_none() {
                self.busy.call_made(&call.call);
            }
            said.push(Said::Event(EventBody::ToolCall(Box::new(call))));
        }
    }

    /// Reads a `user` line: what tools gave, and what the agent tells itself. The user's own words are known.
    pub(super) fn user(&mut self, line: &MessageLine<'_>, message: &Message<'_>, said: &mut Vec<Said>) {
        if lines::is_true(line.is_replay) {
            return;
        }
        let parent_call = lines::text(line.parent_tool_use_id).map(Cow::into_owned);
        let mut note = lines::text(message.content);
        let mut is_note = note.is_some();
        for raw in lines::elements(message.content) {
            let block: Block<'_> = lines::read(Some(raw));
            if lines::text(block.kind).as_deref() == Some("tool_result") {
                let result = tool_result(&block, parent_call.clone());
                self.busy.call_returned(&result.call);
                said.push(Said::Event(EventBody::ToolResult(Box::new(result))));
            } else {
                is_note = true;
                note = note.or_else(|| lines::text(block.text));
            }
        }
        if !is_note {
            return;
        }
        let interrupted = note.is_some_and(|note| note.starts_with(INTERRUPT_NOTE));
        self.interrupted |= interrupted && parent_call.is_none();
        let subtype = if interrupted {
            "interrupt_note"
        } else if parent_call.is_some() {
            "subagent_prompt"
        } else if lines::is_true(line.is_synthetic) {
            "synthetic_prompt"
        } else {
            "user_echo"
        };
        said.push(notice(subtype, lines::object(line.message).unwrap_or_else(JsonText::null)));
    }
}

fn call(block: &ContentBlock, parent_call: Option<&str>) -> Option<ToolCall> {
    let ContentBlock::ToolUse { call, tool, input } = block else { return None };
    Some(ToolCall {
        call: call.clone(),
        tool: tool.clone(),
        input: input.clone(),
        parent_call: parent_call.map(str::to_owned),
    })
}

fn tool_result(block: &Block<'_>, parent_call: Option<String>) -> ToolResult {
    ToolResult {
        call: lines::text(block.tool_use_id).unwrap_or_default().into_owned(),
        content: fields::as_given(block.content),
        is_error: lines::is_true(block.is_error),
        parent_call,
    }
}
