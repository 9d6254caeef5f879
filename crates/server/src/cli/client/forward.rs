//! Forwards messages of the Model Context Protocol.

mod mirrors;

use mirrors::mirrors;
use reqwest::header::HeaderValue;
use reqwest::{Method, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{ANSWER_TIMEOUT, Client, root_cause};
use crate::cli::{Exit, Failure};

/// The header with the run of the agent that sends the message.
const RUN: &str = "tokenrail-run";

/// The method whose response is a stream without an end.
const LISTEN: &str = "subscriptions/listen";

/// A message, and the headers that repeat parts of it.
pub(crate) struct Message {
    text: String,
    mirrors: Vec<(&'static str, HeaderValue)>,
    /// Whether its response lasts until the client cancels it.
    pub(crate) lasts: bool,
}

impl Message {
    /// `json` is the text, read.
    pub(crate) fn new(text: String, json: &Value) -> Self {
        let lasts = json.get("method").is_some_and(|method| method == LISTEN);
        Self { text, mirrors: mirrors(json), lasts }
    }
}

/// Why a message has no response.
pub(crate) enum Lost {
    /// Nothing was sent, so the message can be sent again.
    NotConnected(Failure),
    Broken(Failure),
}

impl From<Lost> for Failure {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::NotConnected(failure) | Lost::Broken(failure) => failure,
        }
    }
}

impl Client {
    /// Forwards a message, and returns the response whatever its status is. `run` is that of the sending agent.
    pub(crate) async fn forward(&self, message: &Message, run: Option<&str>) -> Result<Response, Lost> {
        let request = self.request(Method::POST, &["mcp"], &[]).map_err(Lost::Broken)?;
        let request = request.header("content-type", "application/json");
        let mut request =
            request.header("accept", "application/json, text/event-stream").body(message.text.clone());
        for (name, value) in &message.mirrors {
            request = request.header(*name, value);
        }
        if let Some(run) = run {
            request = request.header(RUN, run);
        }
        match timeout(ANSWER_TIMEOUT, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                let text = format!("cannot reach a server at {} ({})", self.base(), root_cause(&error));
                let failure = Failure::new(Exit::Unreachable, text);
                Err(if error.is_connect() { Lost::NotConnected(failure) } else { Lost::Broken(failure) })
            }
            Err(_) => {
                let text = format!(
                    "the server at {} did not respond within {ANSWER_TIMEOUT:?}; see its log",
                    self.base()
                );
                Err(Lost::Broken(Failure::new(Exit::Unreachable, text)))
            }
        }
    }
}

/// What a message says that is JSON, but has characters or numbers that cannot be read: its id, its method, and the
/// request that it is about. Its client may wait for a response. `null` if its own id cannot be read, or it has no id
/// and no method.
pub(crate) fn readable_parts(line: &str) -> Value {
    #[derive(Deserialize)]
    struct Parts<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        #[serde(borrow)]
        method: Option<&'a RawValue>,
        #[serde(borrow)]
        params: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        #[serde(borrow)]
        request_id: Option<&'a RawValue>,
    }
    fn object<'a, T: Deserialize<'a>>(json: &'a str) -> Option<T> {
        // Serde takes an array for an object whose fields have no names.
        json.trim_start().starts_with('{').then(|| serde_json::from_str(json).ok()).flatten()
    }
    fn value(json: &RawValue) -> Option<Value> {
        serde_json::from_str(json.get()).ok()
    }
    let Some(Parts { id, method, params }) = object(line) else { return Value::Null };
    let mut parts = serde_json::Map::new();
    match (id, id.and_then(value)) {
        (Some(_), None) => return Value::Null,
        (_, id) => parts.extend(id.map(|id| ("id".to_owned(), id))),
    }
    parts.extend(method.and_then(value).map(|method| ("method".to_owned(), method)));
    if parts.is_empty() {
        return Value::Null;
    }
    let params: Option<Params<'_>> = params.and_then(|params| object(params.get()));
    let about = params.and_then(|params| params.request_id).and_then(value);
    parts.extend(about.map(|about| ("params".to_owned(), json!({ "requestId": about }))));
    Value::Object(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_half_an_emoji_says_what_can_be_read() {
        let cancelled =
            r#"{"method":"notifications/cancelled","params":{"requestId":5,"reason":"cut \ud83e"}}"#;
        let notice = json!({ "method": "notifications/cancelled", "params": { "requestId": 5 } });
        for (line, parts) in [
            (r#"{"id":5,"method":"ping","params":{"a":"\ud83e"}}"#, json!({ "id": 5, "method": "ping" })),
            (r#"{"params":[1e999],"id":"a"}"#, json!({ "id": "a" })),
            (cancelled, notice),
            (r#"{"id":"\ud83e","method":"ping"}"#, Value::Null),
            (r#"{"id":5"#, Value::Null),
            ("[5]", Value::Null),
            (r#"{"params":"\ud83e"}"#, Value::Null),
        ] {
            assert_eq!(readable_parts(line), parts, "{line}");
        }
    }
}
