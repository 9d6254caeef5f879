//! Checks that a history keeps the rules of a journal. Pure.

use std::collections::{BTreeMap, BTreeSet};

use tokenrail_domain::{
    Event, EventBody, MessageOrdinal, PromptImage, Sequence, Turn, TurnNumber, TurnOutcome, TurnState,
};

use super::ImportError;

/// The maximum number of turns of one import.
const TURNS_MAX: usize = 1_000_000;
/// The maximum number of messages of one turn that are open at the same time.
const OPEN_MAX: usize = 4096;

/// Checks turns, and then events, as they arrive.
#[derive(Debug, Default)]
pub(super) struct Check {
    /// The turns whose events have not begun yet, by the number of their first event.
    spans: BTreeMap<Sequence, Span>,
    numbers: BTreeSet<TurnNumber>,
    /// The turns to whose runs the turns belong: each must be in the file.
    runs: BTreeSet<TurnNumber>,
    head: Sequence,
    /// The number of the first delta of each open message.
    open: BTreeMap<MessageOrdinal, Sequence>,
    current: Option<Span>,
}

#[derive(Debug, Clone)]
struct Span {
    number: TurnNumber,
    last: Sequence,
    outcome: TurnOutcome,
    images: Vec<PromptImage>,
}

impl Check {
    pub(super) fn turn(&mut self, turn: &Turn) -> Result<(), ImportError> {
        let place = format!("/turns/{}", self.spans.len());
        let invalid = |detail: &str| Err(ImportError::invalid(place.clone(), detail));
        let (TurnState::Ended(outcome), Some(first), Some(last)) =
            (turn.state, turn.first_sequence, turn.last_sequence)
        else {
            return invalid("the turn has not ended");
        };
        if turn.number.0 == 0 || turn.number < turn.run {
            return invalid(
                "turn numbers start at 1, and `run` must not be greater than the turn's own number",
            );
        }
        if last < first || !self.numbers.insert(turn.number) {
            return invalid("the turn number occurs twice, or lastSequence is less than firstSequence");
        }
        self.runs.insert(turn.run);
        if TURNS_MAX <= self.spans.len() {
            return invalid("too many turns");
        }
        let span = Span { number: turn.number, last, outcome, images: turn.images.clone() };
        if self.spans.insert(first, span).is_some() {
            return invalid("another turn begins at the same event");
        }
        Ok(())
    }

    pub(super) fn event(&mut self, event: &Event) -> Result<(), ImportError> {
        let wrong = self.look_at(event);
        let place = || format!("/events/{}", self.head);
        if let Err(detail) = wrong {
            return Err(ImportError::invalid(place(), detail));
        }
        self.head = event.sequence;
        Ok(())
    }

    fn look_at(&mut self, event: &Event) -> Result<(), &'static str> {
        if event.sequence != self.head.next() {
            return Err("the sequence number does not follow the previous one");
        }
        let span = match self.current.take() {
            Some(span) => span,
            None => self.spans.remove(&event.sequence).ok_or("no turn begins at this event")?,
        };
        let span = self.current.insert(span);
        if span.number != event.turn {
            return Err("the event belongs to another turn");
        }
        let ends = match &event.body {
            // The turn of a replay whose original was purged has lost its images.
            EventBody::UserMessage { images, .. } if !span.images.is_empty() && *images != span.images => {
                return Err("the images differ from those of the turn");
            }
            EventBody::TurnResult(result) if result.outcome != span.outcome => {
                return Err("the outcome differs from that of the turn");
            }
            body => matches!(body, EventBody::TurnResult(_)),
        };
        if ends != (event.sequence == span.last) {
            return Err("the last event of a turn, and only the last, must be its result");
        }
        self.message(event)?;
        if ends {
            self.current = None;
            if !self.open.is_empty() {
                return Err("a message of the turn is incomplete");
            }
        }
        Ok(())
    }

    /// Checks that a message is completed once, after its deltas, and names its first delta.
    fn message(&mut self, event: &Event) -> Result<(), &'static str> {
        match &event.body {
            EventBody::Message(complete) => {
                if complete.first_sequence != self.open.remove(&complete.message) {
                    return Err("firstSequence is missing or does not match the message's first delta");
                }
            }
            EventBody::Abandoned { message } => {
                self.open.remove(message);
            }
            body => {
                if let Some(message) = body.delta_of() {
                    self.open.entry(message).or_insert(event.sequence);
                }
                if OPEN_MAX < self.open.len() {
                    return Err("too many messages are open");
                }
            }
        }
        Ok(())
    }

    pub(super) fn finish(&self) -> Result<(), ImportError> {
        let end = || format!("/events/{}", self.head);
        if let Some(turn) = &self.current {
            let detail = format!("the file ends in turn {}, before event {}", turn.number, turn.last);
            return Err(ImportError::invalid(end(), detail));
        }
        if let Some(turn) = self.spans.values().next() {
            return Err(ImportError::invalid(end(), format!("turn {} has no events", turn.number)));
        }
        if let Some(run) = self.runs.difference(&self.numbers).next() {
            return Err(ImportError::invalid(
                "/turns",
                format!("turn {run} is missing, but another turn refers to it"),
            ));
        }
        if self.numbers.is_empty() {
            return Err(ImportError::invalid("/turns", "there are no turns"));
        }
        Ok(())
    }
}
