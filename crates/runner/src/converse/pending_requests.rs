//! The open permission requests.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::value::RawValue;
use tokenrail_domain::{Accepts, PermissionReply, Timestamp};
use tokenrail_ports::{
    AddedLine, Choosable, IClock, OptionKind, PermissionRequestLine, Resolution, ResolvedBy,
};
use tokio::time::Instant;

use super::conversation::{Choice, NewRequest};
use crate::run_folder::{Answer, Opening, Unanswered};

/// The open permission requests, by their public ids.
pub(super) struct PendingRequests<'a> {
    /// Tells clients when a request was sent. Deadlines do not depend on it.
    clock: &'a dyn IClock,
    /// The number of the run, with which the ids of its requests begin.
    run: u64,
    asked: u64,
    open: BTreeMap<String, Open>,
    timeout: Duration,
    unanswered: Unanswered,
    open_max: usize,
    /// The maximum length of an input. A longer input is not shown.
    input_bytes: usize,
    /// The turn is being cancelled: further requests are settled at once.
    cancelled: bool,
    /// The program can receive no more answers.
    closed: bool,
}

#[derive(Debug)]
struct Open {
    key: String,
    options: Vec<Choosable>,
    accepts: Accepts,
    until: Instant,
}

/// A permission request that was settled: what the conversation and the spool need to know.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) key: String,
    pub(super) choice: Choice,
    pub(super) line: AddedLine,
}

impl<'a> PendingRequests<'a> {
    pub(super) fn new(opening: &Opening, clock: &'a dyn IClock) -> Self {
        Self {
            clock,
            run: opening.run,
            asked: 0,
            open: BTreeMap::new(),
            timeout: Duration::from_millis(opening.limits.permission_timeout_ms),
            unanswered: opening.unanswered,
            open_max: opening.limits.open_questions,
            // The line of the request contains more than the input, and escaping may double the length of the input.
            input_bytes: opening.limits.line_bytes / 4,
            cancelled: false,
            closed: false,
        }
    }

