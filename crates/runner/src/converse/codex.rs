//! `codex app-server`: JSON-RPC over lines.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use tokenrail_domain::{Accepts, ErrorClass};
use tokenrail_ports::{Choosable, OptionKind};

use super::conversation::{Choice, Conversation, NewRequest, Outbox};
use super::prompt::FilePrompt;
use super::raw_object::raw_objects;
use super::rpc::{Incoming, Kind, METHOD_NOT_FOUND, Rpc, text};
use crate::run_folder::Opening;

const COMMAND: &str = "item/commandExecution/requestApproval";
const FILE_CHANGE: &str = "item/fileChange/requestApproval";

/// One turn of Codex. When the turn has ended, the standard input of Codex is closed, and Codex exits.
#[derive(Debug)]
pub(super) struct CodexConversation {
    opening: Opening,
    prompt: FilePrompt,
    rpc: Rpc,
    thread: String,
    turn: Option<String>,
    /// The JSON-RPC ids of open permission requests, exactly as received, by their keys.
    asked: BTreeMap<String, Box<RawValue>>,
    cancelled: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Initialize {
    client_info: ClientInfo,
}

#[derive(Serialize)]
struct ClientInfo {
    name: &'static str,
    title: &'static str,
    version: &'static str,
}

/// The parameters of `thread/start` and `thread/resume`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThreadParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<&'a str>,
    cwd: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StartTurn<'a> {
    thread_id: &'a str,
    input: Vec<Input<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Input<'a> {
    /// Codex prints each message with its content, and the whole thread when a thread is resumed. So a message names
    /// the file, and does not contain the image.
    LocalImage {
        path: &'a str,
    },
    Text {
        text: &'a str,
    },
}

impl<'a> Input<'a> {
    fn of(prompt: &'a FilePrompt) -> Vec<Self> {
        let FilePrompt { text, files } = prompt;
        files.iter().map(|path| Self::LocalImage { path }).chain([Self::Text { text }]).collect()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InterruptTurn<'a> {
    thread_id: &'a str,
    turn_id: &'a str,
}

#[derive(Serialize)]
struct Decision {
    decision: &'static str,
}

raw_objects! {
    /// A result that holds a thread or a turn, or a notification about one.
    struct About<'a> {
        thread,
        turn,
        #[serde(rename = "threadId")]
        thread_id,
    }

    struct Entity<'a> { id }

    #[serde(rename_all = "camelCase")]
    struct Approval<'a> { item_id, request_id }
}

impl CodexConversation {
    pub(super) fn new(opening: Opening, prompt: FilePrompt) -> Self {
        Self {
            opening,
            prompt,
            rpc: Rpc::default(),
            thread: String::new(),
            turn: None,
            asked: BTreeMap::new(),
            cancelled: false,
        }
    }

    fn answered(&mut self, method: &'static str, line: &Incoming<'_>, out: &mut Outbox) {
        if line.error.is_some() {
            // The parser reads the reason. If any request other than the interrupt fails, there is no turn.
            out.over |= method != "turn/interrupt";
            return;
        }
        let result: About<'_> = line.result();
        match method {
            "initialize" => {
                Rpc::notify("initialized", None::<()>, out);
                let Opening { session, model, cwd, .. } = &self.opening;
                let thread = ThreadParams { thread_id: session.as_deref(), cwd, model: model.as_deref() };
                let method = if session.is_some() { "thread/resume" } else { "thread/start" };
                self.rpc.request(method, thread, out);
            }
            "thread/start" | "thread/resume" if self.cancelled => out.over = true,
            "thread/start" | "thread/resume" => {
                self.thread = id(result.thread);
                if self.thread.is_empty() {
                    let text = format!("the agent's response to {method} contains no thread id");
                    return out.fail(ErrorClass::Protocol, "answer_invalid", text);
                }
                let input = Input::of(&self.prompt);
                self.rpc.request("turn/start", StartTurn { thread_id: &self.thread, input }, out);
            }
            "turn/start" => {
                self.turn = Some(id(result.turn));
                if self.cancelled {
                    self.interrupt(out);
                }
            }
            _ => {}
        }
    }

