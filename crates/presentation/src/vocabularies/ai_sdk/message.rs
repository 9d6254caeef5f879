//! Whole messages: the chunks of one response, put together as the AI SDK puts them together. A client that reads a
//! message and a client that has streamed it then show the same.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokenrail_domain::{AgentId, MessageOrdinal, TurnNumber, message_id};

use super::fold::AiSdk;
use crate::fold::Frames;
use crate::json::IdText;
use crate::vocabularies::ai_sdk::dto::{
    AnswerDto, ApprovalDto, Chunk, DataPartDto, PartId, ToolPartDto, ToolState, TruncatedDto, UiPart,
    WordsDto, WordsState, Yes,
};

/// What a part counts beside its text, in bytes.
const PART_BYTES: usize = 256;

/// The error text of a call whose result does not fit into the message.
const LEFT_OUT: &str = "the result is left out, because the answer is too long";

/// The message that the chunks of a turn make.
pub(crate) struct Message {
    id: IdText,
    /// How many bytes the parts may still take.
    room: usize,
    metadata: Value,
    parts: Vec<UiPart<'static>>,
    /// The open texts and where they are in `parts`.
    open: Vec<(PartId, usize)>,
}

impl Message {
    /// A message whose parts take at most about `room` bytes. What does not fit is left out.
    pub(crate) fn new(agent: AgentId, turn: TurnNumber, room: usize) -> Self {
        let id = IdText(message_id(agent, turn, MessageOrdinal(0)));
        Self { id, room, metadata: Value::Null, parts: Vec::new(), open: Vec::new() }
    }

    /// `None` if the turn had no chunks: it was cancelled before it started.
    pub(crate) fn dto(&self) -> Option<AnswerDto<'_>> {
        let Self { id, room: _, metadata, parts, open: _ } = self;
        (!metadata.is_null()).then_some(AnswerDto { id: *id, role: "assistant", metadata, parts })
    }

    /// Takes room for so many bytes. If there is not enough, the message gets nothing more that needs room.
    fn take_room(&mut self, bytes: usize) -> bool {
        let Some(left) = self.room.checked_sub(bytes) else {
            self.room = 0;
            self.describe(&TruncatedDto { truncated: Yes });
            return false;
        };
        self.room = left;
        true
    }

    fn push(&mut self, part: UiPart<'static>) -> bool {
        let fits = self.take_room(PART_BYTES);
        if fits {
            self.parts.push(part);
        }
        fits
    }

    /// The JSON of a value, if it fits. All types that are written here can be serialized.
    fn raw(&mut self, value: &impl Serialize) -> Option<Box<RawValue>> {
        let json = to_raw_value(value).ok()?;
        self.take_room(json.get().len()).then_some(json)
    }

    fn begin(&mut self, id: PartId, part: fn(WordsDto) -> UiPart<'static>) {
        if self.push(part(WordsDto::default())) {
            self.open.push((id, self.parts.len() - 1));
        }
    }

    fn words(&mut self, id: PartId) -> Option<&mut WordsDto> {
        let (_, at) = *self.open.iter().find(|(open, _)| *open == id)?;
        match self.parts.get_mut(at)? {
            UiPart::Text(words) | UiPart::Reasoning(words) => Some(words),
            _ => None,
        }
    }

    fn say(&mut self, id: PartId, delta: &str) {
        if self.words(id).is_some()
            && self.take_room(delta.len())
            && let Some(words) = self.words(id)
        {
            words.text.push_str(delta);
        }
    }

    fn end(&mut self, id: PartId) {
        if let Some(words) = self.words(id) {
            words.state = WordsState::Done;
        }
        self.open.retain(|(open, _)| *open != id);
    }

    /// Where the current step begins: after its `step-start`.
    fn step(&self) -> usize {
        let start = self.parts.iter().rposition(|part| matches!(part, UiPart::StepStart));
        start.map_or(0, |start| start + 1)
    }

    /// The newest part that shows this call, among those from `from` on.
    fn tool(&mut self, call: &str, from: usize) -> Option<&mut ToolPartDto> {
        self.parts.iter_mut().skip(from).rev().find_map(|part| match part {
            UiPart::DynamicTool(tool) if tool.tool_call_id == call => Some(&mut **tool),
            _ => None,
        })
    }

    /// The call in the current step. A call with the same id in an earlier step is another one.
    fn call(&mut self, call: &str, name: &str) -> Option<&mut ToolPartDto> {
        let step = self.step();
        if self.tool(call, step).is_none() {
            self.push(UiPart::DynamicTool(Box::new(ToolPartDto::new(call, name))));
        }
        self.tool(call, step)
    }

    fn update(&mut self, call: &str, change: impl FnOnce(&mut ToolPartDto)) {
        if let Some(tool) = self.tool(call, 0) {
            change(tool);
        }
    }

    fn approved(&mut self, id: &str, approved: bool, reason: &str) {
        let calls = self.parts.iter_mut().filter_map(|part| match part {
            UiPart::DynamicTool(tool) => Some(tool),
            _ => None,
        });
        for tool in calls {
            if let Some(approval) = tool.approval.as_mut().filter(|approval| approval.id == id) {
                approval.approved = Some(approved);
                approval.reason = Some(reason.to_owned());
                tool.state = ToolState::ApprovalResponded;
            }
        }
    }

    fn data(&mut self, chunk: &Chunk<'_>) {
        if let Some(chunk) = self.raw(chunk) {
            self.push(UiPart::Data(DataPartDto(chunk)));
        }
    }

    fn describe(&mut self, metadata: &impl Serialize) {
        // Foreign numbers that serde_json cannot read are left out. They are in the events.
        if let Ok(metadata) = serde_json::to_value(metadata) {
            merge(&mut self.metadata, metadata);
        }
    }
}

