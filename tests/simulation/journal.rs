//! What must be true of a journal after each append.

use std::collections::BTreeMap;

use tokenrail_domain::{
    Agent, CompleteMessage, ContentBlock, Event, EventBody, MessageOrdinal, Notice, Part, TurnNumber,
    TurnOutcome,
};

/// The journal of one agent as saved on the disk, and what has been read of it so far.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) events: Vec<Event>,
    pub(crate) turns: BTreeMap<TurnNumber, TurnSoFar>,
    /// The permission requests of the agent and their answers.
    pub(crate) questions: BTreeMap<String, QuestionSoFar>,
}

/// What the journal says about one permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QuestionSoFar {
    Open,
    /// The chosen option, if any.
    Settled(Option<String>),
}

/// What the journal says about one turn.
#[derive(Debug, Default)]
pub(crate) struct TurnSoFar {
    pub(crate) prompt: Option<String>,
    pub(crate) outcome: Option<TurnOutcome>,
    pub(crate) code: Option<String>,
    /// When its first event was saved.
    pub(crate) began_ms: Option<u64>,
    /// When its result was saved.
    pub(crate) ended_ms: Option<u64>,
    pub(crate) raw: Vec<Vec<u8>>,
    messages: BTreeMap<MessageOrdinal, MessageSoFar>,
}

#[derive(Debug, Default)]
struct MessageSoFar {
    parts: BTreeMap<Part, String>,
    closed: bool,
}

impl Ledger {
    /// Adds one more event.
    ///
    /// # Errors
    /// The promise that the event breaks.
    pub(crate) fn add(&mut self, event: &Event, now: u64) -> Result<(), String> {
        let expected = self.events.len() as u64 + 1;
        if event.sequence.0 != expected {
            return Err(format!("G2: the journal goes on with {} and not with {expected}", event.sequence));
        }
        let turn = self.turns.entry(event.turn).or_default();
        let told =
            turn.add(event).map_err(|how| format!("{how}, at {} of turn {}", event.sequence, event.turn));
        turn.began_ms.get_or_insert(now);
        turn.ended_ms = turn.outcome.map(|_| turn.ended_ms.unwrap_or(now));
        let asked = self.asked(&event.body);
        self.events.push(event.clone());
        told.and(asked)
    }

    /// Each permission request is asked once, and settled at most once.
    fn asked(&mut self, body: &EventBody) -> Result<(), String> {
        let EventBody::Notice(notice) = body else { return Ok(()) };
        let now = match &*notice.subtype {
            Notice::PERMISSION_REQUEST => QuestionSoFar::Open,
            Notice::PERMISSION_RESOLVED => QuestionSoFar::Settled(field(notice, "optionId")),
            _ => return Ok(()),
        };
        let question = field(notice, "requestId").unwrap_or_default();
        let before = self.questions.insert(question.clone(), now.clone());
        match (before, now) {
            (None, QuestionSoFar::Open) | (Some(QuestionSoFar::Open), QuestionSoFar::Settled(_)) => Ok(()),
            (before, now) => Err(format!("Q2: question {question} was {before:?}, and now is {now:?}")),
        }
    }

    /// Checks that the agent's row agrees with its journal.
    pub(crate) fn agrees_with(&self, agent: &Agent) -> Result<(), String> {
        if agent.head.0 != self.events.len() as u64 {
            return Err(format!("G2: the head is {} of {} events", agent.head, self.events.len()));
        }
        let Some(last) = self.events.last() else { return Ok(()) };
        let outcome = self.turns.get(&last.turn).and_then(|turn| turn.outcome);
        let status = outcome.map_or("running", TurnOutcome::as_str);
        if agent.status.as_str() != status {
            return Err(format!("G9: the agent is {} and its journal {status}", agent.status.as_str()));
        }
        Ok(())
    }
}

fn field(notice: &Notice, name: &str) -> Option<String> {
    let data: serde_json::Value = serde_json::from_str(notice.data.as_str()).ok()?;
    Some(data.get(name)?.as_str()?.to_owned())
}

impl TurnSoFar {
    fn add(&mut self, event: &Event) -> Result<(), String> {
        if self.outcome.is_some() {
            return Err("G9: something comes after the result".to_owned());
        }
        if let Some(raw) = &event.raw {
            self.raw.push(raw.to_vec());
        }
        match &event.body {
            EventBody::UserMessage { content, .. } if self.prompt.replace(content.clone()).is_some() => {
                return Err("G10: the prompt stands twice".to_owned());
            }
            EventBody::TextDelta { message, part, text } => return self.delta(*message, *part, text),
            EventBody::ReasoningDelta { message, part, text: _ }
            | EventBody::ToolInputDelta { message, part, .. } => return self.delta(*message, *part, ""),
            EventBody::Message(complete) => return self.complete(complete),
            EventBody::Abandoned { message } => {
                let message = self.messages.entry(*message).or_default();
                message.parts.clear();
                message.closed = true;
            }
            EventBody::TurnResult(result) => {
                self.outcome = Some(result.outcome);
                self.code = result.error.as_ref().and_then(|error| error.code.clone());
                if let Some((open, _)) = self.messages.iter().find(|(_, message)| !message.closed) {
                    return Err(format!("G4: message {open:?} is open at the end of its turn"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn delta(&mut self, message: MessageOrdinal, part: Part, text: &str) -> Result<(), String> {
        let so_far = self.messages.entry(message).or_default();
        if so_far.closed {
            return Err(format!("G4: message {message:?} goes on after its end"));
        }
        so_far.parts.entry(part).or_default().push_str(text);
        Ok(())
    }

    fn complete(&mut self, complete: &CompleteMessage) -> Result<(), String> {
        let so_far = self.messages.entry(complete.message).or_default();
        if std::mem::replace(&mut so_far.closed, true) {
            return Err(format!("G4: message {:?} ends twice", complete.message));
        }
        let mut texts = complete.blocks.iter().filter_map(ContentBlock::as_text);
        for said in so_far.parts.values().filter(|said| !said.is_empty()) {
            if !texts.any(|text| text == said) {
                return Err(format!("G4: {said:?} was said, and is not in {complete:?}"));
            }
        }
        Ok(())
    }
}
