//! The UI message stream of the AI SDK: the events of one turn become the chunks of one message.
//!
//! The fold follows the rules that clients require. A part starts before anything is added to it. A step is one request
//! to the model, together with the results of the tools that the model called. Everything that is open is closed before
//! its step ends. The last chunk is `finish`, even after an `error` or an `abort`.

mod calls;
mod ends;
mod notices;
mod spoken;
mod tools;

use std::collections::BTreeMap;

use tokenrail_domain::{
    AgentId, CompleteMessage, ContentBlock, Event, EventBody, MessageOrdinal, Part, ToolCall, TurnNumber,
    message_id,
};

use crate::error::Problem;
use crate::fold::{Fold, Frames, Vocabulary};
use crate::json::{AgentErrorDto, IdText};
use crate::vocabularies::ai_sdk::dto::{Chunk, FinishReason, ForeignJson, PartId, StartDto};
use crate::vocabularies::turns::permission_notices::Approvals;
use calls::{CallState, Calls};
use spoken::{Kind, Spoken};

/// The version of the SDK that a client has named. A named version can receive chunks that not all versions accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum SdkVersion {
    /// The client named no version: only what all releases of versions 5 to 7 accept.
    #[default]
    Any,
    V5,
    V6,
    V7,
    /// From 7.0.70 on, clients know `reset-step`.
    V7Reset,
    /// From 7.0.149 on, clients know the finish reason `interrupted`.
    V7Interrupted,
}

impl SdkVersion {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 6] =
        [Self::Any, Self::V5, Self::V6, Self::V7, Self::V7Reset, Self::V7Interrupted];

    /// Reads `?v=`. A major version means its first release, because a client refuses the whole response if it does not
    /// know one of the chunks.
    pub(crate) fn from_name(name: Option<&str>) -> Result<Self, Problem> {
        let Some(name) = name else { return Ok(Self::Any) };
        // A prerelease comes before its release, so it has the features of the step before that release. A prerelease
        // of a major version's first release has the features of that release.
        let (release, is_prerelease) =
            name.split_once('-').map_or((name, false), |(release, _)| (release, true));
        let is_since =
            |rest: &[u32], step: [u32; 2]| step[..] < *rest || (step[..] == *rest && !is_prerelease);
        let numbers: Option<Vec<u32>> = release.split('.').map(|number| number.parse().ok()).collect();
        Ok(match numbers.as_deref() {
            Some([5, rest @ ..]) if rest.len() <= 2 => Self::V5,
            Some([6, rest @ ..]) if rest.len() <= 2 => Self::V6,
            Some([7, rest @ ..]) if rest.len() <= 2 => match rest {
                _ if is_since(rest, [0, 149]) => Self::V7Interrupted,
                _ if is_since(rest, [0, 70]) => Self::V7Reset,
                _ => Self::V7,
            },
            _ => return Err(Problem::parameter("v", "must be 5, 6 or 7, or a release such as 7.0.149")),
        })
    }

    pub(crate) fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Any => None,
            Self::V5 => Some("5"),
            Self::V6 => Some("6"),
            Self::V7 => Some("7"),
            Self::V7Reset => Some("7.0.70"),
            Self::V7Interrupted => Some("7.0.149"),
        }
    }
}

/// The AI SDK vocabulary.
#[derive(Debug)]
pub(crate) enum AiSdk {}

impl Vocabulary for AiSdk {
    type Frame<'f> = &'f Chunk<'f>;
}

/// The fold of one turn. It starts with the turn's first event.
pub(crate) struct AiSdkFold {
    agent: AgentId,
    turn: TurnNumber,
    version: SdkVersion,
    told: Told,
    in_step: bool,
    /// The newest message of the agent itself, not of a sub-agent. It started the step.
    newest: Option<MessageOrdinal>,
    /// The next message continues the step of an abandoned message.
    same_step: bool,
    messages: BTreeMap<MessageOrdinal, Spoken>,
    calls: Calls,
    /// The permission requests for these calls. Used from version 6 on.
    approvals: Approvals,
    stop_reason: Option<FinishReason>,
}

/// How much of the turn was sent to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    /// The turn's first chunk.
    Start,
    /// Text or reasoning of the agent.
    Words,
}

impl AiSdkFold {
    pub(crate) fn new(agent: AgentId, turn: TurnNumber, version: SdkVersion) -> Self {
        Self {
            agent,
            turn,
            version,
            told: Told::Nothing,
            in_step: false,
            newest: None,
            same_step: false,
            messages: BTreeMap::new(),
            calls: Calls::default(),
            approvals: Approvals::default(),
            stop_reason: None,
        }
    }

    fn message(&self, message: MessageOrdinal) -> IdText {
        IdText(message_id(self.agent, self.turn, message))
    }

    fn part(&self, message: MessageOrdinal, part: Part) -> PartId {
        PartId { message: message_id(self.agent, self.turn, message), part: part.0 }
    }

