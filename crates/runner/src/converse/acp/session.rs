//! How a session begins or continues.

use serde_json::value::RawValue;
use tokenrail_domain::ErrorClass;
use tokenrail_ports::AddedLine;

use super::messages::{Authenticate, Begin, Begun, SetMode, SetModel, SetOption};
use super::{AcpConversation, LOGIN_REQUIRED, error_of};
use crate::converse::conversation::Outbox;
use crate::converse::rpc::text;

/// The number of an agent's first turn.
const FIRST_TURN: u64 = 1;
/// The error code if something does not exist.
const NOT_FOUND: i64 = -32002;

impl AcpConversation {
    pub(super) fn begin_session(&mut self, out: &mut Outbox) {
        let session_id = self.opening.session.as_deref();
        let begin = Begin { session_id, cwd: &self.opening.cwd, mcp_servers: [] };
        let method = match session_id {
            None => "session/new",
            // It continues the session without repeating the earlier conversation.
            Some(_) if self.can_resume => "session/resume",
            Some(_) if self.can_load => "session/load",
            Some(_) => {
                let text =
                    "the agent cannot resume a session: it supports neither session/resume nor session/load";
                if self.may_begin_anew() {
                    return self.begin_anew(text, out);
                }
                return out.fail(ErrorClass::InvalidRequest, "resume_unsupported", text.to_owned());
            }
        };
        self.rpc.request(method, begin, out);
    }

    /// If the launch names a session, its first turn never begins another one. In later turns, a lost session may be
    /// replaced by a new one: a line in the journal says that the agent has forgotten the conversation.
    fn may_begin_anew(&self) -> bool {
        self.opening.session.is_some() && FIRST_TURN < self.opening.run
    }

    fn begin_anew(&mut self, reason: &str, out: &mut Outbox) {
        let session_id = self.opening.session.take().unwrap_or_default();
        let text = format!("the agent starts a new session without the earlier conversation: {reason}");
        out.added.push(AddedLine::SessionLost { session_id, text });
        self.begin_session(out);
    }

    pub(super) fn session_begun(&mut self, method: &str, answer: &Begun<'_>, out: &mut Outbox) {
        let known = self.opening.session.clone();
        self.session = text(answer.session_id).or(known).unwrap_or_default();
        if self.session.is_empty() {
            let text = format!("the agent's response to {method} contains no session id");
            return out.fail(ErrorClass::Protocol, "answer_invalid", text);
        }
        let session_id = &self.session;
        match (&self.opening.model, answer.model_option()) {
            (Some(value), Some(config_id)) => {
                let option = SetOption { session_id, config_id: &config_id, value };
                self.rpc.request("session/set_config_option", option, out);
            }
            (Some(model_id), None) if answer.models.is_some() => {
                self.rpc.request("session/set_model", SetModel { session_id, model_id }, out);
            }
            (Some(model), None) => {
                let text = format!(
                    "the model {model:?} was requested, but the agent does not let clients choose a \
                     model; launch it without a model"
                );
                out.fail(ErrorClass::InvalidRequest, "model_unsupported", text);
            }
            (None, _) => match answer.mode().filter(|_| method == "session/load") {
                // Some agents answer before they have sent the whole session. They answer any further request only
                // after that. So what comes after that answer belongs to the new turn.
                Some(mode_id) => {
                    self.rpc.request("session/set_mode", SetMode { session_id, mode_id: &mode_id }, out);
                }
                None => self.prompt(out),
            },
        }
    }

    pub(super) fn session_refused(&mut self, method: &str, error: &RawValue, out: &mut Outbox) {
        let (code, reason) = error_of(error);
        if code != LOGIN_REQUIRED {
            if method == "session/new" {
                out.over = true;
            } else if self.may_begin_anew() && is_unknown(code, &reason) {
                self.begin_anew(&reason, out);
            } else {
                // The parser reads the agent's own text.
                out.fail(ErrorClass::Unknown, "resume_refused", reason);
            }
            return;
        }
        match self.login.take_untried() {
            Some(method_id) => self.rpc.request("authenticate", Authenticate { method_id: &method_id }, out),
            None => out.fail(ErrorClass::Authentication, "login_required", self.login.advice(&reason)),
        }
    }
}

/// Whether the agent does not know the session, or no longer knows it. Any other error may be temporary.
///
/// Not all agents have a code for that: Gemini CLI answers "No previous sessions found for this project.".
fn is_unknown(code: i64, reason: &str) -> bool {
    let reason = reason.to_lowercase();
    let words = ["no previous sessions found", "session not found"];
    code == NOT_FOUND || words.iter().any(|words| reason.contains(words))
}
