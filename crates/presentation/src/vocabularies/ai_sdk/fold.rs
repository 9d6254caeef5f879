//! The UI message stream of the AI SDK: the events of one turn as the chunks of one message.
//!
//! What a client demands, and this sees to: a part is begun before anything is added to it; a step is a request to
//! the model, with the results of the tools that it called, and whatever is open is closed before it ends; the last
//! chunk is `finish`, also after an `error` or an `abort`.

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
use crate::fold::{Begins, Fold, Frames, Vocabulary};
use crate::json::{AgentErrorDto, IdText};
use crate::questions::Approvals;
use crate::vocabularies::ai_sdk::dto::{Chunk, FinishReason, ForeignJson, PartId, StartDto};
use calls::{CallState, Calls};
use spoken::{Kind, Spoken};

/// The version of the SDK that a client has named: it may get more than what all of them take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum SdkVersion {
    /// None was named: what all releases of 5 to 7 take.
    #[default]
    Any,
    V5,
    V6,
    V7,
    /// From 7.0.70 on a client knows `reset-step`.
    V7Reset,
    /// From 7.0.149 on it knows that a turn is `interrupted`.
    V7Interrupted,
}

impl SdkVersion {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 6] =
        [Self::Any, Self::V5, Self::V6, Self::V7, Self::V7Reset, Self::V7Interrupted];

    /// Reads `?v=`: a major version stands for its first release, since a client refuses the whole answer where it does
    /// not know one chunk.
    pub(crate) fn named(name: Option<&str>) -> Result<Self, Problem> {
        let Some(name) = name else { return Ok(Self::Any) };
        // A prerelease comes before its release, and so has what the step before has; one of the first release has
        // what that has.
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

/// The words of the AI SDK.
#[derive(Debug)]
pub(crate) enum AiSdk {}

impl Vocabulary for AiSdk {
    type Frame<'f> = &'f Chunk<'f>;
}

/// The fold of one turn. It is fed from the turn's first event on.
pub(crate) struct AiSdkFold {
    agent: AgentId,
    turn: TurnNumber,
    version: SdkVersion,
    told: Told,
    in_step: bool,
    /// The newest message of the agent itself, which began the step.
    newest: Option<MessageOrdinal>,
    /// The next message goes on with the step of one that was abandoned.
    same_step: bool,
    messages: BTreeMap<MessageOrdinal, Spoken>,
    calls: Calls,
    /// Questions about them. From version 6 on.
    approvals: Approvals,
    stop_reason: Option<FinishReason>,
}

/// How much a client was told of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    /// Its first chunk.
    Start,
    /// Words of the agent.
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

    /// A message of the agent itself begins a step.
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

    /// A message is complete: what was not said of it in deltas is said now.
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

    fn begins(&self) -> Begins {
        Begins::WithTurn
    }

    fn event<T: Frames<AiSdk>>(&mut self, event: &Event, out: &mut T) {
        if self.told == Told::Nothing {
            self.told = Told::Start;
            let message_metadata = StartDto { agent_id: self.agent.into(), turn: self.turn.0 };
            out.frame(&Chunk::Start { message_id: self.message(MessageOrdinal(0)), message_metadata });
        }
        match &event.body {
            // The client has shown it already.
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
