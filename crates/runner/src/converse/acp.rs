//! The Agent Client Protocol, version 1: JSON-RPC over lines.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`session`] | how a session begins or continues, with the requested model |
//! | [`permission`] | the agent's permission requests |
//! | [`login`] | login methods that need no user |
//! | [`files`] | the agent's requests for files, in its working folder and nowhere else |
//! | [`messages`] | the messages of the protocol |

mod files;
mod login;
mod messages;
mod permission;
mod session;

use serde_json::value::RawValue;
use tokenrail_domain::ErrorClass;
use tokenrail_ports::AddedLine;

use self::files::Files;
use self::login::Login;
use self::messages::{AskPrompt, Initialize, Initialized, Session, Stopped, Told};
use self::permission::Permissions;
use super::conversation::{Choice, Conversation, Outbox};
use super::prompt::EncodedPrompt;
use super::rpc::{Incoming, Kind, METHOD_NOT_FOUND, Rpc, text};
use crate::run_folder::Opening;

const VERSION: u64 = 1;
/// The error code if the agent has no login, or no longer has one.
const LOGIN_REQUIRED: i64 = -32000;
/// The error code if a request was cancelled.
const CANCELLED: i32 = -32800;

/// The turns of an agent, in one session. When its standard input is closed, the agent exits.
#[derive(Debug)]
pub(super) struct AcpConversation {
    opening: Opening,
    prompt: EncodedPrompt,
    rpc: Rpc,
    files: Files,
    permissions: Permissions,
    login: Login,
    /// How the agent can continue an earlier session.
    can_load: bool,
    can_resume: bool,
    /// Whether the agent accepts images with a prompt.
    sees_images: bool,
    /// The name that the agent reports.
    name: Option<String>,
    /// Empty until it is known.
    session: String,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Before the prompt.
    Beginning,
    Prompted,
    Cancelled,
    /// The prompt was answered, and the agent is idle.
    Idle,
}

impl AcpConversation {
    pub(super) fn new(opening: Opening, prompt: EncodedPrompt) -> Self {
        let file_bytes = opening.files.then_some(opening.limits.file_bytes);
        Self {
            files: Files::new(&opening.cwd, file_bytes),
            opening,
            prompt,
            rpc: Rpc::default(),
            permissions: Permissions::default(),
            login: Login::default(),
            can_load: false,
            can_resume: false,
            sees_images: false,
            name: None,
            session: String::new(),
            stage: Stage::Beginning,
        }
    }

    fn answered(&mut self, method: &'static str, line: &Incoming<'_>, out: &mut Outbox) {
        // Either this is the answer to the prompt, or no prompt will be sent.
        if self.stage == Stage::Cancelled {
            out.over = true;
            return;
        }
        if let Some(error) = line.error {
            return self.refused(method, error, out);
        }
        match method {
            "initialize" => self.initialized(&line.result(), out),
            "authenticate" => self.begin_session(out),
            "session/new" | "session/load" | "session/resume" => {
                self.session_begun(method, &line.result(), out);
            }
            "session/prompt" => self.become_idle(out),
            // The model is set, or the session is completely loaded.
            _ => self.prompt(out),
        }
    }

    fn initialized(&mut self, answer: &Initialized<'_>, out: &mut Outbox) {
        if answer.version() != Some(VERSION) {
            let text = "the agent does not support version 1 of the Agent Client Protocol".to_owned();
            return out.fail(ErrorClass::Protocol, "version_unsupported", text);
        }
        (self.can_load, self.can_resume) = answer.sessions();
        self.sees_images = answer.sees_images();
        self.name = answer.agent_name();
        self.login = Login::of(&answer.methods());
        self.begin_session(out);
    }

    /// The agent has answered with an error. The parser reads which one.
    fn refused(&mut self, method: &'static str, error: &RawValue, out: &mut Outbox) {
        match method {
            "session/new" | "session/load" | "session/resume" => self.session_refused(method, error, out),
            // Only the answer matters, not its content.
            "session/set_mode" => self.prompt(out),
            // The turn has failed. The session has not, unless the agent no longer has a login.
            "session/prompt" if self.is_only_here() && error_of(error).0 != LOGIN_REQUIRED => {
                self.become_idle(out);
            }
            _ => out.over = true,
        }
    }

    /// Whether the session ends with the process, because no other process can continue it.
    fn is_only_here(&self) -> bool {
        !self.can_load && !self.can_resume
    }

