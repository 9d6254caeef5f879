//! The bodies of events, in the streams. The codes below are stored: new ones may be added, but none may change.

use tokenrail_domain::{
    AgentError, CompleteMessage, ContentBlock, ErrorClass, EventBody, ImageType, JsonText, MessageOutcome,
    Notice, PromptImage, Sequence, ToolCall, ToolResult, TurnOutcome, TurnResult, UnifiedPatch, Usage,
};

use super::fields::narrow;
use super::streams::{StreamReaders, Streams};
use super::{MalformedBatch, TextSearch};

const USER_MESSAGE: u8 = 0;
const TEXT_DELTA: u8 = 1;
const REASONING_DELTA: u8 = 2;
const TOOL_INPUT_DELTA: u8 = 3;
const MESSAGE: u8 = 4;
const TOOL_CALL: u8 = 5;
const TOOL_RESULT: u8 = 6;
const USAGE: u8 = 7;
const NOTICE: u8 = 8;
const ABANDONED: u8 = 9;
const ERROR: u8 = 10;
const TURN_RESULT: u8 = 11;
/// A user message with images. Without images, it is a `USER_MESSAGE`, as earlier versions wrote it.
const USER_MESSAGE_WITH_IMAGES: u8 = 12;
/// A tool result with a patch. Without one, it is a `TOOL_RESULT`, as earlier versions wrote it.
const TOOL_RESULT_WITH_PATCH: u8 = 13;

const BLOCK_TEXT: u64 = 0;
const BLOCK_REASONING: u64 = 1;
const BLOCK_TOOL_USE: u64 = 2;
const BLOCK_OTHER: u64 = 3;

pub(super) fn write(out: &mut Streams, body: &EventBody, raw: Option<&[u8]>, search: TextSearch) {
    let raw = raw.filter(|_| search == TextSearch::On);
    match body {
        EventBody::UserMessage { content, images } => write_user_message(out, content, images),
        EventBody::TextDelta { message, part, text } => {
            out.kinds.push(TEXT_DELTA);
            out.place(*message, *part);
            out.delta_text(text, raw);
        }
        EventBody::ReasoningDelta { message, part, text } => {
            out.kinds.push(REASONING_DELTA);
            out.place(*message, *part);
            out.delta_text(text, raw);
        }
        EventBody::ToolInputDelta { message, part, call, tool, fragment } => {
            out.kinds.push(TOOL_INPUT_DELTA);
            out.place(*message, *part);
            out.text(call);
            out.maybe_text(tool.as_deref());
            out.delta_text(fragment, raw);
        }
        EventBody::Message(message) => write_message(out, message),
        EventBody::ToolCall(call) => write_tool_call(out, call),
        EventBody::ToolResult(result) => write_tool_result(out, result),
        EventBody::Usage(it) => {
            let Usage { stop_reason, usage } = &**it;
            out.kinds.push(USAGE);
            out.maybe_text(stop_reason.as_deref());
            out.text(usage.as_str());
        }
        EventBody::Notice(it) => {
            let Notice { subtype, data } = &**it;
            out.kinds.push(NOTICE);
            out.text(subtype);
            out.text(data.as_str());
        }
        EventBody::Abandoned { message } => {
            out.kinds.push(ABANDONED);
            out.number(u64::from(message.0));
        }
        EventBody::Error(error) => {
            out.kinds.push(ERROR);
            write_error(out, error);
        }
        EventBody::TurnResult(result) => write_result(out, result),
    }
}

