//! The runs of a turn: a fold of its events. Every event that it produces has a place in its thread, which is the same
//! live, on replay and after a restart.
//!
//! The fold follows the rules that clients enforce. Everything begins before anything is added to it, and everything
//! that is open ends before its run does. A permission request ends the run, and what the agent does next belongs to
//! the next run of the turn.

mod arguments;
mod calls;
mod endings;
mod runs;
mod sub_agents;
mod teller;
mod tools;
mod words;

use std::collections::BTreeMap;

use tokenrail_domain::{
    AgentId, CompleteMessage, ContentBlock, Event, EventBody, MessageOrdinal, Notice, Part, TurnNumber,
    message_id,
};

use crate::fold::{Fold, Frames, Vocabulary};
use crate::json::{AgentErrorDto, TokenUsage};
use crate::vocabularies::ag_ui::dto::{
    AgUiEvent, CustomDto, EventDto, ForeignValue, NoticeValueDto, Plan, PlanDto,
};
use crate::vocabularies::turns::permission_notices::PermissionNotice;
use crate::vocabularies::turns::said_words::WordKind;
use calls::Calls;
use runs::Runs;
use sub_agents::SubAgents;
use teller::{Teller, piece};
use words::Words;

pub(crate) use runs::{Scope, WantedRun};

/// The notice with an agent's plan.
const PLAN: &str = "todo_list";

/// The vocabulary of AG-UI.
#[derive(Debug)]
pub(crate) enum AgUi {}

impl Vocabulary for AgUi {
    type Frame<'f> = EventDto<'f>;
}

/// The fold of one turn. It starts with the turn's first event.
pub(crate) struct AgUiFold {
    agent: AgentId,
    turn: TurnNumber,
    runs: Runs,
    /// The messages of the agent itself that are not complete.
    open: BTreeMap<MessageOrdinal, Words>,
    /// The number of parts so far.
    parts: u32,
    /// Whether a complete message of the agent itself had a text.
    has_text: bool,
    newest: Option<MessageOrdinal>,
    calls: Calls,
    sub_agents: SubAgents,
    /// What the run has used.
    usage: TokenUsage,
    stop_reason: Option<String>,
}

impl AgUiFold {
    pub(crate) fn new(agent: AgentId, turn: TurnNumber, thread: String, scope: Scope) -> Self {
        Self {
            agent,
            turn,
            runs: Runs::new(agent, turn, thread, scope),
            open: BTreeMap::new(),
            parts: 0,
            has_text: false,
            newest: None,
            calls: Calls::new(turn),
            sub_agents: SubAgents::default(),
            usage: TokenUsage::default(),
            stop_reason: None,
        }
    }

    /// Whether the client has everything that it asked for.
    pub(crate) fn is_over(&self) -> bool {
        self.runs.is_over()
    }

    /// The permission request that has ended a run, if nothing was sent since.
    pub(crate) fn waits_for(&self) -> Option<&str> {
        self.runs.waits_for()
    }

    /// A new id for a part of a message. A message can have several parts, and each is a message for clients.
    fn part_id(&mut self, message: MessageOrdinal) -> String {
        let id = format!("{}-{}", message_id(self.agent, self.turn, message).hyphenated(), self.parts);
        self.parts += 1;
        id
    }

    fn say<T: Frames<AgUi>>(
        &mut self,
        (message, part): (MessageOrdinal, Part),
        kind: WordKind,
        text: &str,
        out: &mut Teller<'_, T>,
    ) {
        if text.is_empty() {
            return;
        }
        let open = self.open.get(&message).and_then(|words| words.said.open_id(part, kind));
        let id = match open {
            Some(id) => id.clone(),
            None => self.begin_words((message, part), kind, out),
        };
        self.open.entry(message).or_default().said.say(part, kind, text.len());
        out.more_words(kind, &id, text, None);
    }

    fn begin_words<T: Frames<AgUi>>(
        &mut self,
        (message, part): (MessageOrdinal, Part),
        kind: WordKind,
        out: &mut Teller<'_, T>,
    ) -> String {
        self.end_words(message, out);
        self.newest = self.newest.max(Some(message));
        let id = self.part_id(message);
        out.begin_words(kind, &id, None);
        let run = self.runs.number;
        let words = self.open.entry(message).or_default();
        words.said.open(part, kind, id.clone());
        words.ids.push(id.clone());
        if kind == WordKind::Text && words.first_text.as_ref().is_none_or(|(first, _)| *first != run) {
            words.first_text = Some((run, id.clone()));
        }
        id
    }

    /// Ends the text or reasoning that is open in a message.
    fn end_words<T: Frames<AgUi>>(&mut self, message: MessageOrdinal, out: &mut Teller<'_, T>) {
        if let Some(open) = self.open.get_mut(&message).and_then(|words| words.said.close()) {
            out.end_words(open.kind, &open.id, None);
        }
    }

