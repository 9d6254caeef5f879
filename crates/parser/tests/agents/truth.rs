//! The messages, calls and results of an agent, read independently of the parsers.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Format;
use crate::acp::AcpTruth;
use crate::fixtures::FormatRecording;
use crate::model_api::ModelApiTruth;

/// The text and the reasoning of one message.
pub(crate) type Words = (String, String);

#[derive(Default)]
pub(crate) struct Truth {
    /// Messages that ended, in the order of their ends.
    pub(crate) messages: Vec<Words>,
    /// The text so far of a message without an end.
    pub(crate) open: Vec<Words>,
    /// Call id, tool, and what its input must contain.
    pub(crate) calls: Vec<(String, String, Value)>,
    pub(crate) results: Vec<(String, Value)>,
    text: String,
    items: BTreeMap<String, Words>,
    model_api: ModelApiTruth,
}

impl Truth {
    pub(crate) fn of(recording: &FormatRecording) -> Self {
        if recording.format == Format::Acp {
            return AcpTruth::of(recording);
        }
        let mut truth = Self::default();
        for line in recording.lines() {
            if line == b"[DONE]" {
                truth.model_api.done();
            }
            let Ok(line) = serde_json::from_str::<Value>(&with_surrogates_spelled(line)) else { continue };
            match recording.format {
                format if format.is_of_model_api() => truth.model_api.event(format, &line),
                Format::Gemini => truth.gemini(&line),
                Format::Opencode => truth.opencode(&line),
                _ if line["method"].is_string() => truth.app_server(&line),
                _ => truth.codex(&line),
            }
        }
        truth.model_api.tell(&mut truth.messages, &mut truth.open, &mut truth.calls);
        truth.open.extend(Some((truth.text.clone(), String::new())).filter(|(text, _)| !text.is_empty()));
        truth.open.extend(truth.items.values().cloned());
        for words in truth.messages.iter_mut().chain(&mut truth.open) {
            *words = (joined(&words.0), joined(&words.1));
        }
        truth.messages.retain(|(text, reasoning)| !(text.is_empty() && reasoning.is_empty()));
        truth
    }

    fn gemini(&mut self, line: &Value) {
        let call = || line["tool_id"].as_str().unwrap().to_owned();
        match line["type"].as_str().unwrap() {
            "message" if line["role"] == "assistant" => {
                assert_eq!(line["delta"], true);
                return self.text.push_str(line["content"].as_str().unwrap());
            }
            "tool_use" => {
                let tool = line["tool_name"].as_str().unwrap().to_owned();
                self.calls.push((call(), tool, line["parameters"].clone()));
            }
            "tool_result" => {
                let output = line["output"].as_str().unwrap_or_default();
                self.results.push((call(), Value::from(output)));
            }
            "result" if line["status"] == "error" => return,
            "error" => return,
            _ => {}
        }
        let text = std::mem::take(&mut self.text);
        self.messages.push((text, String::new()));
    }

    fn opencode(&mut self, line: &Value) {
        let part = &line["part"];
        let text = || part["text"].as_str().unwrap().to_owned();
        match line["type"].as_str().unwrap() {
            "text" => self.messages.push((text(), String::new())),
            "reasoning" => self.messages.push((String::new(), text())),
            "tool_use" => {
                let of = |field: &str| part[field].as_str().unwrap().to_owned();
                self.calls.push((of("callID"), of("tool"), part["state"]["input"].clone()));
                self.results.push((of("callID"), part["state"]["output"].clone()));
            }
            _ => {}
        }
    }

    fn codex(&mut self, line: &Value) {
        let item = &line["item"];
        let text = || item["text"].as_str().unwrap().to_owned();
        match (line["type"].as_str().unwrap_or_default(), item["type"].as_str().unwrap_or_default()) {
            ("item.completed", "agent_message") => self.messages.push((text(), String::new())),
            ("item.completed", "reasoning") => self.messages.push((String::new(), text())),
            ("item.started", _) => self.codex_call(item),
            ("item.completed", "command_execution" | "file_change") => self.codex_result(item),
            _ => {}
        }
    }

    fn app_server(&mut self, line: &Value) {
        let (method, params) = (line["method"].as_str().unwrap(), &line["params"]);
        let item = &params["item"];
        let delta = || params["delta"].as_str().unwrap();
        let item_id = params["itemId"].as_str().or(item["id"].as_str()).unwrap_or_default().to_owned();
        match (method, item["type"].as_str().unwrap_or_default()) {
            ("item/agentMessage/delta", _) => self.items.entry(item_id).or_default().0.push_str(delta()),
            ("item/reasoning/summaryTextDelta", _) => {
                self.items.entry(item_id).or_default().1.push_str(delta());
            }
            ("item/completed", "agentMessage" | "reasoning") => {
                self.items.remove(&item_id);
                let text = item["text"].as_str().unwrap_or_default().to_owned();
                let summary = item["summary"].as_array().into_iter().flatten();
                self.messages.push((text, summary.map(|part| part.as_str().unwrap()).collect()));
            }
            ("item/started", "commandExecution") => self.codex_call(item),
            ("item/completed", "commandExecution") => self.codex_result(item),
            _ => {}
        }
    }

    fn codex_call(&mut self, item: &Value) {
        let tool = item["type"].as_str().unwrap().replace("commandE", "command_e");
        let input = match &*tool {
            "command_execution" => serde_json::json!({ "command": item["command"] }),
            _ => serde_json::json!({ "changes": item["changes"] }),
        };
        self.calls.push((item["id"].as_str().unwrap().to_owned(), tool, input));
    }

    fn codex_result(&mut self, item: &Value) {
        let outputs = [&item["aggregated_output"], &item["aggregatedOutput"], &item["status"]];
        let output = outputs.into_iter().find(|output| output.is_string()).unwrap();
        self.results.push((item["id"].as_str().unwrap().to_owned(), output.clone()));
    }
}

/// Escapes the escapes of surrogates, because a strict reader refuses lone ones: `\ud83d` becomes `\\ud83d`.
pub(crate) fn with_surrogates_spelled(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let mut out = String::new();
    let mut rest = &line[..];
    while let Some(at) = rest.find('\\') {
        let length = 2.min(rest.len() - at);
        let is_surrogate = ["\\ud8", "\\ud9", "\\uda", "\\udb", "\\udc", "\\udd", "\\ude", "\\udf"]
            .iter()
            .any(|escape| rest[at..].starts_with(escape));
        out += &rest[..at];
        out += if is_surrogate { "\\" } else { "" };
        out += &rest[at..at + length];
        rest = &rest[at + length..];
    }
    out + rest
}

/// Decodes the escaped surrogates.
pub(crate) fn joined(text: &str) -> String {
    let mut units: Vec<u16> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("\\ud") {
        units.extend(rest[..at].encode_utf16());
        units.push(u16::from_str_radix(&rest[at + 2..at + 6], 16).unwrap());
        rest = &rest[at + 6..];
    }
    units.extend(rest.encode_utf16());
    String::from_utf16_lossy(&units)
}
