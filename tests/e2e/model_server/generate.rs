//! Replies as the Gemini API sends them: `streamGenerateContent` with server-sent events, `generateContent` as one
//! object.

use actix_web::HttpResponse;
use serde_json::{Value, json};

use super::script::{Message, Reply};
use super::wire::{Step, ending, output_tokens, refuse, stream, waiting};

pub(super) fn respond(reply: Reply, in_pieces: bool) -> HttpResponse {
    match reply {
        Reply::Error { status, kind, message, retry_after_s } => {
            let error = json!({ "error": { "code": status, "status": kind, "message": message } });
            refuse(status, retry_after_s, &error)
        }
        Reply::Message(message) if in_pieces => stream(pieces(&message)),
        Reply::Message(message) => {
            let parts: Vec<Value> = message.text.iter().map(|text| json!({ "text": text })).collect();
            HttpResponse::Ok().json(candidate(&message, &json!(parts), Some("STOP")))
        }
    }
}

fn pieces(message: &Message) -> Vec<Step> {
    let send =
        |parts: &Value, finish| Step::Send(format!("data: {}\n\n", candidate(message, parts, finish)).into());
    let mut steps = Vec::new();
    for piece in &message.thinking {
        steps.push(send(&json!([{ "text": piece, "thought": true }]), None));
    }
    for piece in &message.text {
        steps.extend(waiting(message));
        steps.push(send(&json!([{ "text": piece }]), None));
    }
    steps.extend(ending(message, |error| json!({ "error": error })));
    if let Some(tool) = &message.tool {
        let call = json!({ "name": tool.name, "args": tool.input });
        steps.push(send(&json!([{ "functionCall": call, "thoughtSignature": "c2lnbmVk" }]), None));
    }
    steps.push(send(&json!([{ "text": "" }]), Some("STOP")));
    steps
}

fn candidate(message: &Message, parts: &Value, finish: Option<&str>) -> Value {
    let tokens = output_tokens(message.text.len());
    let mut candidate = json!({ "content": { "parts": parts, "role": "model" }, "index": 0 });
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": 10, "candidatesTokenCount": tokens, "totalTokenCount": 10 + tokens,
        },
    })
}
