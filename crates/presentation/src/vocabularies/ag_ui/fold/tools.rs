//! Tool calls, their results, and the messages of sub-agents.

use std::borrow::Cow;

use tokenrail_domain::{CompleteMessage, ContentBlock, JsonText, MessageOrdinal, ToolResult};

use super::arguments::Arguments;
use super::calls::{Call, NewCall};
use super::teller::{Teller, piece};
use super::{AgUi, AgUiFold, block_of};
use crate::fold::Frames;
use crate::json::{Json, plain_text};
use crate::vocabularies::ag_ui::dto::{
    AbandonedPartsDto, AgUiEvent, CustomDto, ForeignValue, LooseResultDto, Tool,
};
use crate::vocabularies::turns::call_state::CallState;
use crate::vocabularies::turns::said_words::WordKind;

/// The longest result of a tool call that is sent, in bytes.
const RESULT_BYTES: usize = 1 << 20;

/// The result of a call that begins again.
const REPLACED: &str = "The call was streamed with other arguments. It begins again.";

impl AgUiFold {
    /// More arguments of a call of the agent itself.
    pub(super) fn input<T: Frames<AgUi>>(
        &mut self,
        message: MessageOrdinal,
        (call, tool): (&str, Option<&str>),
        fragment: &str,
        out: &mut Teller<'_, T>,
    ) {
        self.end_words(message, out);
        let state = self.calls.get(call).map(|known| known.state);
        match state {
            Some(CallState::Streaming) => {}
            // The call itself came before its last fragment, so the client already has all arguments. Or the call was
            // cut at a permission request: then it comes whole in the next run.
            Some(_) | None if tool.is_none() => return,
            _ => self.begin_call((call, tool.unwrap_or_default()), Some(message), None, out),
        }
        if let Some(known) = self.calls.get_mut(call) {
            let good = known.arguments.add(fragment);
            out.arguments(&known.id, good, None);
        }
    }

    fn begin_call<T: Frames<AgUi>>(
        &mut self,
        (call, tool): (&str, &str),
        message: Option<MessageOrdinal>,
        sub_agent: Option<&str>,
        out: &mut Teller<'_, T>,
    ) {
        let run = self.runs.number;
        self.calls.begin(call, NewCall { tool, message, run, sub_agent });
        let Some(known) = self.calls.get(call) else { return };
        let words = message.and_then(|message| self.open.get(&message));
        let first = words.and_then(|words| words.first_text.as_ref());
        let parent_message_id = first.filter(|(of, _)| *of == run).map(|(_, id)| id.as_str());
        out.tell_of(
            sub_agent,
            AgUiEvent::ToolCallStart {
                tool_call_id: &known.id,
                tool_call_name: &known.tool,
                parent_message_id,
            },
        );
    }

    /// Completes the arguments of a call, and begins the call if its arguments were not streamed.
    pub(super) fn made<T: Frames<AgUi>>(
        &mut self,
        (call, tool): (&str, &str),
        input: &JsonText,
        message: Option<MessageOrdinal>,
        parent: Option<&str>,
        out: &mut Teller<'_, T>,
    ) {
        let whole = serde_json::to_string(&Json(input)).unwrap_or_default();
        // JSON that common parsers cannot read becomes a text, and is not compared.
        let is_compared = whole == input.as_str().trim();
        let known = self.calls.get(call);
        match known.filter(|known| !known.state.is_before(known.message, message)) {
            Some(known) if known.state != CallState::Streaming => return,
            Some(known) if is_compared && known.arguments.rest_of(&whole).is_none() => {
                let message = known.message.or(message);
                self.replace(call, out);
                self.begin_call((call, tool), message, None, out);
            }
            Some(_) => {}
            None => {
                let sub_agent = parent.map(|parent| self.sub_agent(parent, out));
                self.begin_call((call, tool), message, sub_agent.as_deref(), out);
            }
        }
        let Some(known) = self.calls.get_mut(call) else { return };
        let rest = known.arguments.rest_of(&whole).unwrap_or_else(|| known.arguments.rest());
        end_arguments(known, &rest, out);
    }

    /// Ends a call whose arguments were streamed wrong, because nothing that was sent can be taken back.
    fn replace<T: Frames<AgUi>>(&mut self, call: &str, out: &mut Teller<'_, T>) {
        let id = self.calls.id(call);
        let tool_call_ids = self.cut(|known| known.id == id, REPLACED, out);
        let value = CustomDto::Abandoned(AbandonedPartsDto { message_ids: Vec::new(), tool_call_ids });
        out.tell(AgUiEvent::Custom { name: "tokenrail.abandoned", value });
    }

