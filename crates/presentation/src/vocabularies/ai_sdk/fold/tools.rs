//! Tool calls, their results, and the messages of sub-agents.

use tokenrail_domain::{CompleteMessage, ContentBlock, JsonText, MessageOrdinal, Part, ToolResult};

use super::{AiSdk, AiSdkFold, CallState, SdkVersion};
use crate::fold::Frames;
use crate::vocabularies::ai_sdk::dto::{
    Chunk, ForeignJson, ParentDto, StrayResultDto, SubAgentDto, ToolMetadataDto, Yes, text_of,
};

/// The error text of a call whose input was cut short.
const CUT: &str = "the call was incomplete";

impl AiSdkFold {
    pub(super) fn tool_input(
        &mut self,
        message: MessageOrdinal,
        part: Part,
        (call, tool): (&str, Option<&str>),
        fragment: &str,
        out: &mut impl Frames<AiSdk>,
    ) {
        self.begin_message(message, out);
        self.close_words(message, out);
        self.messages.entry(message).or_default().call(part, call);
        match self.calls.state(call) {
            Some(CallState::Streaming) => {}
            // The call itself came before its last input delta, so the client already has all of the input.
            Some(CallState::Made) => return,
            None | Some(CallState::Cut | CallState::Done) => {
                let tool = tool.unwrap_or_default();
                self.calls.set(call, tool, CallState::Streaming);
                out.frame(&Chunk::ToolInputStart {
                    tool_call_id: call,
                    tool_name: tool,
                    provider_executed: Yes,
                    dynamic: Yes,
                });
            }
        }
        if !fragment.is_empty() {
            out.frame(&Chunk::ToolInputDelta { tool_call_id: call, input_text_delta: fragment });
        }
    }

    pub(super) fn call_made(
        &mut self,
        (call, tool): (&str, &str),
        input: &JsonText,
        parent: Option<&str>,
        out: &mut impl Frames<AiSdk>,
    ) {
        if matches!(self.calls.state(call), Some(CallState::Made | CallState::Done)) {
            return;
        }
        self.calls.set(call, tool, CallState::Made);
        let parent = parent.map(|parent| ParentDto { parent_tool_call_id: parent });
        input_available((call, tool), input, parent, out);
    }

    pub(super) fn call_cut(
        &mut self,
        (call, tool): (&str, &str),
        input: &JsonText,
        out: &mut impl Frames<AiSdk>,
    ) {
        self.calls.set(call, tool, CallState::Cut);
        if self.version < SdkVersion::V6 {
            // The first releases of version 5 do not know `tool-input-error`.
            input_available((call, tool), input, None, out);
            out.frame(&Chunk::ToolOutputError {
                tool_call_id: call,
                error_text: CUT,
                provider_executed: Yes,
                dynamic: Yes,
            });
            return;
        }
        out.frame(&Chunk::ToolInputError {
            tool_call_id: call,
            tool_name: tool,
            input: ForeignJson(input),
            error_text: CUT,
            provider_executed: Yes,
            dynamic: Yes,
        });
    }

    pub(super) fn call_failed(&mut self, call: &str, why: &str, out: &mut impl Frames<AiSdk>) {
        self.calls.set(call, "", CallState::Done);
        out.frame(&Chunk::ToolOutputError {
            tool_call_id: call,
            error_text: why,
            provider_executed: Yes,
            dynamic: Yes,
        });
    }

    pub(super) fn tool_result(&mut self, result: &ToolResult, out: &mut impl Frames<AiSdk>) {
        let ToolResult { call, content, is_error, parent_call: _, patch: _ } = result;
        let output = ForeignJson(content);
        if self.calls.state(call).is_none() {
            let data = StrayResultDto { tool_call_id: call, output, is_error: *is_error };
            out.frame(&Chunk::StrayResult { data });
        } else if *is_error {
            self.call_failed(call, &text_of(content), out);
        } else {
            self.calls.set(call, "", CallState::Done);
            out.frame(&Chunk::ToolOutputAvailable {
                tool_call_id: call,
                output,
                provider_executed: Yes,
                dynamic: Yes,
            });
        }
    }

    /// Sends a sub-agent's message. Its text is not the agent's own text, so it is sent next to the message. Its tool
    /// calls name the call to which they belong.
    pub(super) fn sub_agent(
        &mut self,
        message: &CompleteMessage,
        parent: &str,
        out: &mut impl Frames<AiSdk>,
    ) {
        self.begin_step(out);
        let reasoning = message.blocks.iter().filter_map(|block| match block {
            ContentBlock::Reasoning(text) => Some(text.as_str()),
            _ => None,
        });
        let (text, reasoning) = (message.text(), reasoning.collect::<String>());
        if !text.is_empty() || !reasoning.is_empty() {
            let data = SubAgentDto { parent_tool_call_id: parent, text, reasoning };
            out.frame(&Chunk::SubAgent { id: self.message(message.message), data });
        }
        for block in &message.blocks {
            if let ContentBlock::ToolUse { call, tool, input } = block {
                self.call_made((call, tool), input, Some(parent), out);
            }
        }
    }
}

fn input_available(
    (call, tool): (&str, &str),
    input: &JsonText,
    parent: Option<ParentDto<'_>>,
    out: &mut impl Frames<AiSdk>,
) {
    out.frame(&Chunk::ToolInputAvailable {
        tool_call_id: call,
        tool_name: tool,
        input: ForeignJson(input),
        provider_executed: Yes,
        provider_metadata: parent.map(|tokenrail| ToolMetadataDto { tokenrail }),
        dynamic: Yes,
    });
}
