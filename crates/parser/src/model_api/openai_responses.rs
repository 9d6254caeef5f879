//! The Responses API of `OpenAI`.
//!
//! | event | what is emitted |
//! | --- | --- |
//! | the first with a `response` | notice `init` with id and model |
//! | `response.output_text.delta`, `response.refusal.delta` | a delta of text |
//! | `response.reasoning_text.delta`, `response.reasoning_summary_text.delta` | a delta of reasoning |
//! | `response.function_call_arguments.delta`, `response.custom_tool_call_input.delta` | a delta of tool input |
//! | `….done` of these, `response.output_item.done` | what the deltas lack; the call, if it is a tool call |
//! | `response.output_item.added` | nothing: it names the tool that is called |
//! | `response.completed`; `response.incomplete` at a limit or a filter | [`Said::End`], usage, [`Said::Close`]; before it the whole answer, if no earlier event contained any of it |
//! | `response.incomplete` for another reason, or none | an error, and [`Said::Close`] with it: the answer was cut |
//! | `response.failed`, `error` | an error, and [`Said::Close`] with it |
//! | `response.cancelled` | the same: the cancel did not come from this program |
//! | `response.queued`, `….in_progress`, `….searching` and the like; parts that are added or done; annotations | nothing |
//! | of any other type | notice named after the type |

use std::borrow::Cow;

use serde_json::value::RawValue;
use tokenrail_domain::{ContentBlock, ErrorClass, JsonText, Said};

use super::answer::{Answer, Place};
use super::{ApiFormat, failure};
use crate::errors::agent_error;
use crate::fields::{self, Raw, raw_structs};
use crate::line::{self, notice};
use crate::open_message::PartKind;

/// Parts have a position in an item, and items have a position in the answer.
#[derive(Debug, Default)]
pub(super) struct OpenAiResponses {
    /// The model has given a reason for not answering.
    refused: bool,
}

/// The first part number of reasoning summaries. An item may have both reasoning and a summary of it.
const SUMMARY: u32 = 1 << 31;

raw_structs! {
    struct ResponsesEvent {
        kind = "type", response, output_index, content_index, summary_index, item, delta, text, refusal,
        arguments, input, error,
    }

    struct Response { id, model, output, usage, error, incomplete_details }

    struct Item { kind = "type", id, call_id, name, arguments, input, content, summary }

    struct Content { kind = "type", text, refusal }

    struct Incomplete { reason }
}

impl ApiFormat for OpenAiResponses {
    fn event(&mut self, text: &str, answer: &mut Answer, said: &mut Vec<Said>) {
        let Some(event) = line::object::<ResponsesEvent<'_>>(text, said) else { return };
        let kind = fields::text(event.kind).unwrap_or_default();
        self.refused |= kind.starts_with("response.refusal.");
        if let Some((place, field)) = place(&kind, &event) {
            return match field {
                Some(whole) => repeat(place, whole, answer, said),
                None => answer.say(place, event.delta, said),
            };
        }
        let response: Response<'_> = fields::read(event.response);
        answer.introduce(response.id, response.model, said);
        match &*kind {
            "response.output_item.added" => item_added(event.output_index, event.item, answer),
            "response.output_item.done" => item_done(event.output_index, event.item, answer, said),
            "response.completed" => self.ended(&response, false, answer, said),
            "response.incomplete" => self.ended(&response, true, answer, said),
            "response.failed" => {
                answer.cost(response.usage);
                answer.fail(failure::told(response.error), said);
            }
            "response.cancelled" => {
                let text = "the model API cancelled its response".to_owned();
                answer.fail(agent_error(ErrorClass::Unknown, None, text), said);
            }
            "error" => answer.fail(failure::told(event.error.or_else(|| whole(text))), said),
            "" if event.error.is_some() => answer.fail(failure::told(event.error), said),
            silent if is_silent(silent) => {}
            "" => said.push(notice("untyped", JsonText::new_unchecked(text))),
            other => said.push(notice(other, JsonText::new_unchecked(text))),
        }
    }
}

impl OpenAiResponses {
    fn ended(
        &mut self,
        response: &Response<'_>,
        is_incomplete: bool,
        answer: &mut Answer,
        said: &mut Vec<Said>,
    ) {
        // The output is used only if no earlier event contained any of it: some servers number its items differently
        // here.
        let output = if answer.is_empty() { fields::elements(response.output) } else { Vec::new() };
        for (index, item) in output.into_iter().enumerate() {
            let index = index.to_string();
            item_done(serde_json::from_str::<&RawValue>(&index).ok(), Some(item), answer, said);
        }
        answer.cost(response.usage);
        let incomplete: Incomplete<'_> = fields::read(response.incomplete_details);
        let reason = match fields::text(incomplete.reason) {
            // The answer ended at a limit or a filter.
            Some(reason) if matches!(&*reason, "max_output_tokens" | "content_filter") => reason,
            reason if is_incomplete => {
                let reason = reason.as_deref().unwrap_or("it is incomplete");
                return answer.fail(failure::broken_off(ErrorClass::Unknown, reason), said);
            }
            Some(reason) => reason,
            None if self.refused => "refusal".into(),
            None if answer.calls() > 0 => "tool_use".into(),
            None => "end_turn".into(),
        };
        answer.stopped(Some(reason));
        answer.complete(said);
    }
}