    /// Opens a permission request, and returns its line for the spool. If too many are open, if the turn is being
    /// cancelled or if the program can receive no answers, it settles the request at once.
    pub(super) fn ask(&mut self, request: NewRequest, now: Instant) -> (AddedLine, Option<Settled>) {
        self.asked += 1;
        let request_id = format!("{}-{}", self.run, self.asked);
        let NewRequest { key, tool_call_id, tool_name, input, options, accepts } = request;
        let full = self.open_max <= self.open.len();
        let until = now.checked_add(self.timeout).unwrap_or(now);
        let asked_at = self.clock.now();
        let timeout_ms = i64::try_from(self.timeout.as_millis()).unwrap_or(i64::MAX);
        let default_option_id = self.default_option(&options).map(str::to_owned);
        let open = Open { key, options: options.clone(), accepts, until };
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
            AddedLine::PermissionRequest(PermissionRequestLine {
                request_id,
                tool_call_id,
                tool_name,
                input,
                options,
                asked_at: Some(asked_at),
                expires_at: Some(Timestamp(asked_at.0.saturating_add(timeout_ms))),
                default_option_id,
                accepts,
            }),
            settled,
        )
    }

    /// Settles an open request. Only the first valid answer has an effect.
    pub(super) fn answer(&mut self, answer: Answer) -> Option<Settled> {
        let (request, reply) = answer.into_parts();
        let Open { options, accepts, .. } = self.open.get(&request)?;
        let offered = |id: &str| options.iter().find(|offered| offered.option_id == id);
        if reply.fault(*accepts, |id| Some(offered(id)?.kind.as_str())).is_some() {
            return None;
        }
        self.settle(&request, choice_of(reply), ResolvedBy::User)
    }

    /// Settles a request that the program has withdrawn. The program does not need to be told.
    pub(super) fn withdraw(&mut self, key: &str) -> Option<AddedLine> {
        let request =
            self.open.iter().find(|(_, open)| open.key == key).map(|(request, _)| request.clone())?;
        self.settle(&request, Choice::Dismissed, ResolvedBy::Agent).map(|settled| settled.line)
    }

    /// Further requests belong to this run.
    pub(super) fn begin_run(&mut self, run: u64) {
        (self.run, self.asked) = (run, 0);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Settles further requests at once, because the turn is being cancelled. The program then does not become idle.
    pub(super) fn cancel_turn(&mut self) {
        self.cancelled = true;
    }

    /// The program can receive no more answers: settles all open requests without one.
    pub(super) fn close(&mut self) -> Vec<AddedLine> {
        self.closed = true;
        let open: Vec<_> = self.open.keys().cloned().collect();
        let settled = open.iter().filter_map(|id| self.settle(id, Choice::Dismissed, ResolvedBy::Agent));
        settled.map(|settled| settled.line).collect()
    }

    /// Whether no request is open.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.open.values().map(|open| open.until).min()
    }

    /// Settles a request whose time has run out.
    pub(super) fn take_expired(&mut self, now: Instant) -> Option<Settled> {
        let request =
            self.open.iter().find(|(_, open)| open.until <= now).map(|(request, _)| request.clone())?;
        self.expire(&request)
    }

    /// Settles one of the open requests, because the turn is cancelled.
    pub(super) fn take_cancelled(&mut self) -> Option<Settled> {
        let request = self.open.keys().next().cloned()?;
        self.settle(&request, Choice::TurnCancelled, ResolvedBy::Cancel)
    }

    fn expire(&mut self, request: &str) -> Option<Settled> {
        let chosen = self.default_option(&self.open.get(request)?.options);
        let choice = chosen.map_or(Choice::Dismissed, |option| Choice::Option(option.to_owned()));
        self.settle(request, choice, ResolvedBy::Timeout)
    }

    /// The option that is chosen if nobody answers in time. `None` if none is.
    fn default_option<'o>(&self, options: &'o [Choosable]) -> Option<&'o str> {
        let wanted = match self.unanswered {
            Unanswered::Allow => [OptionKind::AllowOnce, OptionKind::AllowAlways],
            Unanswered::Reject => [OptionKind::RejectOnce, OptionKind::RejectAlways],
        };
        let chosen = wanted.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind));
        chosen.map(|option| option.option_id.as_str())
    }

    fn settle(&mut self, request: &str, choice: Choice, by: ResolvedBy) -> Option<Settled> {
        let (request_id, Open { key, .. }) = self.open.remove_entry(request)?;
        let resolution = Resolution::new(request_id, reply_of(&choice), by);
        Some(Settled { key, choice, line: AddedLine::PermissionResolved(resolution) })
    }
}

/// What a reply means that the request accepts.
fn choice_of(reply: PermissionReply) -> Choice {
    let PermissionReply { mut options, text, note } = reply;
    match (options.pop(), text, note) {
        (None, None, _) => Choice::Dismissed,
        (Some(option), None, Some(note)) => Choice::OptionWithNote { option, note },
        (Some(option), None, None) if options.is_empty() => Choice::Option(option),
        (last, text, _) => {
            options.extend(last);
            Choice::Composed { options, text }
        }
    }
}

fn reply_of(choice: &Choice) -> PermissionReply {
    match choice.clone() {
        Choice::Option(option) => PermissionReply::of(Some(option)),
        Choice::OptionWithNote { option, note } => {
            PermissionReply { note: Some(note), ..PermissionReply::of(Some(option)) }
        }
        Choice::Composed { options, text } => PermissionReply { options, text, note: None },
        Choice::Dismissed | Choice::TurnCancelled => PermissionReply::default(),
    }
}

/// Makes the input readable for common JSON parsers. If they cannot read it, the result is a string that contains it.
/// Nobody would answer a request that cannot be read.
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