/// Reads one event's body; `raw` is its raw line, already read.
pub(super) fn read(from: &mut StreamReaders, raw: Option<&[u8]>) -> Result<EventBody, MalformedBatch> {
    Ok(match from.kinds.byte()? {
        USER_MESSAGE => EventBody::UserMessage { content: from.text()?, images: Vec::new() },
        USER_MESSAGE_WITH_IMAGES => {
            EventBody::UserMessage { content: from.text()?, images: read_images(from)? }
        }
        TEXT_DELTA => {
            let (message, part) = from.place()?;
            EventBody::TextDelta { message, part, text: from.delta_text(raw)? }
        }
        REASONING_DELTA => {
            let (message, part) = from.place()?;
            EventBody::ReasoningDelta { message, part, text: from.delta_text(raw)? }
        }
        TOOL_INPUT_DELTA => {
            let (message, part) = from.place()?;
            let (call, tool) = (from.text()?, from.maybe_text()?);
            EventBody::ToolInputDelta { message, part, call, tool, fragment: from.delta_text(raw)? }
        }
        MESSAGE => EventBody::Message(Box::new(read_message(from)?)),
        TOOL_CALL => EventBody::ToolCall(Box::new(ToolCall {
            call: from.text()?,
            tool: from.text()?,
            input: from.json()?,
            parent_call: from.maybe_text()?,
        })),
        TOOL_RESULT => EventBody::ToolResult(Box::new(read_tool_result(from)?)),
        TOOL_RESULT_WITH_PATCH => {
            let result = read_tool_result(from)?;
            let patch = Some(UnifiedPatch::new_unchecked(from.text()?));
            EventBody::ToolResult(Box::new(ToolResult { patch, ..result }))
        }
        USAGE => EventBody::Usage(Box::new(Usage { stop_reason: from.maybe_text()?, usage: from.json()? })),
        NOTICE => EventBody::Notice(Box::new(Notice { subtype: from.text()?, data: from.json()? })),
        ABANDONED => EventBody::Abandoned { message: from.message()? },
        ERROR => EventBody::Error(Box::new(read_error(from)?)),
        TURN_RESULT => EventBody::TurnResult(Box::new(read_result(from)?)),
        _ => return Err(MalformedBatch),
    })
}

fn write_user_message(out: &mut Streams, content: &str, images: &[PromptImage]) {
    out.kinds.push(if images.is_empty() { USER_MESSAGE } else { USER_MESSAGE_WITH_IMAGES });
    out.text(content);
    if images.is_empty() {
        return;
    }
    out.number(images.len() as u64);
    for PromptImage { media_type, bytes } in images {
        out.code(&ImageType::ALL, *media_type);
        out.number(*bytes);
    }
}

fn read_images(from: &mut StreamReaders) -> Result<Vec<PromptImage>, MalformedBatch> {
    let mut images = Vec::new();
    for _ in 0..from.number()? {
        images.push(PromptImage { media_type: from.code(&ImageType::ALL)?, bytes: from.number()? });
    }
    Ok(images)
}

fn write_message(out: &mut Streams, message: &CompleteMessage) {
    let CompleteMessage { message, blocks, first_sequence, outcome, parent_call } = message;
    out.kinds.push(MESSAGE);
    out.number(u64::from(message.0));
    out.maybe_number(first_sequence.map(|first| first.0));
    out.code(&MessageOutcome::ALL, *outcome);
    out.maybe_text(parent_call.as_deref());
    out.number(blocks.len() as u64);
    for block in blocks {
        match block {
            ContentBlock::Text(text) => {
                out.number(BLOCK_TEXT);
                out.text(text);
            }
            ContentBlock::Reasoning(text) => {
                out.number(BLOCK_REASONING);
                out.text(text);
            }
            ContentBlock::ToolUse { call, tool, input } => {
                out.number(BLOCK_TOOL_USE);
                out.text(call);
                out.text(tool);
                out.text(input.as_str());
            }
            ContentBlock::Other(value) => {
                out.number(BLOCK_OTHER);
                out.text(value.as_str());
            }
        }
    }
}

