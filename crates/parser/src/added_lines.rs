//! Lines that are not the agent's: Tokenrail adds them to the output of an interactive agent.
//!
//! | line | what is emitted |
//! | --- | --- |
//! | `{"tokenrail":"permission_request","requestId",…,"options":[{"optionId",…}],…}` | notice, and [`Said::Asked`] |
//! | `{"tokenrail":"permission_resolved","requestId","optionId"?,"by",…}` | notice, and [`Said::Settled`] |
//! | `{"tokenrail":"error","class","code","text"}` | nothing: the parser ends the turn |
//! | `{"tokenrail":"sent","id","method"}` | nothing: the parser matches the answer with this id to its request |
//! | `{"tokenrail":"session_lost","sessionId","text"}` | notice |
//! | `{"tokenrail":"rests"}` | nothing: the turn has ended, and the process is idle until the next turn |
//! | `{"tokenrail":"further","turn"}` | nothing: the process was asked for this turn |
//! | `{"tokenrail":"cancel"}` | nothing: what follows may have been cut |
//! | `{"tokenrail":"agent","name"}` | nothing: the name of the agent. Spools of earlier releases lack this line |

use std::collections::BTreeSet;

use tokenrail_domain::{AgentError, EventBody, JsonText, Notice, PermissionOption, PermissionRequest, Said};
use tokenrail_ports::{AddedLine, Choosable, FailureLine, PermissionRequestLine};

use crate::{errors, line};

/// The name of the notice that the agent has lost its session and starts another one.
const SESSION_LOST: &str = "session_lost";

/// Reads the lines that are not the agent's, and tracks the open permission requests.
#[derive(Debug, Default)]
pub(crate) struct AddedLines {
    open: BTreeSet<String>,
}

impl AddedLines {
    /// Reads a line and emits its events. `None` if it is a line of the agent.
    pub(crate) fn read(&mut self, bytes: &[u8], said: &mut Vec<Said>) -> Option<AddedLine> {
        if !bytes.starts_with(AddedLine::PREFIX.as_bytes()) {
            return None;
        }
        let text = line::text(bytes);
        let text = line::trimmed(&text);
        let added = AddedLine::read(text)?;
        match &added {
            AddedLine::PermissionRequest(request) => {
                self.open.insert(request.request_id.clone());
                said.push(told(Notice::PERMISSION_REQUEST, text));
                said.push(Said::Asked(Box::new(asked(request))));
            }
            AddedLine::PermissionResolved(resolution) => {
                let request_id = resolution.request_id.clone();
                self.open.remove(&request_id);
                said.push(told(Notice::PERMISSION_RESOLVED, text));
                said.push(Said::Settled { request_id, reply: resolution.reply() });
            }
            AddedLine::SessionLost { .. } => said.push(told(SESSION_LOST, text)),
            AddedLine::Idle {}
            | AddedLine::Further { .. }
            | AddedLine::Sent { .. }
            | AddedLine::Agent { .. }
            | AddedLine::Cancel {}
            | AddedLine::Error(_) => {}
            // This line is never added to the output of an interactive agent.
            AddedLine::End {} => return None,
        }
        Some(added)
    }

    /// Whether the agent waits for the answer to a permission request.
    pub(crate) fn is_asked(&self) -> bool {
        !self.open.is_empty()
    }
}

fn asked(request: &PermissionRequestLine) -> PermissionRequest {
    let PermissionRequestLine {
        request_id,
        tool_call_id,
        tool_name,
        input,
        options,
        asked_at,
        expires_at,
        default_option_id,
        accepts,
    } = request;
    PermissionRequest {
        id: request_id.clone(),
        call: tool_call_id.clone(),
        tool: tool_name.clone(),
        input: JsonText::new_unchecked(input.get()),
        options: options.iter().map(offered).collect(),
        accepts: *accepts,
        asked_at: *asked_at,
        expires_at: *expires_at,
        default_option: default_option_id.clone(),
    }
}

fn offered(option: &Choosable) -> PermissionOption {
    let Choosable { option_id, name, kind } = option;
    PermissionOption { id: option_id.clone(), name: name.clone(), kind: kind.as_str() }
}

/// The error that ends a turn.
pub(crate) fn error(failure: FailureLine) -> AgentError {
    let FailureLine { class, code, text, .. } = failure;
    errors::agent_error(class, code.as_deref(), text)
}

/// A notice with the line's object, without its first field, which is the name of the event.
fn told(kind: &str, text: &str) -> Said {
    let rest =
        text.get(AddedLine::PREFIX.len()..).and_then(|rest| rest.strip_prefix(kind)?.strip_prefix("\","));
    let data = rest.map_or_else(|| "{}".to_owned(), |rest| format!("{{{rest}"));
    let notice = Notice { subtype: kind.to_owned(), data: JsonText::new_unchecked(data) };
    Said::Event(EventBody::Notice(Box::new(notice)))
}
