//! Replies as the Chat Completions API of `OpenAI` streams them.

use actix_web::HttpResponse;
use serde_json::{Value, json};

use super::request::Request;
use super::script::{Message, Reply};
use super::wire::{INPUT_PIECE_CHARS, Step, ending, output_tokens, refuse, stream, waiting};

pub(super) fn respond(reply: Reply, number: usize, request: &Request) -> HttpResponse {
    match reply {
        Reply::Error { status, kind, message, retry_after_s } => {
            let error = json!({ "message": message, "type": kind, "param": null, "code": null });
            refuse(status, retry_after_s, &json!({ "error": error }))
        }
        Reply::Message(message) => stream(chunks(&message, number, request.model())),
    }
}

fn chunks(message: &Message, number: usize, model: &str) -> Vec<Step> {
    let id = format!("chatcmpl-{number}");
    let chunk = |choices: &Value, usage: &Value| {
        let chunk = json!({
            "id": id, "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices,
            "usage": usage,
        });
        Step::Send(format!("data: {chunk}\n\n").into())
    };
    let delta = |delta: &Value, finish: Option<&str>| {
        chunk(&json!([{ "index": 0, "delta": delta, "finish_reason": finish }]), &Value::Null)
    };
    let mut steps = vec![delta(&json!({ "role": "assistant", "content": "" }), None)];
    for piece in &message.thinking {
        steps.push(delta(&json!({ "reasoning_content": piece }), None));
    }
    for piece in &message.text {
        steps.extend(waiting(message));
        steps.push(delta(&json!({ "content": piece }), None));
    }
    steps.extend(ending(message, |error| json!({ "error": error })));
    if let Some(tool) = &message.tool {
        let function = json!({ "name": tool.name, "arguments": "" });
        let call =
            json!({ "index": 0, "id": format!("call_{number}"), "type": "function", "function": function });
        steps.push(delta(&json!({ "tool_calls": [call] }), None));
        let input: Vec<char> = tool.input.to_string().chars().collect();
        for piece in input.chunks(INPUT_PIECE_CHARS) {
            let function = json!({ "arguments": piece.iter().collect::<String>() });
            steps.push(delta(&json!({ "tool_calls": [{ "index": 0, "function": function }] }), None));
        }
    }
    let finish = if message.tool.is_some() { "tool_calls" } else { "stop" };
    steps.push(delta(&json!({}), Some(finish)));
    let tokens = output_tokens(message.text.len());
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens });
    steps.push(chunk(&json!([]), &usage));
    steps.push(Step::Send("data: [DONE]\n\n".into()));
    steps
}