impl Frames<AiSdk> for Message {
    fn frame(&mut self, chunk: &Chunk<'_>) {
        match chunk {
            Chunk::Start { message_id: _, message_metadata } => self.describe(message_metadata),
            Chunk::MessageMetadata { message_metadata } => self.describe(message_metadata),
            Chunk::Finish { finish_reason: _, message_metadata } => self.describe(message_metadata),
            Chunk::StartStep => {
                self.push(UiPart::StepStart);
            }
            Chunk::ResetStep => {
                self.parts.truncate(self.step());
                self.open.clear();
            }
            Chunk::TextStart { id } => self.begin(*id, UiPart::Text),
            Chunk::ReasoningStart { id } => self.begin(*id, UiPart::Reasoning),
            Chunk::TextDelta { id, delta } | Chunk::ReasoningDelta { id, delta } => self.say(*id, delta),
            Chunk::TextEnd { id } | Chunk::ReasoningEnd { id } => self.end(*id),
            Chunk::NonFatal { .. }
            | Chunk::Abandoned { .. }
            | Chunk::SubAgent { .. }
            | Chunk::Content { .. }
            | Chunk::StrayResult { .. } => self.data(chunk),
            // A notice is transient, the input of an ended call is complete, and the metadata says how the turn ended.
            Chunk::FinishStep
            | Chunk::Notice { .. }
            | Chunk::ToolInputDelta { .. }
            | Chunk::Error { .. }
            | Chunk::Abort { .. } => {}
            _ => self.tool_chunk(chunk),
        }
    }
}

impl Message {
    fn call_failed(&mut self, call: &str, why: &str) {
        self.update(call, |tool| {
            tool.end(ToolState::OutputError);
            tool.error_text = Some(why.to_owned());
        });
    }

    fn tool_chunk(&mut self, chunk: &Chunk<'_>) {
        match chunk {
            Chunk::ToolInputStart { tool_call_id, tool_name, .. } => {
                if let Some(tool) = self.call(tool_call_id, tool_name) {
                    tool.begin(tool_name, ToolState::InputStreaming, None);
                }
            }
            Chunk::ToolInputAvailable { tool_call_id, tool_name, input, provider_metadata, .. } => {
                let metadata = provider_metadata.as_ref().and_then(|metadata| self.raw(metadata));
                let input = self.raw(input);
                if let Some(tool) = self.call(tool_call_id, tool_name) {
                    tool.begin(tool_name, ToolState::InputAvailable, input);
                    tool.call_provider_metadata = metadata.or(tool.call_provider_metadata.take());
                }
            }
            Chunk::ToolInputError { tool_call_id, tool_name, input, error_text, .. } => {
                let input = self.raw(input);
                if let Some(tool) = self.call(tool_call_id, tool_name) {
                    tool.begin(tool_name, ToolState::OutputError, input);
                    tool.error_text = Some((*error_text).to_owned());
                }
            }
            Chunk::ToolOutputAvailable { tool_call_id, output, .. } => match self.raw(output) {
                Some(output) => self.update(tool_call_id, |tool| {
                    tool.end(ToolState::OutputAvailable);
                    tool.output = Some(output);
                }),
                None => self.call_failed(tool_call_id, LEFT_OUT),
            },
            Chunk::ToolOutputError { tool_call_id, error_text, .. } => {
                let fits = self.take_room(error_text.len());
                self.call_failed(tool_call_id, if fits { error_text } else { LEFT_OUT });
            }
            Chunk::ToolOutputDenied { tool_call_id } => {
                self.update(tool_call_id, |tool| tool.state = ToolState::OutputDenied);
            }
            Chunk::ToolApprovalRequest { approval_id, tool_call_id } => self.update(tool_call_id, |tool| {
                tool.state = ToolState::ApprovalRequested;
                tool.approval =
                    Some(ApprovalDto { id: (*approval_id).to_owned(), approved: None, reason: None });
            }),
            Chunk::ToolApprovalResponse { approval_id, approved, reason, .. } => {
                self.approved(approval_id, *approved, reason);
            }
            _ => {}
        }
    }
}

/// Merges objects at any depth, as the SDK does. Any other value replaces the old one.
fn merge(old: &mut Value, new: Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in new {
                merge(old.entry(name).or_insert(Value::Null), value);
            }
        }
        (old, new) => *old = new,
    }
}
