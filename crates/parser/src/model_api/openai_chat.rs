//! The Chat Completions API of `OpenAI`, which many other servers implement too.
//!
//! | event | what is emitted |
//! | --- | --- |
//! | the first with an id or a model | notice `init` with both |
//! | `delta.content`, `delta.refusal` | a delta of text |
//! | `delta.reasoning_content`, `delta.reasoning` | a delta of reasoning |
//! | `delta.tool_calls`, `delta.function_call` | a delta of tool input; input that is not text, whole |
//! | `message` in place of `delta` | the same, as one piece |
//! | `finish_reason` of a whole answer ([`WHOLE`]) | the tool calls; the token usage may follow |
//! | other `finish_reason` | an error, and [`Said::Close`] with it: the answer was cut |
//! | `usage` | nothing yet: it is emitted at the end |
//! | `[DONE]`, or the end of the stream of a whole answer | [`Said::End`], usage, [`Said::Close`] |
//! | an object with `error`, an object whose `object` is `error` | an error, and [`Said::Close`] with it |
//! | an object without any of these | notice named after its `type` or `object` |
//!
//! An answer that ends with `[DONE]` and without any `finish_reason` counts as whole, because some servers never send
//! one.
//!
//! Of several choices only the first is emitted, because requests ask for only one.

use serde_json::value::RawValue;
use tokenrail_domain::{AgentError, ContentBlock, ErrorClass, JsonText, Said};

use super::answer::{Answer, Place};
use super::{ApiFormat, failure};
use crate::fields::{self, Raw, raw_structs};
use crate::line::{self, notice};
use crate::open_message::PartKind;

/// The finish reasons of whole answers, in lower case: those of the API, and those of other servers that implement it.
const WHOLE: [&str; 13] = [
    "stop",
    "length",
    "tool_calls",
    "function_call",
    "content_filter",
    "end_turn",
    "stop_sequence",
    "tool_use",
    "max_tokens",
    "max_output_tokens",
    "model_length",
    "eos",
    "eos_token",
];

#[derive(Debug, Default)]
pub(super) struct OpenAiChat {
    /// The tool call of the latest fragment: some servers do not number their calls.
    last_call: u32,
    /// The model has given a reason for not answering.
    refused: bool,
}

raw_structs! {
    struct Chunk { id, model, object, kind = "type", choices, usage, error }

    struct Choice { index, delta, message, finish_reason }

    struct Delta { content, refusal, reasoning_content, reasoning, tool_calls, function_call }

    struct Call {
        index,
        id,
        function,
        /// The custom tool, which takes free text as input.
        custom,
    }

    struct Function { name, arguments, input }
}

impl ApiFormat for OpenAiChat {
    fn event(&mut self, text: &str, answer: &mut Answer, said: &mut Vec<Said>) {
        let Some(chunk) = line::object::<Chunk<'_>>(text, said) else { return };
        let object = fields::text(chunk.object);
        if chunk.error.is_some() {
            return answer.fail(failure::told(chunk.error), said);
        }
        if object.as_deref() == Some("error") {
            return answer.fail(failure::told(whole(text)), said);
        }
        if chunk.choices.is_none() && chunk.usage.is_none() {
            let name = fields::text(chunk.kind).or(object).unwrap_or("untyped".into());
            return said.push(notice(&name, JsonText::new_unchecked(text)));
        }
        answer.introduce(chunk.id, chunk.model, said);
        answer.cost(chunk.usage);
        for choice in fields::elements(chunk.choices) {
            let choice: Choice<'_> = fields::read(Some(choice));
            if fields::number(choice.index).unwrap_or(0) == 0 {
                self.choice(&choice, answer, said);
            }
        }
    }
}

impl OpenAiChat {
    fn choice(&mut self, choice: &Choice<'_>, answer: &mut Answer, said: &mut Vec<Said>) {
        let delta: Delta<'_> = fields::read(choice.delta.or(choice.message));
        let place = |piece, inner| Place { piece, outer: 0, inner };
        answer.say(place(PartKind::Reasoning, 0), delta.reasoning_content.or(delta.reasoning), said);
        answer.say(place(PartKind::Text, 0), delta.content, said);
        answer.say(place(PartKind::Text, 1), delta.refusal, said);
        for raw in fields::elements(delta.tool_calls) {
            let call: Call<'_> = fields::read(Some(raw));
            self.call(&call, call.function.or(call.custom), answer, said);
        }
        if delta.function_call.is_some() {
            self.call(&Call::default(), delta.function_call, answer, said);
        }
        self.refused |= fields::text(delta.refusal).is_some_and(|refusal| !refusal.is_empty());
        // Some servers send an empty reason with each chunk.
        let reason = fields::text(choice.finish_reason).filter(|reason| !matches!(&**reason, "" | "null"));
        if let Some(reason) = reason {
            if let Some(error) = broken_off(&reason) {
                return answer.fail(error, said);
            }
            // To the API, a refusal is a normal end of an answer.
            answer.stopped(Some(if self.refused { "refusal".into() } else { reason }));
            answer.is_whole(said);
        }
    }

    /// Handles a fragment of a tool call. Only the first fragment has the id and the name.
    fn call(&mut self, call: &Call<'_>, function: Raw<'_>, answer: &mut Answer, said: &mut Vec<Said>) {
        let function: Function<'_> = fields::read(function);
        let id = fields::text(call.id).filter(|id| !id.is_empty());
        let index = fields::number(call.index).unwrap_or_else(|| match &id {
            // Without an index, an id begins a new call.
            Some(_) => answer.calls(),
            None => self.last_call,
        });
        self.last_call = index;
        let place = Place { piece: PartKind::ToolInput, outer: 0, inner: index };
        let tool = fields::text(function.name);
        if id.is_some() || tool.is_some() {
            let call = ContentBlock::ToolUse {
                call: id.unwrap_or_default().into_owned(),
                tool: tool.unwrap_or_default().into_owned(),
                // Some servers send the input as JSON, others send fragments of its text.
                input: match (call.custom, function.arguments) {
                    (Some(_), _) => JsonText::string(""),
                    (None, arguments) if is_text(arguments) => fields::tool_input(None),
                    (None, arguments) => fields::tool_input(arguments),
                },
            };
            answer.start(place, call);
        }
        answer.say(place, function.arguments.or(function.input), said);
    }
}

fn is_text(raw: Raw<'_>) -> bool {
    raw.is_some_and(|raw| raw.get().starts_with('"'))
}

/// The error for a finish reason that is not the reason of a whole answer.
fn broken_off(reason: &str) -> Option<AgentError> {
    let lower = reason.to_lowercase();
    if WHOLE.contains(&&*lower) {
        return None;
    }
    let class = match &*lower {
        "insufficient_system_resource" | "server_error" => ErrorClass::Overloaded,
        "network_error" => ErrorClass::Network,
        "timeout" => ErrorClass::Timeout,
        _ => ErrorClass::Unknown,
    };
    Some(failure::broken_off(class, reason))
}

/// The event as one raw value.
fn whole(text: &str) -> Raw<'_> {
    serde_json::from_str::<&RawValue>(text).ok()
}