    fn become_idle(&mut self, out: &mut Outbox) {
        self.stage = Stage::Idle;
        out.idle = true;
    }

    /// Handles unsolicited output. No run reads the output of an idle agent, so the conversation ends before the agent
    /// begins anything more. But if the session would be lost, which is worse, the conversation continues.
    fn spoken(&self, out: &mut Outbox) {
        out.over |= self.stage == Stage::Idle && !self.is_only_here();
    }

    fn prompt(&mut self, out: &mut Outbox) {
        // It is sent once, and may be large.
        let prompt = std::mem::take(&mut self.prompt);
        if !self.sees_images && !prompt.images.is_empty() {
            return self.images_refused(out);
        }
        self.stage = Stage::Prompted;
        self.rpc.request("session/prompt", AskPrompt::new(&self.session, &prompt), out);
    }

    /// The turn fails before the agent gets any of it. So an agent that was idle becomes idle again: its session may
    /// live only in its process.
    fn images_refused(&mut self, out: &mut Outbox) {
        let text = "the agent accepts no images with a prompt; send the message without images";
        out.fail(ErrorClass::InvalidRequest, "images_unsupported", text.to_owned());
        if self.stage == Stage::Idle {
            out.over = false;
            self.become_idle(out);
        }
    }

    fn asked(&mut self, id: &RawValue, method: &str, line: &Incoming<'_>, out: &mut Outbox) {
        match method {
            "session/request_permission" => {
                self.spoken(out);
                let is_cancelled = matches!(self.stage, Stage::Cancelled | Stage::Idle);
                self.permissions.asked(id, &line.params(), is_cancelled, out);
            }
            "fs/read_text_file" => self.files.read(id, &line.params(), out),
            "fs/write_text_file" => self.files.write(id, &line.params(), out),
            _ => Rpc::refuse(id, METHOD_NOT_FOUND, format!("Method not found: {method}"), out),
        }
    }

    fn told(&mut self, method: &str, line: &Incoming<'_>, out: &mut Outbox) {
        if method == "session/update" && self.stage == Stage::Idle {
            let told: Told<'_> = line.params();
            if told.is_speech() {
                self.spoken(out);
            }
        }
        if method == "$/cancel_request" {
            let stopped: Stopped<'_> = line.params();
            if let Some(id) = stopped.request.filter(|id| self.permissions.withdraw(id)) {
                Rpc::refuse(id, CANCELLED, "Request cancelled", out);
                out.withdrawn.push(id.get().to_owned());
            }
        }
    }
}

impl Conversation for AcpConversation {
    fn open(&mut self, out: &mut Outbox) {
        let initialize = Initialize::new(VERSION, self.opening.files);
        self.rpc.request("initialize", initialize, out);
    }

    fn line(&mut self, line: &[u8], out: &mut Outbox) {
        let Some(line) = Incoming::read(line) else { return };
        match self.rpc.kind(&line) {
            Kind::Answer(method) => self.answered(method, &line, out),
            Kind::Request { id, method } => self.asked(id, &method, &line, out),
            Kind::Notification(method) => self.told(&method, &line, out),
            Kind::Other => {}
        }
    }

    fn answer(&mut self, key: &str, choice: &Choice, out: &mut Outbox) {
        self.permissions.settle(key, choice, out);
    }

    fn cancel(&mut self, out: &mut Outbox) {
        // Without a prompt there is nothing to cancel.
        out.over |= self.stage == Stage::Beginning;
        if self.stage == Stage::Prompted {
            out.added.push(AddedLine::Cancel {});
            Rpc::notify("session/cancel", Some(Session { session_id: &self.session }), out);
        }
        self.stage = Stage::Cancelled;
    }

    fn further_turn(&mut self, prompt: EncodedPrompt, out: &mut Outbox) {
        self.prompt = prompt;
        out.added.extend(self.name.clone().map(|name| AddedLine::Agent { name }));
        self.prompt(out);
    }
}

/// The code and the message of an error, with its details.
fn error_of(error: &RawValue) -> (i64, String) {
    let error: messages::Failure<'_> = super::rpc::read(Some(error));
    let code = error.code.and_then(|code| code.get().parse().ok()).unwrap_or(0);
    let message = text(error.message).unwrap_or_default();
    (code, error.details().map_or_else(|| message.clone(), |details| format!("{message}: {details}")))
}

#[cfg(test)]
mod tests;
