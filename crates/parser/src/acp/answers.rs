//! The answers to what the agent was asked to do, and the end of the turn.

use serde_json::value::RawValue;
use tokenrail_domain::{AgentError, ErrorClass, EventBody, JsonText, Said, TurnClose, Usage};

use super::lines::{AgentInfo, Answer, Failure, FailureData, Message};
use super::{AcpParser, EndTold};
use crate::errors;
use crate::fields;
use crate::line::notice;

/// Without an answer to these there is no turn.
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

/// How the adapter of Claude Code names itself, behind the name of who publishes it.
const CLAUDE: &str = "claude-agent-acp";

/// There is no login, or not any more.
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
            // The runner may log in and try again. Otherwise a line of its own says that the turn has failed.
            if method.starts_with("session/")
                && method != "session/prompt"
                && code(&failure) == LOGIN_REQUIRED
            {
                return;
            }
            let error = error_of(&failure);
            // The runner may begin another session. Otherwise a line of its own says that the turn has failed.
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

    /// Takes the agent's name: from its own answer, or in a further turn from a line of the runner.
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
            Some("max_tokens") => Some(invalid("the model has reached the limit of its output")),
            Some("max_turn_requests") => Some(invalid("the agent has reached the limit that it was given")),
            Some("refusal") => Some(invalid("the agent refuses to go on")),
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

    /// The runner cannot go on with the agent. The reason is in the agent's words, if it has given one.
    pub(super) fn failed(&mut self, error: AgentError, said: &mut Vec<Said>) {
        let error = self.refused.take().unwrap_or(error);
        if self.conversation.is_closed() {
            return self.conversation.tell(error, said);
        }
        self.close(TurnClose { error: Some(error), ..TurnClose::default() }, said);
    }

    /// The turn ends. A message that is still open stays so: its stream broke off.
    fn close(&mut self, close: TurnClose, said: &mut Vec<Said>) {
        self.conversation.break_off(&mut self.open, said);
        self.say_hidden_calls(said);
        self.conversation.close(TurnClose { cost_usd: self.cost_usd, ..close }, said);
    }
}

fn code(failure: &Failure<'_>) -> i64 {
    fields::number(failure.code).unwrap_or(0)
}

/// The codes of the protocol decide, then a code that is an HTTP status, then the text.
fn error_of(failure: &Failure<'_>) -> AgentError {
    let data: FailureData<'_> = fields::read(failure.data);
    let message = fields::text(failure.message).filter(|text| !text.is_empty());
    let message = message.unwrap_or("the agent reports an error".into());
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
