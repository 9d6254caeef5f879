//! The Messages API of Anthropic.
//!
//! | event | what is emitted |
//! | --- | --- |
//! | `message_start` | notice `init` with id and model |
//! | `content_block_start` | nothing; a block of an unknown type becomes a part of the message |
//! | `content_block_delta` | a delta of text, reasoning or tool input; nothing for signatures and citations |
//! | `content_block_stop` | the tool call, if the block is one |
//! | `message_delta` | nothing; it contains the token usage and why the answer ends |
//! | `message_stop` | [`Said::End`], usage, [`Said::Close`] |
//! | `error`, an object with `error` and without a type | an error, and [`Said::Close`] with it |
//! | `ping` | nothing |
//! | of any other type | notice named after the type |

use serde_json::value::RawValue;
use tokenrail_domain::{ContentBlock, JsonText, Said};

use super::answer::{Answer, Place};
use super::{ApiFormat, failure};
use crate::fields::{self, Raw, raw_structs};
use crate::line::{self, notice};
use crate::open_message::PartKind;

/// The blocks are numbered and arrive one after the other.
#[derive(Debug)]
pub(super) struct Anthropic;

raw_structs! {
    struct AnthropicEvent { kind = "type", index, message, content_block, delta, usage, error }

    struct Message { id, model, usage }

    struct Block { kind = "type", id, name, input, text, thinking }

    struct Delta { kind = "type", text, thinking, partial_json, stop_reason }
}

impl ApiFormat for Anthropic {
    fn event(&mut self, text: &str, answer: &mut Answer, said: &mut Vec<Said>) {
        let Some(event) = line::object::<AnthropicEvent<'_>>(text, said) else { return };
        let kind = fields::text(event.kind);
        match kind.as_deref() {
            Some("message_start") => {
                let message: Message<'_> = fields::read(event.message);
                answer.introduce(message.id, message.model, said);
                answer.cost(message.usage);
            }
            Some("content_block_start") => {
                if let Some(block) = event.content_block {
                    start(event.index, block, answer, said);
                }
            }
            Some("content_block_delta") => delta(event.index, event.delta, answer, said),
            Some("content_block_stop") => {
                for piece in [PartKind::Text, PartKind::Reasoning] {
                    answer.stop(place(piece, event.index), said);
                }
                answer.complete_call(place(PartKind::ToolInput, event.index), said);
            }
            Some("message_delta") => {
                answer.cost(event.usage);
                let delta: Delta<'_> = fields::read(event.delta);
                answer.stopped(fields::text(delta.stop_reason));
            }
            Some("message_stop") => answer.complete(said),
            Some("ping") => {}
            None | Some("error") if event.error.is_some() => answer.fail(failure::told(event.error), said),
            other => said.push(notice(other.unwrap_or("untyped"), JsonText::new_unchecked(text))),
        }
    }
}

fn place(piece: PartKind, index: Raw<'_>) -> Place {
    Place::new(piece, index, None)
}

fn start(index: Raw<'_>, raw: &RawValue, answer: &mut Answer, said: &mut Vec<Said>) {
    let block: Block<'_> = fields::read(Some(raw));
    match fields::text(block.kind).as_deref() {
        // Both are empty in this API, but some servers send their first piece here.
        Some("text") => answer.say(place(PartKind::Text, index), block.text, said),
        Some("thinking") => answer.say(place(PartKind::Reasoning, index), block.thinking, said),
        Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
            let call = ContentBlock::ToolUse {
                call: fields::text(block.id).unwrap_or_default().into_owned(),
                tool: fields::text(block.name).unwrap_or_default().into_owned(),
                input: fields::tool_input(block.input.filter(|input| input.get() != "\"\"")),
            };
            answer.start(place(PartKind::ToolInput, index), call);
        }
        _ => {
            let other = ContentBlock::Other(JsonText::new_unchecked(raw.get()));
            answer.start(place(PartKind::Other, index), other);
        }
    }
}

fn delta(index: Raw<'_>, delta: Raw<'_>, answer: &mut Answer, said: &mut Vec<Said>) {
    let delta: Delta<'_> = fields::read(delta);
    let (piece, raw) = match fields::text(delta.kind).as_deref() {
        Some("text_delta") => (PartKind::Text, delta.text),
        Some("thinking_delta") => (PartKind::Reasoning, delta.thinking),
        Some("input_json_delta") => (PartKind::ToolInput, delta.partial_json),
        // Signatures, citations and unknown types have nothing to display.
        _ => return,
    };
    answer.say(place(piece, index), raw, said);
}
