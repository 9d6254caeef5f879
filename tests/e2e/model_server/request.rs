//! The requests of the program.

use std::collections::BTreeMap;

use actix_web::http::header::HeaderMap;
use serde_json::Value;

/// One request for a message. It contains the whole conversation so far.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    body: Value,
    headers: BTreeMap<String, String>,
}

impl Request {
    pub(super) fn new(body: Value) -> Self {
        Self { body, headers: BTreeMap::new() }
    }

    pub(super) fn with_headers(mut self, headers: &HeaderMap) -> Self {
        let texts = headers.iter().filter_map(|(name, value)| Some((name, value.to_str().ok()?)));
        self.headers = texts.map(|(name, value)| (name.to_string(), value.to_owned())).collect();
        self
    }

    /// The value of a header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The request body, unchanged.
    pub(crate) fn body(&self) -> &Value {
        &self.body
    }

    /// The conversation so far, one line per message: `user: Say hello`, `assistant: Hello`,
    /// `assistant: Bash {"command":"ls"}`. Text that the program itself adds (system messages, and reminders in the
    /// user's messages) is left out.
    pub(crate) fn conversation(&self) -> Vec<String> {
        let messages =
            self.body["messages"].as_array().or(self.body["input"].as_array()).into_iter().flatten();
        messages.filter(|message| message["role"] != "system").flat_map(lines).collect()
    }

    pub(super) fn wants_stream(&self) -> bool {
        self.body["stream"] == true
    }

    /// Only the conversation itself offers tools.
    pub(super) fn offers_tools(&self) -> bool {
        self.body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }

    pub(super) fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or("a-model")
    }
}

fn lines(message: &Value) -> Vec<String> {
    let role = message["role"].as_str().unwrap_or("nobody");
    let said = match &message["content"] {
        Value::Array(blocks) => blocks.iter().map(block).collect(),
        plain => vec![text(plain)],
    };
    let own_words = said.into_iter().filter(|words| !words.trim_start().starts_with("<system-reminder>"));
    own_words.map(|words| format!("{role}: {words}")).collect()
}

fn block(block: &Value) -> String {
    match block["type"].as_str() {
        Some("tool_use") => format!("{} {}", text(&block["name"]), block["input"]),
        Some("tool_result") => text(&block["content"]),
        Some("thinking") => text(&block["thinking"]),
        _ => text(&block["text"]),
    }
}

/// A string itself, or the text of a list of blocks.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(block).collect(),
        other => other.to_string(),
    }
}
