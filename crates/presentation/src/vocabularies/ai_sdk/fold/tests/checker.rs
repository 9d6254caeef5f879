//! What a client requires of its chunks, as strict as the strictest version.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::SdkVersion;

/// The fields that the first releases of version 5 accept in each kind of chunk. Fields with `?` are optional.
const NAMES: [(&str, &str); 23] = [
    ("start", "messageId messageMetadata"),
    ("start-step", ""),
    ("finish-step", ""),
    ("text-start", "id"),
    ("text-delta", "id delta"),
    ("text-end", "id"),
    ("reasoning-start", "id"),
    ("reasoning-delta", "id delta"),
    ("reasoning-end", "id"),
    ("tool-input-start", "toolCallId toolName providerExecuted dynamic"),
    ("tool-input-delta", "toolCallId inputTextDelta"),
    ("tool-input-available", "toolCallId toolName input providerExecuted providerMetadata? dynamic"),
    ("tool-input-error", "toolCallId toolName input errorText providerExecuted dynamic"),
    ("tool-output-available", "toolCallId output providerExecuted dynamic"),
    ("tool-output-error", "toolCallId errorText providerExecuted dynamic"),
    ("message-metadata", "messageMetadata"),
    ("error", "errorText"),
    ("abort", "reason?"),
    ("finish", "finishReason? messageMetadata"),
    ("reset-step", ""),
    ("tool-approval-request", "approvalId toolCallId"),
    ("tool-approval-response", "approvalId approved reason providerExecuted"),
    ("tool-output-denied", "toolCallId"),
];

/// Chunks and fields that 5.0.0 does not know, and the first release that does.
const LATER: [(&str, SdkVersion); 5] = [
    ("tool-input-error", SdkVersion::V6),
    ("tool-approval-request", SdkVersion::V6),
    ("tool-output-denied", SdkVersion::V6),
    ("tool-approval-response", SdkVersion::V7),
    ("reset-step", SdkVersion::V7Reset),
];

/// A client's state.
#[derive(Default)]
pub(super) struct Client {
    in_step: bool,
    words: BTreeSet<String>,
    /// Calls whose input is being streamed.
    inputs: BTreeSet<String>,
    /// Calls by id, and whether they have ended.
    calls: BTreeMap<String, bool>,
    /// The calls of the current step.
    of_step: BTreeSet<String>,
    /// The calls of the requested approvals. A call has only its newest approval.
    approvals: BTreeMap<String, String>,
    has_failed: bool,
}

impl Client {
    pub(super) fn reads(mut self, chunks: &[String], version: SdkVersion) {
        for (index, text) in chunks.iter().enumerate() {
            let chunk: Map<String, Value> = serde_json::from_str(text).unwrap();
            let kind = chunk["type"].as_str().unwrap();
            check_names(kind, &chunk, version);
            assert_eq!(kind == "start", index == 0, "{text}");
            assert_eq!(kind == "finish", index + 1 == chunks.len(), "{text}");
            assert!(!self.has_failed || kind == "finish", "nothing is read behind an error: {text}");
            self.reads_one(kind, &chunk);
        }
        assert!(!self.in_step && self.words.is_empty() && self.inputs.is_empty());
        assert!(self.calls.values().all(|over| *over), "{:?}", self.calls);
    }

    fn reads_one(&mut self, kind: &str, chunk: &Map<String, Value>) {
        let text = |name: &str| chunk[name].as_str().unwrap().to_owned();
        match kind {
            "start-step" => {
                assert!(!std::mem::replace(&mut self.in_step, true));
                self.of_step.clear();
            }
            "finish-step" => {
                // Version 5 forgets open parts at this point.
                assert!(self.words.is_empty());
                assert!(std::mem::replace(&mut self.in_step, false));
            }
            "reset-step" => {
                assert!(self.in_step && self.words.is_empty());
                self.inputs.clear();
                let of_step = std::mem::take(&mut self.of_step);
                self.calls.retain(|call, _| !of_step.contains(call));
                self.approvals.retain(|_, call| !of_step.contains(call));
            }
            "text-start" | "reasoning-start" => {
                assert!(self.in_step && self.words.insert(text("id")), "{chunk:?}");
            }
            "text-delta" | "reasoning-delta" => {
                assert!(self.words.contains(&text("id")) && !text("delta").is_empty());
            }
            "text-end" | "reasoning-end" => assert!(self.words.remove(&text("id"))),
            "tool-input-start" => {
                assert!(self.in_step && self.inputs.insert(text("toolCallId")), "{chunk:?}");
                self.of_step.insert(text("toolCallId"));
                self.calls.insert(text("toolCallId"), false);
            }
            "tool-input-delta" => assert!(self.inputs.contains(&text("toolCallId"))),
            "tool-input-available" | "tool-input-error" => {
                assert!(self.in_step);
                self.inputs.remove(&text("toolCallId"));
                self.of_step.insert(text("toolCallId"));
                self.calls.insert(text("toolCallId"), kind == "tool-input-error");
            }
            "tool-output-available" | "tool-output-error" => {
                self.inputs.remove(&text("toolCallId"));
                *self.calls.get_mut(&text("toolCallId")).expect("a result of a call that is known") = true;
            }
            "tool-approval-request" => {
                assert_eq!(self.calls.get(&text("toolCallId")), Some(&false), "{chunk:?}");
                assert!(!self.inputs.contains(&text("toolCallId")));
                self.approvals.retain(|_, call| *call != text("toolCallId"));
                self.approvals.insert(text("approvalId"), text("toolCallId"));
            }
            "tool-approval-response" => {
                let call = self.approvals.get(&text("approvalId")).expect("an approval that is known");
                assert!(!self.calls[call]);
            }
            "tool-output-denied" => {
                assert_eq!(self.calls.insert(text("toolCallId"), true), Some(false), "{chunk:?}");
            }
            "error" => {
                assert!(!self.in_step);
                self.has_failed = true;
            }
            _ => {}
        }
    }
}

fn check_names(kind: &str, chunk: &Map<String, Value>, version: SdkVersion) {
    for (name, value) in chunk {
        let open = matches!(name.as_str(), "input" | "output" | "data" | "messageMetadata");
        assert!(open || !value.is_null(), "absent beats null: {name} of {kind}");
    }
    let mut names: BTreeSet<&str> = chunk.keys().map(String::as_str).collect();
    names.remove("type");
    if kind.starts_with("data-") {
        assert!(
            names.contains("data") && names.iter().all(|name| ["id", "data", "transient"].contains(name))
        );
        return;
    }
    let (_, known) = NAMES.iter().find(|(known, _)| *known == kind).expect("a kind that is known");
    for name in known.split(' ').filter(|name| !name.is_empty()) {
        let present = names.remove(name.trim_end_matches('?'));
        assert!(present || name.ends_with('?'), "{kind} has no {name}");
    }
    assert!(names.is_empty(), "{kind} has {names:?}");
    let first = LATER.iter().find(|(later, _)| *later == kind).map_or(SdkVersion::Any, |(_, first)| *first);
    assert!(first <= version, "{kind} in {version:?}");
    assert!(SdkVersion::V6 <= version || !chunk.contains_key("finishReason"), "{version:?}");
    assert!(SdkVersion::V7 <= version || kind != "abort" || !chunk.contains_key("reason"), "{version:?}");
    if let Some(reason) = chunk.get("finishReason").and_then(Value::as_str) {
        let known = ["stop", "length", "content-filter", "tool-calls", "error", "other"];
        assert!(known.contains(&reason) || (SdkVersion::V7Interrupted <= version && reason == "interrupted"));
    }
}
