//! The agent's answers to requests, and the end of the turn.

use serde_json::value::RawValue;
use tokenrail_domain::{AgentError, ErrorClass, EventBody, JsonText, Said, TurnClose, Usage};

use super::lines::{AgentInfo, Answer, Failure, FailureData, Message};
use super::{AcpParser, EndTold};
use crate::errors;
use crate::fields;
use crate::line::notice;

/// The requests that a turn requires.
const NEEDED: [&str; 8] = [
    "initialize",
    "authenticate",
    "session/new",
    "session/load",
    "session/resume",
    "session/set_config_option",
    "session/set_model",
    "session/prompt",
];

/// The name that the adapter of Claude Code reports, after the name of its publisher.
const CLAUDE: &str = "claude-agent-acp";

/// The agent has no login, or the login has expired.
const LOGIN_REQUIRED: i64 = -32000;

impl AcpParser {
    pub(super) fn answer(&mut self, id: &RawValue, message: &Message<'_>, text: &str, said: &mut Vec<Said>) {
        let method = id.get().parse().ok().and_then(|id| self.sent.remove(&id));
        let Some(method) = method.as_deref() else {
            return said.push(notice("control_error", JsonText::new_unchecked(text)));
        };
        if let Some(error) = message.error {
            if !NEEDED.contains(&method) || self.conversation.is_closed() {
                return said.push(notice("control_error", JsonText::new_unchecked(text)));
            }
            let failure: Failure<'_> = fields::read(Some(error));
            // The runner may log in and retry. Otherwise a separate line says that the turn has failed.
            if method.starts_with("session/")
                && method != "session/prompt"
                && code(&failure) == LOGIN_REQUIRED
            {
                return;
            }
            let error = error_of(&failure);
            // The runner may start another session. Otherwise a separate line says that the turn has failed.
            if matches!(method, "session/load" | "session/resume") {
                self.refused = Some(error);
                return;
            }
            let error = Some(error);
            return self.close(TurnClose { error, ..TurnClose::default() }, said);
        }
        let answer: Answer<'_> = fields::read(message.result);
        match method {
            "initialize" => {
                let agent: AgentInfo<'_> = fields::read(answer.agent);
                self.named(&fields::text(agent.name).unwrap_or_default());
                said.push(notice("init", fields::object(message.result).unwrap_or_else(JsonText::null)));
            }
            "session/new" => self.conversation.session(fields::text(answer.session), said),
            "session/prompt" => self.prompt_answered(&answer, said),
            _ => {}
        }
    }

    /// Sets the agent's name: from its own answer, or in a further turn from a line of the runner.
    pub(super) fn named(&mut self, name: &str) {
        self.end_told = if name.ends_with(CLAUDE) { EndTold::NotYet } else { EndTold::Never };
    }

    fn prompt_answered(&mut self, answer: &Answer<'_>, said: &mut Vec<Said>) {
        let reason = fields::text(answer.stop_reason);
        let invalid = |text: &str| errors::agent_error(ErrorClass::InvalidRequest, None, text.to_owned());
        let error = match reason.as_deref() {
            Some("cancelled") => {
                let text = "the agent was interrupted".to_owned();
                Some(errors::agent_error(ErrorClass::Unknown, None, text))
            }
            Some("max_tokens") => Some(invalid("the model reached its output limit")),
            Some("max_turn_requests") => Some(invalid(
                "the agent reached its own limit of model requests in a turn (max_turn_requests)",
            )),
            Some("refusal") => Some(invalid("the agent refused to continue")),
            _ => None,
        };
        let usage = answer.usage();
        let told = usage.clone().unwrap_or_else(|| JsonText::new_unchecked("{}"));
        let interrupted = reason.as_deref() == Some("cancelled");
        let stop_reason = reason.map(Into::into);
        if !interrupted {
            self.conversation.end(&mut self.open, said);
        }
        said.push(Said::Event(EventBody::Usage(Box::new(Usage { stop_reason, usage: told }))));
        self.close(TurnClose { error, interrupted, usage, ..TurnClose::default() }, said);
    }

    /// The runner cannot continue with the agent. The error is in the agent's words if it has given a reason.
    pub(super) fn failed(&mut self, error: AgentError, said: &mut Vec<Said>) {
        let error = self.refused.take().unwrap_or(error);
        if self.conversation.is_closed() {
            return self.conversation.tell(error, said);
        }
        self.close(TurnClose { error: Some(error), ..TurnClose::default() }, said);
    }

    /// Ends the turn. A message that is still open stays open, because its stream was cut.
    fn close(&mut self, close: TurnClose, said: &mut Vec<Said>) {
        self.conversation.break_off(&mut self.open, said);
        self.say_hidden_calls(said);
        self.conversation.close(TurnClose { cost_usd: self.cost_usd, ..close }, said);
    }
}

fn code(failure: &Failure<'_>) -> i64 {
    fields::number(failure.code).unwrap_or(0)
}

/// Classifies an error: first by the codes of the protocol, then by a code that is an HTTP status, then by the text.
fn error_of(failure: &Failure<'_>) -> AgentError {
    let data: FailureData<'_> = fields::read(failure.data);
    let message = fields::text(failure.message).filter(|text| !text.is_empty());
    let message = message.unwrap_or("the agent reported an error".into());
    let details = fields::text(failure.data).or_else(|| fields::text(data.details));
    let details = details.or_else(|| fields::text(data.message)).filter(|details| *details != message);
    let text = details.map_or_else(|| message.to_string(), |details| format!("{message}: {details}"));
    let mut error = errors::told(&text);
    let code = code(failure);
    let by_code = match code {
        LOGIN_REQUIRED => Some(ErrorClass::Authentication),
        -32002 | -32602 => Some(ErrorClass::InvalidRequest),
        -32700 | -32600 | -32601 => Some(ErrorClass::Protocol),
        _ => u16::try_from(code).ok().and_then(errors::of_status),
    };
    if let Some(class) = by_code {
        error.class = class;
        error.recoverable = class.is_recoverable();
    }
    error
}
