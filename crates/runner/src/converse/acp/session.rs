//! How a session begins.

use serde_json::value::RawValue;

use super::messages::{Authenticate, Begin, Begun, SetMode, SetModel, SetOption};
use super::{AcpConversation, LOGIN_REQUIRED, error_of};
use crate::converse::conversation::Outbox;
use crate::converse::rpc::text;

impl AcpConversation {
    pub(super) fn begin_session(&mut self, out: &mut Outbox) {
        let session_id = self.opening.session.as_deref();
        let begin = Begin { session_id, cwd: &self.opening.cwd, mcp_servers: [] };
        let method = match session_id {
            None => "session/new",
            // It goes on without telling again what it was before.
            Some(_) if self.can_resume => "session/resume",
            Some(_) if self.can_load => "session/load",
            Some(_) => {
                let text = "the agent cannot go on with a session: it offers neither session/resume nor session/load";
                return out.fail("invalid_request", "resume_unsupported", text.to_owned());
            }
        };
        self.rpc.request(method, begin, out);
    }

    pub(super) fn session_begun(&mut self, method: &str, answer: &Begun<'_>, out: &mut Outbox) {
        let known = self.opening.session.clone();
        self.session = text(answer.session_id).or(known).unwrap_or_default();
        if self.session.is_empty() {
            let text = format!("the agent has answered {method} without a session");
            return out.fail("protocol", "answer_invalid", text);
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
                let text = format!("the agent offers no choice of models, and {model:?} was asked for");
                out.fail("invalid_request", "model_unsupported", text);
            }
            (None, _) => match answer.mode().filter(|_| method == "session/load") {
                // Some agents answer before they have told all of the session. Whatever is asked of them now, they
                // answer after that: so what comes then belongs to the new turn.
                Some(mode_id) => {
                    self.rpc.request("session/set_mode", SetMode { session_id, mode_id: &mode_id }, out);
                }
                None => self.prompt(out),
            },
        }
    }

    pub(super) fn session_refused(&mut self, error: &RawValue, out: &mut Outbox) {
        let (code, reason) = error_of(error);
        if code != LOGIN_REQUIRED {
            out.over = true;
            return;
        }
        match self.login.take_untried() {
            Some(method_id) => self.rpc.request("authenticate", Authenticate { method_id: &method_id }, out),
            None => out.fail("authentication", "login_required", self.login.advice(&reason)),
        }
    }
}