    fn end_all_words<T: Frames<AgUi>>(&mut self, out: &mut Teller<'_, T>) {
        let messages: Vec<_> = self.open.keys().copied().collect();
        for message in messages {
            self.end_words(message, out);
        }
    }

    /// Completes a message: sends what was not sent as deltas.
    fn complete<T: Frames<AgUi>>(&mut self, complete: &CompleteMessage, out: &mut Teller<'_, T>) {
        let message = complete.message;
        self.newest = self.newest.max(Some(message));
        self.end_words(message, out);
        for (index, block) in (0..).map(Part).zip(&complete.blocks) {
            match block {
                ContentBlock::Text(text) => self.rest((message, index), WordKind::Text, text, out),
                ContentBlock::Reasoning(text) => self.rest((message, index), WordKind::Reasoning, text, out),
                ContentBlock::ToolUse { call, tool, input } => {
                    // A call that was cut short has no result, so it ends with the turn.
                    if !input.as_str().starts_with('"') {
                        self.made((call, tool), input, Some(message), None, out);
                    }
                }
                ContentBlock::Other(given) => block_of(given, None, out),
            }
        }
        self.has_text |= self.open.remove(&message).is_some_and(|words| words.has_text());
    }

    /// Whether the agent has said a text that it has not discarded.
    fn has_said_text(&self) -> bool {
        self.has_text || self.open.values().any(Words::has_text)
    }

    /// Sends a block of a complete message, unless it was sent as deltas.
    fn rest<T: Frames<AgUi>>(
        &mut self,
        (message, index): (MessageOrdinal, Part),
        kind: WordKind,
        text: &str,
        out: &mut Teller<'_, T>,
    ) {
        let was_said = |words: &mut Words| words.said.was_said(kind, text.len());
        if text.is_empty() || self.open.get_mut(&message).is_some_and(was_said) {
            return;
        }
        let id = self.begin_words((message, index), kind, out);
        out.more_words(kind, &id, text, None);
        self.end_words(message, out);
    }

    fn notice<T: Frames<AgUi>>(&mut self, notice: &Notice, out: &mut Teller<'_, T>) {
        if let Some(PermissionNotice::Asked(request)) = PermissionNotice::of(notice) {
            return self.asked(&request, &notice.data, out);
        }
        let value = NoticeValueDto { subtype: &notice.subtype, data: ForeignValue::new(&notice.data) };
        out.tell(AgUiEvent::Custom { name: "tokenrail.notice", value: CustomDto::Notice(value) });
        if notice.subtype == PLAN
            && let Some(content) = PlanDto::of(&notice.data)
        {
            // Each turn has a plan of its own.
            let message_id = &*format!("{}:plan", self.turn);
            out.tell(AgUiEvent::ActivitySnapshot { message_id, activity_type: Plan, content });
        }
    }
}

/// Sends a block of a type that Tokenrail does not know.
fn block_of<T: Frames<AgUi>>(
    given: &tokenrail_domain::JsonText,
    sub_agent: Option<&str>,
    out: &mut Teller<'_, T>,
) {
    let value = CustomDto::Block(ForeignValue::new(given));
    out.tell_of(sub_agent, AgUiEvent::Custom { name: "tokenrail.content", value });
}

impl Fold for AgUiFold {
    type Vocabulary = AgUi;

    fn event<T: Frames<AgUi>>(&mut self, event: &Event, out: &mut T) {
        let out = &mut Teller::new(event, self.runs.is_heard(), out);
        self.runs.enter(event, out);
        match &event.body {
            // A run begins with it.
            EventBody::UserMessage { .. } => {}
            EventBody::TextDelta { message, part, text } => {
                self.say((*message, *part), WordKind::Text, text, out);
            }
            EventBody::ReasoningDelta { message, part, text } => {
                self.say((*message, *part), WordKind::Reasoning, text, out);
            }
            EventBody::ToolInputDelta { message, part: _, call, tool, fragment } => {
                self.input(*message, (call, tool.as_deref()), fragment, out);
            }
            EventBody::Message(message) => match &message.parent_call {
                Some(parent) => self.of_sub_agent(message, parent, out),
                None => self.complete(message, out),
            },
            EventBody::ToolCall(made) => {
                let parent = made.parent_call.as_deref();
                self.made((&made.call, &made.tool), &made.input, None, parent, out);
            }
            EventBody::ToolResult(result) => self.result(result, out),
            EventBody::Abandoned { message } => self.abandoned(*message, out),
            EventBody::Usage(usage) => {
                self.usage.add(&usage.usage);
                if let Some(reason) = &usage.stop_reason {
                    self.stop_reason = Some(reason.clone());
                }
            }
            EventBody::Notice(notice) => self.notice(notice, out),
            EventBody::Error(error) => {
                let error = AgentErrorDto::from(&**error);
                let value = CustomDto::Error(AgentErrorDto { message: error.message.map(piece), ..error });
                out.tell(AgUiEvent::Custom { name: "tokenrail.error", value });
            }
            EventBody::TurnResult(result) => self.end(result, out),
        }
    }
}

#[cfg(test)]
mod tests;
