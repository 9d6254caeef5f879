//! Replies as the API sends them: server-sent events, or one JSON object.

use std::collections::VecDeque;
use std::io;

use actix_web::web::Bytes;
use actix_web::{HttpResponse, http::StatusCode, http::header};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde_json::{Value, json};

use super::request::Request;
use super::script::{End, Gate, Message, Reply};

/// How many characters of a tool's input are in one delta.
pub(super) const INPUT_PIECE_CHARS: usize = 7;

/// `number` is used in the ids of this reply.
pub(super) fn respond(reply: Reply, number: usize, request: &Request, stream: bool) -> HttpResponse {
    match reply {
        Reply::Error { status, kind, message, retry_after_s } => {
            let error = json!({ "type": "error", "error": { "type": kind, "message": message } });
            refuse(status, retry_after_s, &error)
        }
        Reply::Message(message) => {
            let head = head(number, request.model());
            let steps = if stream { events(&message, number, &head) } else { whole(&message, number, head) };
            let media = if stream { "text/event-stream; charset=utf-8" } else { "application/json" };
            HttpResponse::Ok()
                .content_type(media)
                .insert_header(("request-id", format!("req_{number}")))
                .streaming(play(steps))
        }
    }
}

/// Refuses with an error in the format of the API.
pub(super) fn refuse(status: u16, retry_after_s: Option<u32>, error: &Value) -> HttpResponse {
    let status = StatusCode::from_u16(status).expect("a status of HTTP");
    let mut response = HttpResponse::build(status);
    if let Some(seconds) = retry_after_s {
        response.insert_header((header::RETRY_AFTER, seconds.to_string()));
    }
    response.json(error)
}

/// Answers with server-sent events, step by step.
pub(super) fn stream(steps: Vec<Step>) -> HttpResponse {
    HttpResponse::Ok().content_type("text/event-stream; charset=utf-8").streaming(play(steps))
}

pub(super) enum Step {
    Send(Bytes),
    Wait(Gate),
    Silence,
    Cut,
    /// The body ends here, whatever follows.
    End,
}

fn play(steps: Vec<Step>) -> impl Stream<Item = io::Result<Bytes>> {
    unfold(VecDeque::from(steps), |mut steps| async move {
        loop {
            match steps.pop_front()? {
                Step::Send(bytes) => return Some((Ok(bytes), steps)),
                Step::Wait(gate) => gate.wait().await,
                Step::End => return None,
                Step::Silence => std::future::pending().await,
                Step::Cut => {
                    // If a body fails, Actix discards what it has not sent yet. Let it send first.
                    tokio::task::yield_now().await;
                    return Some((Err(io::ErrorKind::ConnectionAborted.into()), VecDeque::new()));
                }
            }
        }
    })
}

fn head(number: usize, model: &str) -> Value {
    json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": model,
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": 10, "output_tokens": 1,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        },
    })
}

fn events(message: &Message, number: usize, head: &Value) -> Vec<Step> {
    let mut out = Events::default();
    out.send(&json!({ "type": "message_start", "message": head }));
    if !message.thinking.is_empty() {
        out.block(&json!({ "type": "thinking", "thinking": "", "signature": "" }), |out| {
            for piece in &message.thinking {
                out.delta(&json!({ "type": "thinking_delta", "thinking": piece }));
            }
            out.delta(&json!({ "type": "signature_delta", "signature": "c2lnbmVk" }));
        });
    }
    if !message.text.is_empty() || message.tool.is_none() {
        out.block(&json!({ "type": "text", "text": "" }), |out| {
            for piece in &message.text {
                out.steps.extend(waiting(message));
                out.delta(&json!({ "type": "text_delta", "text": piece }));
            }
            out.steps.extend(ending(message, |error| json!({ "type": "error", "error": error })));
        });
    }
    if let Some(call) = &message.tool {
        let id = format!("toolu_{number}");
        out.block(&json!({ "type": "tool_use", "id": id, "name": call.name, "input": {} }), |out| {
            let input: Vec<char> = call.input.to_string().chars().collect();
            for piece in input.chunks(INPUT_PIECE_CHARS) {
                let piece: String = piece.iter().collect();
                out.delta(&json!({ "type": "input_json_delta", "partial_json": piece }));
            }
        });
    }
    let usage = json!({ "output_tokens": output_tokens(pieces(message)) });
    let end = json!({ "stop_reason": stop_reason(message), "stop_sequence": null });
    out.send(&json!({ "type": "message_delta", "delta": end, "usage": usage }));
    out.send(&json!({ "type": "message_stop" }));
    out.steps
}

#[derive(Default)]
struct Events {
    steps: Vec<Step>,
    blocks: usize,
}

impl Events {
    fn send(&mut self, event: &Value) {
        let name = event["type"].as_str().unwrap_or_default();
        self.steps.push(Step::Send(format!("event: {name}\ndata: {event}\n\n").into()));
    }

    fn block(&mut self, content: &Value, fill: impl FnOnce(&mut Self)) {
        let index = self.blocks;
        self.send(&json!({ "type": "content_block_start", "index": index, "content_block": content }));
        fill(self);
        self.send(&json!({ "type": "content_block_stop", "index": index }));
        self.blocks += 1;
    }

    fn delta(&mut self, delta: &Value) {
        let index = self.blocks;
        self.send(&json!({ "type": "content_block_delta", "index": index, "delta": delta }));
    }
}

fn whole(message: &Message, number: usize, mut head: Value) -> Vec<Step> {
    let mut content = Vec::new();
    if !message.thinking.is_empty() {
        let thinking = message.thinking.concat();
        content.push(json!({ "type": "thinking", "thinking": thinking, "signature": "c2lnbmVk" }));
    }
    if !message.text.is_empty() || message.tool.is_none() {
        content.push(json!({ "type": "text", "text": message.text.concat() }));
    }
    if let Some(call) = &message.tool {
        let id = format!("toolu_{number}");
        content.push(json!({ "type": "tool_use", "id": id, "name": call.name, "input": call.input }));
    }
    head["content"] = content.into();
    head["stop_reason"] = stop_reason(message).into();
    head["usage"]["output_tokens"] = output_tokens(pieces(message)).into();
    let mut steps: Vec<Step> = message.text.iter().filter_map(|_| waiting(message)).collect();
    steps.extend(ending(message, |error| json!({ "type": "error", "error": error })));
    steps.push(Step::Send(head.to_string().into()));
    steps
}

pub(super) fn waiting(message: &Message) -> Option<Step> {
    message.gate.clone().map(Step::Wait)
}

/// What replaces the rest of the reply, if anything. `error` writes an error in the format of the API's streams.
pub(super) fn ending(message: &Message, error: impl FnOnce(Value) -> Value) -> Vec<Step> {
    match &message.end {
        End::Proper => Vec::new(),
        End::Silence => vec![Step::Silence],
        End::Cut => waiting(message).into_iter().chain([Step::Cut]).collect(),
        End::Error { kind, message } => {
            let event = error(json!({ "type": kind, "message": message }));
            vec![Step::Send(format!("data: {event}\n\n").into()), Step::End]
        }
    }
}

fn stop_reason(message: &Message) -> &'static str {
    if message.tool.is_some() { "tool_use" } else { "end_turn" }
}

fn pieces(message: &Message) -> usize {
    message.thinking.len() + message.text.len() + usize::from(message.tool.is_some())
}

/// One token for each piece, so that a test can predict the number.
pub(super) fn output_tokens(pieces: usize) -> usize {
    pieces.max(1)
}
