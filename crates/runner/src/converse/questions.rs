//! The questions that are open.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::value::RawValue;
use tokenrail_ports::{Choosable, OptionKind, OwnLine, PermissionQuestion, ResolvedBy};
use tokio::time::Instant;

use super::conversation::{Choice, Question};
use crate::run_folder::{Answer, Opening, Unanswered};

/// The questions that are open, by the ids under which they are known outside.
#[derive(Debug)]
pub(super) struct Questions {
    turn: u64,
    asked: u64,
    open: BTreeMap<String, Open>,
    timeout: Duration,
    unanswered: Unanswered,
    open_max: usize,
    /// A longer input is not shown.
    input_bytes: usize,
    /// The turn is being cancelled: nothing is asked any more.
    cancelled: bool,
    /// Nobody can be answered any more.
    closed: bool,
}

#[derive(Debug)]
struct Open {
    key: String,
    options: Vec<Choosable>,
    until: Instant,
}

/// What the conversation and the spool are to be told of a question that was settled.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) key: String,
    pub(super) choice: Choice,
    pub(super) line: OwnLine,
}

impl Questions {
    pub(super) fn new(opening: &Opening) -> Self {
        Self {
            turn: opening.turn,
            asked: 0,
            open: BTreeMap::new(),
            timeout: Duration::from_millis(opening.limits.question_timeout_ms),
            unanswered: opening.unanswered,
            open_max: opening.limits.open_questions,
            // The whole question is a line, which has more in it, and quotes may double what they hold.
            input_bytes: opening.limits.line_bytes / 4,
            cancelled: false,
            closed: false,
        }
    }

    /// Takes up a question, and says it. Where too many are open, it is settled at once.
    pub(super) fn ask(&mut self, question: Question, now: Instant) -> (OwnLine, Option<Settled>) {
        self.asked += 1;
        let request_id = format!("{}-{}", self.turn, self.asked);
        let Question { key, tool_call_id, tool_name, input, options } = question;
        let full = self.open_max <= self.open.len();
        let until = now.checked_add(self.timeout).unwrap_or(now);
        let open = Open { key, options: options.clone(), until };
        self.open.insert(request_id.clone(), open);
        let settled = if self.closed {
            self.settle(&request_id, Choice::Dismissed, ResolvedBy::Agent)
        } else if self.cancelled {
            self.settle(&request_id, Choice::TurnCancelled, ResolvedBy::Cancel)
        } else {
            full.then(|| self.expire(&request_id)).flatten()
        };
        let input = readable(input, self.input_bytes);
        (
            OwnLine::PermissionRequest(PermissionQuestion {
                request_id,
                tool_call_id,
                tool_name,
                input,
                options,
            }),
            settled,
        )
    }

    /// The first answer to an open question settles it; any other means nothing.
    pub(super) fn answer(&mut self, answer: Answer) -> Option<Settled> {
        let Answer { request, option } = answer;
        let open = self.open.get(&request)?;
        let choice = match option {
            None => Choice::Dismissed,
            Some(option) => Choice::Option(
                open.options.iter().find(|offered| offered.option_id == option)?.option_id.clone(),
            ),
        };
        self.settle(&request, choice, ResolvedBy::User)
    }

    /// The program has taken a question back: there is nobody to be told.
    pub(super) fn withdraw(&mut self, key: &str) -> Option<OwnLine> {
        let request =
            self.open.iter().find(|(_, open)| open.key == key).map(|(request, _)| request.clone())?;
        self.settle(&request, Choice::Dismissed, ResolvedBy::Agent).map(|settled| settled.line)
    }

    /// From here on what is asked is of that turn.
    pub(super) fn begin_turn(&mut self, turn: u64) {
        (self.turn, self.asked) = (turn, 0);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// From here on the turn is being cancelled.
    pub(super) fn cancel_turn(&mut self) {
        self.cancelled = true;
    }

    /// From here on nobody can be answered: what is open is settled without an answer.
    pub(super) fn close(&mut self) -> Vec<OwnLine> {
        self.closed = true;
        let open: Vec<_> = self.open.keys().cloned().collect();
        let settled = open.iter().filter_map(|id| self.settle(id, Choice::Dismissed, ResolvedBy::Agent));
        settled.map(|settled| settled.line).collect()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.open.values().map(|open| open.until).min()
    }

    /// Settles a question for which it is too late.
    pub(super) fn take_expired(&mut self, now: Instant) -> Option<Settled> {
        let request =
            self.open.iter().find(|(_, open)| open.until <= now).map(|(request, _)| request.clone())?;
        self.expire(&request)
    }

    /// Settles one of those that are open, for the turn is cancelled.
    pub(super) fn take_cancelled(&mut self) -> Option<Settled> {
        let request = self.open.keys().next().cloned()?;
        self.settle(&request, Choice::TurnCancelled, ResolvedBy::Cancel)
    }

    fn expire(&mut self, request: &str) -> Option<Settled> {
        let wanted = match self.unanswered {
            Unanswered::Allow => [OptionKind::AllowOnce, OptionKind::AllowAlways],
            Unanswered::Reject => [OptionKind::RejectOnce, OptionKind::RejectAlways],
        };
        let options = &self.open.get(request)?.options;
        let chosen = wanted.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind));
        let choice = chosen.map_or(Choice::Dismissed, |option| Choice::Option(option.option_id.clone()));
        self.settle(request, choice, ResolvedBy::Timeout)
    }

    fn settle(&mut self, request: &str, choice: Choice, by: ResolvedBy) -> Option<Settled> {
        let (request_id, Open { key, .. }) = self.open.remove_entry(request)?;
        let option_id = match &choice {
            Choice::Option(option) => Some(option.clone()),
            Choice::Dismissed | Choice::TurnCancelled => None,
        };
        Some(Settled { key, choice, line: OwnLine::PermissionResolved { request_id, option_id, by } })
    }
}

/// JSON that common readers can read: what they cannot comes as a string that holds it. A question that nobody can read
/// is one that nobody answers.
fn readable(input: Box<RawValue>, most: usize) -> Box<RawValue> {
    let length = input.get().len();
    if most < length {
        let text = format!("({length} bytes, too long to show)");
        return serde_json::value::to_raw_value(&text).unwrap_or_else(|_| RawValue::NULL.to_owned());
    }
    if serde_json::from_str::<serde_json::Value>(input.get()).is_ok() {
        return input;
    }
    serde_json::value::to_raw_value(input.get()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests;
