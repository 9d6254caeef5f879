//! The end of a turn, as the agent reports it.

use std::borrow::Cow;

use tokenrail_domain::{AgentError, ErrorClass, EventBody, MessageOutcome, Said, TurnClose};

use super::ClaudeParser;
use super::errors::{ReportedError, agent_error};
use super::lines::{self, Labelled, ResultLine};

/// The subtypes of results of turns that end at a limit, between two messages.
const LIMITS: [&str; 2] = ["error_max_turns", "error_max_budget_usd"];

impl ClaudeParser {
    /// Reads a `result` line.
    pub(super) fn result(&mut self, line: &ResultLine<'_>, said: &mut Vec<Said>) {
        // Each result ends a turn of its own.
        self.begin_turn(said);
        let close = self.close(line);
        let at_limit = lines::text(line.subtype).is_some_and(|subtype| LIMITS.contains(&&*subtype));
        let cut = match &close {
            TurnClose { interrupted: true, .. } => Some(MessageOutcome::Cancelled),
            TurnClose { error: Some(_), .. } if !at_limit => Some(MessageOutcome::Failed),
            _ => None,
        };
        self.end_turn(close, cut, said);
    }

    /// The runner cannot continue with the agent.
    pub(super) fn failed(&mut self, error: AgentError, said: &mut Vec<Said>) {
        if self.closed {
            return said.push(Said::Event(EventBody::Error(Box::new(error))));
        }
        let close = TurnClose { error: Some(error), ..TurnClose::default() };
        self.end_turn(close, Some(MessageOutcome::Failed), said);
    }

    /// `cut` is the outcome of a message that is not known to be complete.
    fn end_turn(&mut self, close: TurnClose, cut: Option<MessageOutcome>, said: &mut Vec<Said>) {
        self.settle(cut.unwrap_or(MessageOutcome::Complete), said);
        let (stream, mut emitter) = self.stream_and_emitter(said);
        stream.close(cut, &mut emitter);
        if let Some(error) = close.error.as_ref().filter(|_| !close.interrupted)
            && self.told.as_ref() != Some(error)
        {
            said.push(Said::Event(EventBody::Error(Box::new(error.clone()))));
        }
        said.push(Said::Close(Box::new(close)));
        self.closed = true;
        self.interrupted = false;
        self.told = None;
        self.busy.turn_ended();
    }

    fn close(&self, line: &ResultLine<'_>) -> TurnClose {
        let subtype = lines::text(line.subtype).unwrap_or("success".into());
        let reason = lines::text(line.terminal_reason).unwrap_or_default();
        let interrupted =
            reason.starts_with("aborted") || (self.interrupted && subtype == "error_during_execution");
        // Old versions report `is_error: false` after every failure except API errors. New versions report `subtype:
        // "success"` after API errors.
        let failed = lines::is_true(line.is_error) || subtype != "success";
        let origin: Labelled<'_> = lines::read(line.origin);
        TurnClose {
            error: (failed || interrupted).then(|| self.failure(line, &subtype, interrupted)),
            interrupted,
            text: lines::text(line.result).unwrap_or_default().into_owned(),
            num_turns: lines::number(line.num_turns),
            cost_usd: lines::number(line.total_cost_usd),
            usage: lines::object(line.usage),
            origin: lines::text(origin.kind).map(Cow::into_owned),
        }
    }

    fn failure(&self, line: &ResultLine<'_>, subtype: &str, interrupted: bool) -> AgentError {
        if interrupted {
            // The agent's own text is a diagnosis for its developers.
            return agent_error(ErrorClass::Unknown, None, "the agent was interrupted".to_owned());
        }
        let errors = lines::elements(line.errors).into_iter();
        let errors: Vec<_> = errors.filter_map(|error| lines::text(Some(error))).collect();
        let text = lines::text(line.result).filter(|text| !text.is_empty());
        let text = text.unwrap_or_else(|| errors.join("; ").into());
        match &self.told {
            Some(told) if text.is_empty() || told.text == text => return told.clone(),
            _ => {}
        }
        match subtype {
            limit if LIMITS.contains(&limit) => {
                let or = "the agent reached its own limit of turns or cost (max turns, max budget)";
                agent_error(ErrorClass::InvalidRequest, None, or_else(&text, or))
            }
            _ => ReportedError::of_result(line)
                .tell(&or_else(&text, "the agent failed without giving a reason")),
        }
    }
}

fn or_else(text: &str, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { text.to_owned() }
}