    fn words(
        &mut self,
        message: MessageOrdinal,
        part: Part,
        kind: Kind,
        text: &str,
        out: &mut impl Frames<AiSdk>,
    ) {
        if text.is_empty() {
            return;
        }
        self.begin_message(message, out);
        let id = self.part(message, part);
        let open = self.messages.get(&message).and_then(|spoken| spoken.open);
        if open != Some((part, kind)) {
            self.close_words(message, out);
            out.frame(&match kind {
                Kind::Text => Chunk::TextStart { id },
                Kind::Reasoning => Chunk::ReasoningStart { id },
            });
        }
        out.frame(&match kind {
            Kind::Text => Chunk::TextDelta { id, delta: text },
            Kind::Reasoning => Chunk::ReasoningDelta { id, delta: text },
        });
        let spoken = self.messages.entry(message).or_default();
        spoken.say(part, kind, text);
        spoken.open = Some((part, kind));
        self.told = Told::Words;
    }

    fn close_words(&mut self, message: MessageOrdinal, out: &mut impl Frames<AiSdk>) {
        let Some(spoken) = self.messages.get_mut(&message) else { return };
        if let Some((part, kind)) = spoken.open.take() {
            let id = self.part(message, part);
            out.frame(&match kind {
                Kind::Text => Chunk::TextEnd { id },
                Kind::Reasoning => Chunk::ReasoningEnd { id },
            });
        }
    }

    fn close_all_words(&mut self, out: &mut impl Frames<AiSdk>) {
        let open: Vec<_> = self.messages.keys().copied().collect();
        for message in open {
            self.close_words(message, out);
        }
    }

    /// Opens a step for a message of the agent itself. A new message ends the previous step, unless it continues the
    /// step of an abandoned message.
    fn begin_message(&mut self, message: MessageOrdinal, out: &mut impl Frames<AiSdk>) {
        let goes_on = std::mem::take(&mut self.same_step);
        if self.newest < Some(message) {
            self.newest = Some(message);
            if !goes_on {
                self.end_step(out);
            }
        }
        self.begin_step(out);
    }

    fn begin_step(&mut self, out: &mut impl Frames<AiSdk>) {
        if !std::mem::replace(&mut self.in_step, true) {
            self.calls.begin_step();
            out.frame(&Chunk::StartStep);
        }
    }

    fn end_step(&mut self, out: &mut impl Frames<AiSdk>) {
        self.close_all_words(out);
        if std::mem::take(&mut self.in_step) {
            out.frame(&Chunk::FinishStep);
        }
    }

    /// Completes a message: sends what was not sent as deltas.
    fn complete(&mut self, complete: &CompleteMessage, out: &mut impl Frames<AiSdk>) {
        let message = complete.message;
        self.begin_message(message, out);
        self.close_words(message, out);
        let spoken = self.messages.remove(&message).unwrap_or_default();
        for (part, block) in spoken.unsaid(&complete.blocks) {
            match block {
                ContentBlock::Text(text) => self.words(message, part, Kind::Text, text, out),
                ContentBlock::Reasoning(text) => self.words(message, part, Kind::Reasoning, text, out),
                ContentBlock::ToolUse { .. } => {}
                ContentBlock::Other(given) => out.frame(&Chunk::Content { data: ForeignJson(given) }),
            }
            self.close_words(message, out);
        }
        self.messages.remove(&message);
        for block in &complete.blocks {
            if let ContentBlock::ToolUse { call, tool, input } = block {
                let is_cut = input.as_str().starts_with('"');
                // The blocks of the newest message are of this step.
                if self.newest == Some(message) {
                    self.calls.begin_again(call);
                }
                match self.calls.state(call) {
                    Some(CallState::Streaming) if is_cut => self.call_cut((call, tool), input, out),
                    _ => self.call_made((call, tool), input, None, out),
                }
            }
        }
    }
}

impl Fold for AiSdkFold {
    type Vocabulary = AiSdk;

    fn event<T: Frames<AiSdk>>(&mut self, event: &Event, out: &mut T) {
        if self.told == Told::Nothing {
            self.told = Told::Start;
            let message_metadata = StartDto { agent_id: self.agent.into(), turn: self.turn.0 };
            out.frame(&Chunk::Start { message_id: self.message(MessageOrdinal(0)), message_metadata });
        }
        match &event.body {
            // The client already shows its own message.
            EventBody::UserMessage { .. } => {}
            EventBody::TextDelta { message, part, text } => {
                self.words(*message, *part, Kind::Text, text, out);
            }
            EventBody::ReasoningDelta { message, part, text } => {
                self.words(*message, *part, Kind::Reasoning, text, out);
            }
            EventBody::ToolInputDelta { message, part, call, tool, fragment } => {
                self.tool_input(*message, *part, (call, tool.as_deref()), fragment, out);
            }
            EventBody::Message(message) => match &message.parent_call {
                Some(parent) => self.sub_agent(message, parent, out),
                None => self.complete(message, out),
            },
            EventBody::ToolCall(call) => {
                let ToolCall { call, tool, input, parent_call } = &**call;
                self.begin_step(out);
                self.call_made((call, tool), input, parent_call.as_deref(), out);
            }
            EventBody::ToolResult(result) => self.tool_result(result, out),
            EventBody::Usage(usage) => self.usage(usage, out),
            EventBody::Notice(notice) => self.notice(notice, out),
            EventBody::Abandoned { message } => self.abandoned(*message, out),
            EventBody::Error(error) => {
                out.frame(&Chunk::NonFatal { data: AgentErrorDto::from(&**error) });
            }
            EventBody::TurnResult(result) => self.ended(result, out),
        }
    }
}

#[cfg(test)]
mod tests;
