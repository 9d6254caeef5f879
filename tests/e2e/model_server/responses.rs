//! Replies as the Responses API of `OpenAI` streams them.

use actix_web::HttpResponse;
use serde_json::{Value, json};

use super::script::{Message, Reply};
use super::wire::{Step, ending, output_tokens, refuse, stream, waiting};

pub(super) fn respond(reply: Reply, number: usize) -> HttpResponse {
    match reply {
        Reply::Error { status, kind, message, retry_after_s } => {
            refuse(status, retry_after_s, &json!({ "error": { "type": kind, "message": message } }))
        }
        Reply::Message(message) => stream(events(&message, number)),
    }
}

fn events(message: &Message, number: usize) -> Vec<Step> {
    let mut out = Events { steps: Vec::new(), items: Vec::new(), number };
    out.send("response.created", json!({ "response": out.response("in_progress", &message.text) }));
    if !message.thinking.is_empty() {
        let summary = json!({ "type": "summary_text", "text": message.thinking.concat() });
        out.item(&json!({ "type": "reasoning", "id": format!("rs_{number}"), "summary": [summary] }), |_| {});
    }
    if !message.text.is_empty() || message.tool.is_none() {
        let (id, at) = (format!("msg_{number}"), out.items.len());
        let content = json!({ "type": "output_text", "annotations": [], "text": message.text.concat() });
        let item = json!({ "type": "message", "id": id, "role": "assistant", "content": [content] });
        out.item(&item, |out| {
            for piece in &message.text {
                out.steps.extend(waiting(message));
                let place = json!({ "item_id": id, "output_index": at, "content_index": 0, "delta": piece });
                out.send("response.output_text.delta", place);
            }
            out.steps.extend(ending(message, |error| json!({ "type": "error", "error": error })));
        });
    }
    if let Some(tool) = &message.tool {
        let call = json!({
            "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
            "name": tool.name, "arguments": tool.input.to_string(),
        });
        out.item(&call, |_| {});
    }
    out.send("response.completed", json!({ "response": out.response("completed", &message.text) }));
    out.steps
}

struct Events {
    steps: Vec<Step>,
    items: Vec<Value>,
    number: usize,
}

impl Events {
    fn send(&mut self, name: &str, mut event: Value) {
        event["type"] = name.into();
        event["sequence_number"] = self.steps.len().into();
        self.steps.push(Step::Send(format!("event: {name}\ndata: {event}\n\n").into()));
    }

    /// An item: its beginning, its content, and its end.
    fn item(&mut self, item: &Value, fill: impl FnOnce(&mut Self)) {
        let at = self.items.len();
        let mut begun = item.clone();
        for (field, nothing) in [("content", json!([])), ("summary", json!([])), ("arguments", json!(""))] {
            if begun.get(field).is_some() {
                begun[field] = nothing;
            }
        }
        self.send("response.output_item.added", json!({ "output_index": at, "item": begun }));
        fill(self);
        self.send("response.output_item.done", json!({ "output_index": at, "item": item }));
        self.items.push(item.clone());
    }

    fn response(&self, status: &str, text: &[String]) -> Value {
        let tokens = output_tokens(text.len());
        json!({
            "id": format!("resp_{}", self.number), "object": "response", "status": status,
            "output": self.items,
            "usage": { "input_tokens": 10, "output_tokens": tokens, "total_tokens": 10 + tokens },
        })
    }
}