/// The position of the part that an event concerns, and the whole part if the event contains it.
fn place<'a>(kind: &str, event: &ResponsesEvent<'a>) -> Option<(Place, Option<Raw<'a>>)> {
    let (of, is_done) = match kind.rsplit_once('.')? {
        (of, "delta") => (of, false),
        (of, "done") => (of, true),
        _ => return None,
    };
    let at = |piece, inner| Place::new(piece, event.output_index, inner);
    let (place, whole) = match of {
        "response.output_text" => (at(PartKind::Text, event.content_index), event.text),
        "response.refusal" => (at(PartKind::Text, event.content_index), event.refusal),
        "response.reasoning_text" => (at(PartKind::Reasoning, event.content_index), event.text),
        "response.reasoning_summary_text" => {
            (summary(at(PartKind::Reasoning, event.summary_index)), event.text)
        }
        "response.function_call_arguments" => (at(PartKind::ToolInput, None), event.arguments),
        "response.custom_tool_call_input" => (at(PartKind::ToolInput, None), event.input),
        _ => return None,
    };
    Some((place, is_done.then_some(whole)))
}

fn summary(place: Place) -> Place {
    Place { inner: place.inner | SUMMARY, ..place }
}

/// A part arrives whole.
fn repeat(place: Place, whole: Raw<'_>, answer: &mut Answer, said: &mut Vec<Said>) {
    let text = || fields::text(whole).map(Cow::into_owned);
    match place.piece {
        PartKind::ToolInput => answer.repeat_input(place, whole, said),
        PartKind::Reasoning => {
            if let Some(text) = text() {
                answer.repeat(place, ContentBlock::Reasoning(text), said);
            }
        }
        PartKind::Text | PartKind::Other => {
            if let Some(text) = text() {
                answer.repeat(place, ContentBlock::Text(text), said);
            }
        }
    }
}

fn call(item: &Item<'_>) -> ContentBlock {
    ContentBlock::ToolUse {
        call: fields::text(item.call_id.or(item.id)).unwrap_or_default().into_owned(),
        tool: fields::text(item.name.or(item.kind)).unwrap_or_default().into_owned(),
        input: if is_free_text(item) { JsonText::string("") } else { fields::tool_input(None) },
    }
}

fn is_free_text(item: &Item<'_>) -> bool {
    fields::text(item.kind).as_deref() == Some("custom_tool_call")
}

fn is_call(kind: Option<&str>) -> bool {
    matches!(kind, Some("function_call" | "custom_tool_call" | "mcp_call"))
}

fn item_added(output_index: Raw<'_>, raw: Raw<'_>, answer: &mut Answer) {
    let item: Item<'_> = fields::read(raw);
    if is_call(fields::text(item.kind).as_deref()) {
        answer.start(Place::new(PartKind::ToolInput, output_index, None), call(&item));
    }
}

/// An item is complete. What was not emitted before is emitted now.
fn item_done(output_index: Raw<'_>, raw: Raw<'_>, answer: &mut Answer, said: &mut Vec<Said>) {
    let item: Item<'_> = fields::read(raw);
    let kind = fields::text(item.kind);
    let at = |piece, inner: usize| Place { inner: inner as u32, ..Place::new(piece, output_index, None) };
    match (kind.as_deref(), raw) {
        (kind, _) if is_call(kind) => {
            let place = at(PartKind::ToolInput, 0);
            answer.start(place, call(&item));
            answer.repeat_input(place, item.arguments.or(item.input), said);
            answer.complete_call(place, said);
        }
        (Some("message"), _) => {
            for (index, part) in fields::elements(item.content).into_iter().enumerate() {
                let part: Content<'_> = fields::read(Some(part));
                repeat(at(PartKind::Text, index), part.text.or(part.refusal), answer, said);
            }
        }
        (Some("reasoning"), _) => {
            for (index, part) in fields::elements(item.summary).into_iter().enumerate() {
                let part: Content<'_> = fields::read(Some(part));
                repeat(summary(at(PartKind::Reasoning, index)), part.text, answer, said);
            }
            for (index, part) in fields::elements(item.content).into_iter().enumerate() {
                let part: Content<'_> = fields::read(Some(part));
                if fields::text(part.kind).as_deref() == Some("reasoning_text") {
                    repeat(at(PartKind::Reasoning, index), part.text, answer, said);
                }
            }
        }
        // A tool that the API runs itself: the item is kept unchanged.
        (_, Some(raw)) => {
            answer.start(at(PartKind::Other, 0), ContentBlock::Other(JsonText::new_unchecked(raw.get())));
        }
        (_, None) => {}
    }
}

/// Whether the event only reports progress and has nothing to display.
fn is_silent(kind: &str) -> bool {
    const STATES: [&str; 10] = [
        "created",
        "queued",
        "in_progress",
        "searching",
        "interpreting",
        "generating",
        "completed",
        "added",
        "done",
        "compacting",
    ];
    kind.strip_prefix("response.")
        .and_then(|kind| kind.rsplit('.').next())
        .is_some_and(|s| STATES.contains(&s))
}

/// The event as one raw value.
fn whole(text: &str) -> Raw<'_> {
    serde_json::from_str::<&RawValue>(text).ok()
}