    fn asked(&mut self, request: &RawValue, method: &str, line: &Incoming<'_>, out: &mut Outbox) {
        let tool_name = match method {
            COMMAND => "commandExecution",
            FILE_CHANGE => "fileChange",
            _ => {
                return Rpc::refuse(
                    request,
                    METHOD_NOT_FOUND,
                    "this client does not support this request",
                    out,
                );
            }
        };
        let approval: Approval<'_> = line.params();
        let key = request.get().to_owned();
        out.asked.push(NewRequest {
            key: key.clone(),
            tool_call_id: text(approval.item_id),
            tool_name: tool_name.to_owned(),
            input: line.params::<Option<Box<RawValue>>>().unwrap_or_else(|| RawValue::NULL.to_owned()),
            options: vec![
                Choosable::new("accept", "Allow", OptionKind::AllowOnce),
                Choosable::new("acceptForSession", "Allow for this session", OptionKind::AllowAlways),
                Choosable::new("decline", "Reject", OptionKind::RejectOnce),
            ],
            // Its decisions have no field for a text.
            accepts: Accepts::default(),
        });
        self.asked.insert(key, request.to_owned());
    }

    /// Interrupts the turn if its id is known. If not, this is called again when it is.
    fn interrupt(&mut self, out: &mut Outbox) {
        if let Some(turn_id) = &self.turn {
            self.rpc.request("turn/interrupt", InterruptTurn { thread_id: &self.thread, turn_id }, out);
        }
    }
}

impl Conversation for CodexConversation {
    fn open(&mut self, out: &mut Outbox) {
        let version = env!("CARGO_PKG_VERSION");
        let client_info = ClientInfo { name: "tokenrail", title: "Tokenrail", version };
        self.rpc.request("initialize", Initialize { client_info }, out);
    }

    fn line(&mut self, line: &[u8], out: &mut Outbox) {
        let Some(line) = Incoming::read(line) else { return };
        match self.rpc.kind(&line) {
            Kind::Answer(method) => self.answered(method, &line, out),
            Kind::Request { id, method } => self.asked(id, &method, &line, out),
            Kind::Notification(method) => {
                let about: About<'_> = line.params();
                // Threads that the agent itself has started end turns too.
                let ours = text(about.thread_id).is_none_or(|thread| thread == self.thread);
                match &*method {
                    "turn/completed" => out.over |= ours,
                    "serverRequest/resolved" => {
                        let resolved: Approval<'_> = line.params();
                        out.withdrawn.extend(resolved.request_id.map(|id| id.get().to_owned()));
                    }
                    _ => {}
                }
            }
            Kind::Other => {}
        }
    }

    fn line_too_long(&mut self, out: &mut Outbox) {
        // Before the turn, the program only answers requests. Without the answer, no turn would begin.
        if self.thread.is_empty() {
            let text = "a response of the agent program is longer than limits.line_bytes, so the turn cannot begin; \
                        raise the limit";
            out.fail(ErrorClass::Protocol, "answer_too_long", text.to_owned());
        }
    }

    fn answer(&mut self, key: &str, choice: &Choice, out: &mut Outbox) {
        let Some(id) = self.asked.remove(key) else { return };
        let decision = match choice {
            Choice::Option(option) if option == "accept" => "accept",
            Choice::Option(option) if option == "acceptForSession" => "acceptForSession",
            Choice::Option(_)
            | Choice::OptionWithNote { .. }
            | Choice::Composed { .. }
            | Choice::Dismissed => "decline",
            Choice::TurnCancelled => "cancel",
        };
        Rpc::reply(&id, Decision { decision }, out);
    }

    fn cancel(&mut self, out: &mut Outbox) {
        self.cancelled = true;
        self.interrupt(out);
    }
}

fn id(raw: Option<&RawValue>) -> String {
    let entity: Entity<'_> = super::rpc::read(raw);
    text(entity.id).unwrap_or_default()
}

#[cfg(test)]
mod tests;