fn read_message(from: &mut StreamReaders) -> Result<CompleteMessage, MalformedBatch> {
    let message = from.message()?;
    let first_sequence = from.maybe_number()?.map(Sequence);
    let outcome = from.code(&MessageOutcome::ALL)?;
    let parent_call = from.maybe_text()?;
    let mut blocks = Vec::new();
    for _ in 0..from.number()? {
        blocks.push(match from.number()? {
            BLOCK_TEXT => ContentBlock::Text(from.text()?),
            BLOCK_REASONING => ContentBlock::Reasoning(from.text()?),
            BLOCK_TOOL_USE => {
                ContentBlock::ToolUse { call: from.text()?, tool: from.text()?, input: from.json()? }
            }
            BLOCK_OTHER => ContentBlock::Other(from.json()?),
            _ => return Err(MalformedBatch),
        });
    }
    Ok(CompleteMessage { message, blocks, first_sequence, outcome, parent_call })
}

fn write_tool_call(out: &mut Streams, made: &ToolCall) {
    let ToolCall { call, tool, input, parent_call } = made;
    out.kinds.push(TOOL_CALL);
    out.text(call);
    out.text(tool);
    out.text(input.as_str());
    out.maybe_text(parent_call.as_deref());
}

fn write_tool_result(out: &mut Streams, result: &ToolResult) {
    let ToolResult { call, content, is_error, parent_call, patch } = result;
    out.kinds.push(if patch.is_none() { TOOL_RESULT } else { TOOL_RESULT_WITH_PATCH });
    out.text(call);
    out.text(content.as_str());
    out.number(u64::from(*is_error));
    out.maybe_text(parent_call.as_deref());
    if let Some(patch) = patch {
        out.text(patch.as_str());
    }
}

/// All of it but the patch.
fn read_tool_result(from: &mut StreamReaders) -> Result<ToolResult, MalformedBatch> {
    Ok(ToolResult {
        call: from.text()?,
        content: from.json()?,
        is_error: from.flag()?,
        parent_call: from.maybe_text()?,
        patch: None,
    })
}

fn write_error(out: &mut Streams, error: &AgentError) {
    let AgentError { class, code, text, retry_after_ms, recoverable } = error;
    out.code(&ErrorClass::ALL, *class);
    out.maybe_text(code.as_deref());
    out.text(text);
    out.maybe_number(*retry_after_ms);
    out.number(u64::from(*recoverable));
}

fn read_error(from: &mut StreamReaders) -> Result<AgentError, MalformedBatch> {
    Ok(AgentError {
        class: from.code(&ErrorClass::ALL)?,
        code: from.maybe_text()?,
        text: from.text()?,
        retry_after_ms: from.maybe_number()?,
        recoverable: from.flag()?,
    })
}

fn write_result(out: &mut Streams, result: &TurnResult) {
    let TurnResult { outcome, text, duration_ms, num_turns, cost_usd, usage, message_count, error, origin } =
        result;
    out.kinds.push(TURN_RESULT);
    out.code(&TurnOutcome::ALL, *outcome);
    out.text(text);
    out.number(*duration_ms);
    out.maybe_number(num_turns.map(u64::from));
    out.maybe_number(cost_usd.map(f64::to_bits));
    out.maybe_text(usage.as_ref().map(JsonText::as_str));
    out.number(u64::from(*message_count));
    out.number(u64::from(error.is_some()));
    if let Some(error) = error {
        write_error(out, error);
    }
    out.maybe_text(origin.as_deref());
}

fn read_result(from: &mut StreamReaders) -> Result<TurnResult, MalformedBatch> {
    Ok(TurnResult {
        outcome: from.code(&TurnOutcome::ALL)?,
        text: from.text()?,
        duration_ms: from.number()?,
        num_turns: from.maybe_number()?.map(narrow).transpose()?,
        cost_usd: from.maybe_number()?.map(f64::from_bits),
        usage: from.maybe_text()?.map(JsonText::new_unchecked),
        message_count: narrow(from.number()?)?,
        error: if from.flag()? { Some(read_error(from)?) } else { None },
        origin: from.maybe_text()?,
    })
}