    /// The id of the sub-agent of this call, which starts if it is new.
    fn sub_agent<T: Frames<AgUi>>(&mut self, parent: &str, out: &mut Teller<'_, T>) -> String {
        self.sub_agents.of(parent, &self.calls, self.runs.number, out)
    }

    pub(super) fn result<T: Frames<AgUi>>(&mut self, result: &ToolResult, out: &mut Teller<'_, T>) {
        let run = self.runs.number;
        let Some(known) = self.calls.get_mut(&result.call) else {
            let value = LooseResultDto {
                tool_call_id: &result.call,
                content: ForeignValue::new(&result.content),
                is_error: result.is_error,
            };
            let value = CustomDto::Result(value);
            return out.tell(AgUiEvent::Custom { name: "tokenrail.toolResult", value });
        };
        if known.state == CallState::Ended {
            return;
        }
        let content = shortened(plain_text(&result.content));
        let call = known.id.clone();
        let error = result.is_error.then_some(piece(&content));
        self.sub_agents.end(&call, error, run, out);
        end_call(known, run, &content, result.is_error, out);
    }

    /// A message of a sub-agent. Sub-agents have no deltas.
    pub(super) fn of_sub_agent<T: Frames<AgUi>>(
        &mut self,
        complete: &CompleteMessage,
        parent: &str,
        out: &mut Teller<'_, T>,
    ) {
        let sub_agent = &*self.sub_agent(parent, out);
        for block in &complete.blocks {
            let (kind, text) = match block {
                ContentBlock::Text(text) => (WordKind::Text, text),
                ContentBlock::Reasoning(text) => (WordKind::Reasoning, text),
                ContentBlock::ToolUse { call, tool, input } => {
                    self.made((call, tool), input, None, Some(parent), out);
                    continue;
                }
                ContentBlock::Other(given) => {
                    block_of(given, Some(sub_agent), out);
                    continue;
                }
            };
            if !text.is_empty() {
                let id = &*self.part_id(complete.message);
                out.begin_words(kind, id, Some(sub_agent));
                out.more_words(kind, id, text, Some(sub_agent));
                out.end_words(kind, id, Some(sub_agent));
            }
        }
    }
}

/// Ends the arguments of a call with the rest of them.
fn end_arguments<T: Frames<AgUi>>(call: &mut Call, rest: &str, out: &mut Teller<'_, T>) {
    let sub_agent = call.sub_agent.as_deref();
    out.arguments(&call.id, rest, sub_agent);
    out.tell_of(sub_agent, AgUiEvent::ToolCallEnd { tool_call_id: &call.id });
    call.state = CallState::Made;
    // The call is known until the turn ends, but nothing compares its arguments any more.
    call.arguments = Arguments::default();
}

/// Ends a call with its result.
pub(super) fn end_call<T: Frames<AgUi>>(
    call: &mut Call,
    run: u32,
    content: &str,
    is_error: bool,
    out: &mut Teller<'_, T>,
) {
    if call.state == CallState::Streaming {
        let rest = call.arguments.rest();
        end_arguments(call, &rest, out);
    }
    let (tool_call_id, sub_agent) = (call.id.as_str(), call.sub_agent.as_deref());
    if call.run != run {
        // A result belongs to a call of the same run. Clients that know the call keep its arguments.
        let (tool_call_name, parent_message_id) = (call.tool.as_str(), None);
        let again = AgUiEvent::ToolCallStart { tool_call_id, tool_call_name, parent_message_id };
        out.tell_of(sub_agent, again);
        out.tell_of(sub_agent, AgUiEvent::ToolCallEnd { tool_call_id });
    }
    let message_id = &*format!("{tool_call_id}-result");
    let told = AgUiEvent::ToolCallResult { message_id, tool_call_id, content, role: Tool };
    out.tell_result(sub_agent, told, is_error);
    call.state = CallState::Ended;
}

/// A result that is not too long for clients.
fn shortened(text: String) -> Cow<'static, str> {
    if text.len() <= RESULT_BYTES {
        return text.into();
    }
    let begin = &text[..text.floor_char_boundary(RESULT_BYTES)];
    format!("{begin}\n[The result has {} bytes. The rest is in the events of the agent.]", text.len()).into()
}
