//! What the tools of the conformance suite ask for, and what comes back.

use serde_json::{Map, Value, json};

use super::input::{RESPONSES, STATE};
use super::rpc::Params;
use super::versions::ClientOffers;
use crate::error::Problem;

/// What a client sends with its call.
#[derive(Debug)]
pub(crate) struct SentInputs {
    pub(crate) state: Option<String>,
    pub(crate) responses: Option<Map<String, Value>>,
}

pub(crate) fn sent_inputs(params: &Params) -> Result<SentInputs, Problem> {
    let mut fields = params.fields()?;
    let state = fields.text(STATE, |_| None);
    let responses = fields.object(RESPONSES);
    fields.finish()?;
    let responses = responses.and_then(|responses| serde_json::from_str(responses.as_str()).ok());
    Ok(SentInputs { state, responses })
}

/// A state that the client must send back unchanged.
pub(crate) fn state_changed() -> Problem {
    Problem::field(STATE, "must be unchanged")
}

/// A result that asks for what the client offers. If it offers nothing of that, the name of a missing capability.
pub(crate) fn asked_inputs(offers: ClientOffers, state: &str, keys: &[&str]) -> Result<Value, &'static str> {
    let mut requests = Map::new();
    let mut missing = "";
    for key in keys {
        let (is_offered, capability, request) = match *key {
            "greeting" => (offers.sampling, "sampling", sampling()),
            "client_roots" => (offers.roots, "roots", json!({ "method": "roots/list", "params": {} })),
            key => (offers.forms, "elicitation", form(key)),
        };
        if is_offered {
            requests.insert((*key).to_owned(), request);
        } else {
            missing = capability;
        }
    }
    if requests.is_empty() {
        return Err(missing);
    }
    Ok(json!({ "inputRequests": requests, STATE: state }))
}

fn form(key: &str) -> Value {
    let (name, kind) = if key == "confirm" { ("ok", "boolean") } else { ("name", "string") };
    json!({ "method": "elicitation/create", "params": {
        "mode": "form",
        "message": "Please answer",
        "requestedSchema": { "type": "object", "properties": { name: { "type": kind } }, "required": [name] },
    }})
}

fn sampling() -> Value {
    let question = json!({ "type": "text", "text": "What is the capital of France?" });
    json!({ "method": "sampling/createMessage", "params": {
        "messages": [{ "role": "user", "content": question }], "maxTokens": 100,
    }})
}
