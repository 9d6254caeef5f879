//! JSON-RPC 2.0 over lines: the part that the Agent Client Protocol and Codex use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokenrail_ports::AddedLine;

use super::conversation::Outbox;
use super::raw_object::raw_objects;

/// The error code for an unknown method.
pub(super) const METHOD_NOT_FOUND: i32 = -32601;

raw_objects! {
    /// One line of the program. Each field is parsed only when it is used, so that a malformed field affects only
    /// itself.
    pub(super) struct Incoming<'a> { pub(super) id, method, params, result, pub(super) error }
}

/// What a line is.
#[derive(Debug)]
pub(super) enum Kind<'a> {
    /// The answer to a request that was sent with this method.
    Answer(&'static str),
    /// The program expects an answer.
    Request {
        id: &'a RawValue,
        method: String,
    },
    Notification(String),
    /// A conversation cannot use it.
    Other,
}

impl<'a> Incoming<'a> {
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    pub(super) fn params<T: Deserialize<'a> + Default>(&self) -> T {
        read(self.params)
    }

    pub(super) fn result<T: Deserialize<'a> + Default>(&self) -> T {
        read(self.result)
    }
}

/// Reads an object. If the value is absent or malformed, returns an object without fields.
pub(super) fn read<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// Reads a string; `None` if the value is absent or not a string.
pub(super) fn text(raw: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(raw?.get()).ok()
}

/// The requests that have no answer yet. Writes the lines of new messages.
#[derive(Debug, Default)]
pub(super) struct Rpc {
    last_id: u64,
    waiting: BTreeMap<u64, &'static str>,
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
}

#[derive(Serialize)]
struct Reply<'a, R> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
}

#[derive(Serialize)]
struct RpcError {
    code: i32,
    message: String,
}

const VERSION: &str = "2.0";

impl Rpc {
    /// Sends a request. The spool records its method, because the answer contains only the id.
    pub(super) fn request(&mut self, method: &'static str, params: impl Serialize, out: &mut Outbox) {
        self.last_id += 1;
        let id = self.last_id;
        self.waiting.insert(id, method);
        out.added.push(AddedLine::Sent { id, method: method.into() });
        out.say(&Request { jsonrpc: VERSION, id: Some(id), method, params: Some(params) });
    }

    pub(super) fn notify(method: &'static str, params: Option<impl Serialize>, out: &mut Outbox) {
        out.say(&Request { jsonrpc: VERSION, id: None, method, params });
    }

    /// Answers a request of the program.
    pub(super) fn reply(id: &RawValue, result: impl Serialize, out: &mut Outbox) {
        out.say(&Reply { jsonrpc: VERSION, id, result: Some(result), error: None });
    }

    /// Refuses a request of the program. Without an answer, the program would wait forever.
    pub(super) fn refuse(id: &RawValue, code: i32, message: impl Into<String>, out: &mut Outbox) {
        let error = Some(RpcError { code, message: message.into() });
        out.say(&Reply::<()> { jsonrpc: VERSION, id, result: None, error });
    }

    pub(super) fn kind<'a>(&mut self, line: &Incoming<'a>) -> Kind<'a> {
        match (text(line.method), line.id) {
            (Some(method), Some(id)) => Kind::Request { id, method },
            (Some(method), None) => Kind::Notification(method),
            (None, Some(id)) => {
                let answered = id.get().parse().ok().and_then(|id: u64| self.waiting.remove(&id));
                answered.map_or(Kind::Other, Kind::Answer)
            }
            (None, None) => Kind::Other,
        }
    }
}
