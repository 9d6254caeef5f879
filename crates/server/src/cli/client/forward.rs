//! Forwards messages of the Model Context Protocol.

mod mirrors;

use mirrors::mirrors;
use reqwest::header::HeaderValue;
use reqwest::{Method, Response};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
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

/// The id of a message that is JSON, but with characters or numbers that cannot be read. Its client waits for a
/// response.
pub(crate) fn id_of_unreadable(line: &str) -> Value {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    // Serde takes an array for an object whose fields have no names.
    let object = Some(line).filter(|line| line.trim_start().starts_with('{'));
    let named: Option<Named<'_>> = object.and_then(|line| serde_json::from_str(line).ok());
    let id = named.and_then(|named| named.id).and_then(|id| serde_json::from_str(id.get()).ok());
    id.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_with_half_an_emoji_has_its_id() {
        for (line, id) in [
            (r#"{"id":5,"method":"ping","params":{"a":"\ud83e"}}"#, json!(5)),
            (r#"{"params":[1e999],"id":"a"}"#, json!("a")),
            (r#"{"id":"\ud83e"}"#, Value::Null),
            (r#"{"id":5"#, Value::Null),
            ("[5]", Value::Null),
        ] {
            assert_eq!(id_of_unreadable(line), id, "{line}");
        }
    }
}
