//! Tools, and the sub-agents that some of them are.

use tokenrail_domain::{CompleteMessage, ContentBlock, JsonText, MessageOrdinal, Part, ToolResult};

use super::{AiSdkFold, CallState, ChunkWriter, SdkVersion};
use crate::dto::{Chunk, ForeignJson, ParentDto, StrayResultDto, SubAgentDto, ToolMetadataDto, Yes, text_of};

/// What a client is told of a call whose input was cut short.
const CUT: &str = "the call was cut short";

impl AiSdkFold {
    pub(super) fn tool_input(
        &mut self,
        message: MessageOrdinal,
        part: Part,
        (call, tool): (&str, Option<&str>),
        fragment: &str,
        out: &mut ChunkWriter,
    ) {
        self.begin_message(message, out);
        self.close_words(message, out);
        self.messages.entry(message).or_default().call(part, call);
        match self.calls.state(call) {
            Some(CallState::Streaming) => {}
            // It was made before the last of its input was said: the client has it whole.
            Some(CallState::Made) => return,
            None | Some(CallState::Cut | CallState::Done) => {
                let tool = tool.unwrap_or_default();
                self.calls.set(call, tool, CallState::Streaming);
                out.push(&Chunk::ToolInputStart {
                    tool_call_id: call,
                    tool_name: tool,
                    provider_executed: Yes,
                    dynamic: Yes,
                });
            }
        }
        if !fragment.is_empty() {
            out.push(&Chunk::ToolInputDelta { tool_call_id: call, input_text_delta: fragment });
        }
    }

    pub(super) fn call_made(
        &mut self,
        (call, tool): (&str, &str),
        input: &JsonText,
        parent: Option<&str>,
        out: &mut ChunkWriter,
    ) {
        if matches!(self.calls.state(call), Some(CallState::Made | CallState::Done)) {
            return;
        }
        self.calls.set(call, tool, CallState::Made);
        let parent = parent.map(|parent| ParentDto { parent_tool_call_id: parent });
        input_available((call, tool), input, parent, out);
    }

    pub(super) fn call_cut(&mut self, (call, tool): (&str, &str), input: &JsonText, out: &mut ChunkWriter) {
        self.calls.set(call, tool, CallState::Cut);
        if self.version < SdkVersion::V6 {
            // The first releases of version 5 know no input that is wrong.
            input_available((call, tool), input, None, out);
            out.push(&Chunk::ToolOutputError {
                tool_call_id: call,
                error_text: CUT,
                provider_executed: Yes,
                dynamic: Yes,
            });
            return;
        }
        out.push(&Chunk::ToolInputError {
            tool_call_id: call,
            tool_name: tool,
            input: ForeignJson(input),
            error_text: CUT,
            provider_executed: Yes,
            dynamic: Yes,
        });
    }

    pub(super) fn call_failed(&mut self, call: &str, why: &str, out: &mut ChunkWriter) {
        self.calls.set(call, "", CallState::Done);
        out.push(&Chunk::ToolOutputError {
            tool_call_id: call,
            error_text: why,
            provider_executed: Yes,
            dynamic: Yes,
        });
    }

    pub(super) fn tool_result(&mut self, result: &ToolResult, out: &mut ChunkWriter) {
        let ToolResult { call, content, is_error, parent_call: _ } = result;
        let output = ForeignJson(content);
        if self.calls.state(call).is_none() {
            let data = StrayResultDto { tool_call_id: call, output, is_error: *is_error };
            out.push(&Chunk::StrayResult { data });
        } else if *is_error {
            self.call_failed(call, &text_of(content), out);
        } else {
            self.calls.set(call, "", CallState::Done);
            out.push(&Chunk::ToolOutputAvailable {
                tool_call_id: call,
                output,
                provider_executed: Yes,
                dynamic: Yes,
            });
        }
    }

    /// What a sub-agent says is not what the agent says: its words go beside the message, and its tool calls name the
    /// call that they belong to.
    pub(super) fn sub_agent(&mut self, message: &CompleteMessage, parent: &str, out: &mut ChunkWriter) {
        self.begin_step(out);
        let reasoning = message.blocks.iter().filter_map(|block| match block {
            ContentBlock::Reasoning(text) => Some(text.as_str()),
            _ => None,
        });
        let (text, reasoning) = (message.text(), reasoning.collect::<String>());
        if !text.is_empty() || !reasoning.is_empty() {
            let data = SubAgentDto { parent_tool_call_id: parent, text, reasoning };
            out.push(&Chunk::SubAgent { id: self.message(message.message), data });
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
    out: &mut ChunkWriter,
) {
    out.push(&Chunk::ToolInputAvailable {
        tool_call_id: call,
        tool_name: tool,
        input: ForeignJson(input),
        provider_executed: Yes,
        provider_metadata: parent.map(|tokenrail| ToolMetadataDto { tokenrail }),
        dynamic: Yes,
    });
}
