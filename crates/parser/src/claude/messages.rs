//! Whole messages: the agent's own, and those that it writes in the user's name.

use std::borrow::Cow;

use tokenrail_domain::{
    ContentBlock, EventBody, JsonText, MessageOutcome, Part, Said, ToolCall, ToolResult, UnifiedPatch,
};

use super::ClaudeParser;
use super::errors::{self, ReportedError};
use super::lines::{self, Block, Message, MessageLine};
use crate::fields;
use crate::line::notice;
use crate::patches;

/// The beginning of the agent's note that it was interrupted.
const INTERRUPT_NOTE: &str = "[Request interrupted by user";

impl ClaudeParser {
    /// Reads an `assistant` line.
    pub(super) fn assistant(&mut self, line: &MessageLine<'_>, message: &Message<'_>, said: &mut Vec<Said>) {
        let blocks = lines::content(message.content);
        let parent_call = lines::text(line.parent_tool_use_id).map(Cow::into_owned);
        let first_text = blocks.iter().find_map(ContentBlock::as_text).unwrap_or_default();
        let is_error = errors::is_error(line, message.model, first_text);
        if parent_call.is_none() {
            self.settle(if is_error { MessageOutcome::Failed } else { MessageOutcome::Complete }, said);
            self.begin_turn(said);
        }
        if is_error {
            let error = ReportedError::of_message(line).tell(first_text);
            let (stream, mut emitter) = self.stream_and_emitter(said);
            stream.give_up_unfinished(&mut emitter);
            self.tell(error, said);
            return;
        }
        let calls: Vec<ToolCall> =
            blocks.iter().filter_map(|block| call(block, parent_call.as_deref())).collect();
        let aborted = lines::is_true(line.aborted);
        let blocks = if parent_call.is_some() {
            // The messages of sub-agents are not streamed.
            blocks
        } else {
            let (stream, mut emitter) = self.stream_and_emitter(said);
            stream.repeat(message.id, blocks, aborted, &mut emitter)
        };
        let may_be_cut = self.cuts_unmarked && parent_call.is_none() && !aborted;
        if may_be_cut && message.stop_reason.is_none() && ends_with_text(&blocks) {
            return self.unsettled(blocks, said);
        }
        let outcome = if aborted { MessageOutcome::Cancelled } else { MessageOutcome::Complete };
        self.stream_and_emitter(said).1.whole(blocks, outcome, parent_call);
        for call in calls {
            if call.parent_call.is_none() {
                self.busy.call_made(&call.call);
            }
            said.push(Said::Event(EventBody::ToolCall(Box::new(call))));
        }
    }

    /// Emits the deltas of a message that may have been cut. The next decisive line shows whether it was.
    fn unsettled(&mut self, blocks: Vec<ContentBlock>, said: &mut Vec<Said>) {
        let (_, mut emitter) = self.stream_and_emitter(said);
        let message = emitter.ordinal();
        for (part, block) in (0..).map(Part).zip(blocks) {
            match block {
                ContentBlock::Text(text) if !text.is_empty() => {
                    emitter.event(EventBody::TextDelta { message, part, text });
                }
                ContentBlock::Reasoning(text) if !text.is_empty() => {
                    emitter.event(EventBody::ReasoningDelta { message, part, text });
                }
                _ => {}
            }
        }
        self.unsettled = Some(message);
    }

    /// Ends the message that may have been cut, because its outcome is known.
    pub(super) fn settle(&mut self, outcome: MessageOutcome, said: &mut Vec<Said>) {
        if let Some(message) = self.unsettled.take() {
            said.push(Said::End { message, outcome, rest: Vec::new() });
        }
    }

    /// Reads a `user` line: tool results, and the agent's messages to itself. The user's own messages are already
    /// recorded.
    pub(super) fn user(&mut self, line: &MessageLine<'_>, message: &Message<'_>, said: &mut Vec<Said>) {
        if lines::is_true(line.is_replay) {
            return;
        }
        let parent_call = lines::text(line.parent_tool_use_id).map(Cow::into_owned);
        let mut note = lines::text(message.content);
        let mut is_note = note.is_some();
        let elements = lines::elements(message.content);
        // It does not say to which of several results it belongs.
        let mut patch = patches::of_claude(line.tool_use_result).filter(|_| elements.len() == 1);
        for raw in elements {
            let block: Block<'_> = lines::read(Some(raw));
            if lines::text(block.kind).as_deref() == Some("tool_result") {
                if parent_call.is_none() {
                    self.settle(MessageOutcome::Complete, said);
                }
                let result = tool_result(&block, parent_call.clone(), patch.take());
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
        if interrupted && parent_call.is_none() {
            self.interrupted = true;
            self.settle(MessageOutcome::Cancelled, said);
            self.stream.interrupt();
        }
        let is_synthetic = lines::is_true(line.is_synthetic);
        if parent_call.is_none() && !is_synthetic {
            self.settle(MessageOutcome::Complete, said);
        }
        let subtype = if interrupted {
            "interrupt_note"
        } else if parent_call.is_some() {
            "subagent_prompt"
        } else if is_synthetic {
            "synthetic_prompt"
        } else {
            "user_echo"
        };
        said.push(notice(subtype, lines::object(line.message).unwrap_or_else(JsonText::null)));
    }
}

/// Whether the blocks are only text and reasoning, and end with a nonempty text, which may have been cut.
fn ends_with_text(blocks: &[ContentBlock]) -> bool {
    let words = |block: &ContentBlock| matches!(block, ContentBlock::Text(_) | ContentBlock::Reasoning(_));
    blocks.iter().all(words)
        && blocks.last().and_then(ContentBlock::as_text).is_some_and(|text| !text.is_empty())
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

fn tool_result(block: &Block<'_>, parent_call: Option<String>, patch: Option<UnifiedPatch>) -> ToolResult {
    let is_error = lines::is_true(block.is_error);
    ToolResult {
        call: lines::text(block.tool_use_id).unwrap_or_default().into_owned(),
        content: fields::as_given(block.content),
        is_error,
        parent_call,
        patch: patch.filter(|_| !is_error),
    }
}
