//! The scripted model server, as any client of the API sees it.

use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};

use super::{Gate, ModelServer, Reply};

async fn post(model: &ModelServer, path: &str, body: &Value) -> reqwest::Response {
    // An error means that another test has already installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    client.post(format!("{}{path}", model.url())).json(body).send().await.expect("an answer")
}

fn prompt(text: &str, stream: bool) -> Value {
    let tools = json!([{ "name": "Bash" }]);
    json!({ "stream": stream, "tools": tools, "messages": [{ "role": "user", "content": text }] })
}

/// The data of all events of a stream that has ended.
fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

#[tokio::test]
async fn a_reply_is_streamed_in_the_events_of_the_api() {
    let call = Reply::tool_call("Bash", json!({ "command": "ls" }));
    let model = ModelServer::start([call.saying(["a", "b"])]);
    let text = post(&model, "/v1/messages", &prompt("go", true)).await.text().await.expect("text");
    let events = events(&text);
    let names: Vec<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(
        names[..4],
        ["message_start", "content_block_start", "content_block_delta", "content_block_delta"]
    );
    assert_eq!(names[names.len() - 2..], ["message_delta", "message_stop"]);
    let input: String = events.iter().filter_map(|event| event["delta"]["partial_json"].as_str()).collect();
    assert_eq!(input, r#"{"command":"ls"}"#);
    assert_eq!(model.request(1).await.conversation(), ["user: go"]);
}

#[tokio::test]
async fn a_reply_without_a_stream_is_one_object() {
    let model = ModelServer::start([Reply::thinking(["Hm"]).saying(["a", "b"])]);
    let reply: Value = post(&model, "/v1/messages", &prompt("go", false)).await.json().await.expect("JSON");
    assert_eq!(reply["content"][0]["thinking"], "Hm");
    assert_eq!(reply["content"][1]["text"], "ab");
    assert_eq!(reply["stop_reason"], "end_turn");
}

/// Whether a piece could pass now.
fn passes(gate: &Gate) -> bool {
    gate.wait().now_or_never().is_some()
}

#[test]
fn a_gate_lets_pass_as_many_pieces_as_it_was_told() {
    let gate = Gate::new();
    assert!(!passes(&gate));
    gate.pass(2);
    assert!(passes(&gate) && passes(&gate) && !passes(&gate));
    gate.open();
    assert!(passes(&gate) && passes(&gate));
}

#[tokio::test]
async fn each_piece_of_a_gated_reply_passes_the_gate_by_itself() {
    let gate = Gate::new();
    let model = ModelServer::start([Reply::text(["one", "two", "three"]).gated(&gate)]);
    let mut body = post(&model, "/v1/messages", &prompt("go", true)).await.bytes_stream();
    let mut seen = String::new();
    for expected in ["one", "two"] {
        gate.pass(1);
        while !seen.contains(expected) {
            let piece = body.next().await.expect("more").expect("no failure");
            seen += std::str::from_utf8(&piece).expect("text");
        }
    }
    gate.pass(2);
    while let Some(piece) = body.next().await {
        seen += std::str::from_utf8(&piece.expect("no failure")).expect("text");
    }
    assert!(seen.contains("three") && seen.contains("message_stop"));
    assert!(passes(&gate) && !passes(&gate), "three of four were used");
}

#[tokio::test]
async fn a_cut_reply_ends_with_a_failure_and_silence_does_not_end() {
    let model = ModelServer::start([Reply::text(["one"]).then_cut(), Reply::text(["two"]).then_silence()]);
    let mut body = post(&model, "/v1/messages", &prompt("go", true)).await.bytes_stream();
    let mut seen = String::new();
    let failed = loop {
        match body.next().await {
            Some(Ok(piece)) => seen += std::str::from_utf8(&piece).expect("text"),
            Some(Err(_)) => break true,
            None => break false,
        }
    };
    assert!(failed && seen.contains("one") && !seen.contains("message_stop"));
    let mut body = post(&model, "/v1/messages", &prompt("go", true)).await.bytes_stream();
    while !seen.contains("two") {
        seen += std::str::from_utf8(&body.next().await.expect("more").expect("no failure")).expect("text");
    }
    assert!(!seen.contains("message_stop"));
}

#[tokio::test]
async fn an_error_has_its_status_and_says_when_to_come_again() {
    let model = ModelServer::start([Reply::error(529, "overloaded_error", "Overloaded").retry_after_s(2)]);
    let response = post(&model, "/v1/messages", &prompt("go", true)).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (529, &"2".parse().expect("ok"))
    );
    assert_eq!(response.json::<Value>().await.expect("JSON")["error"]["type"], "overloaded_error");
}

#[tokio::test]
async fn what_is_asked_beside_the_conversation_takes_nothing_from_the_script() {
    let model = ModelServer::start([Reply::text(["for the conversation"])]);
    let title = json!({ "messages": [{ "role": "user", "content": "A title, please" }] });
    let beside = post(&model, "/v1/messages", &title).await.text().await.expect("text");
    assert!(beside.contains("Beside the conversation") && model.requests().is_empty());
    let counted: Value = post(&model, "/v1/messages/count_tokens", &title).await.json().await.expect("JSON");
    assert!(counted["input_tokens"].is_u64());
    let reply = post(&model, "/v1/messages", &prompt("go", false)).await.text().await.expect("text");
    assert!(reply.contains("for the conversation"));
    assert_eq!(model.requests()[0].body()["messages"][0]["content"], "go");
}

#[tokio::test]
async fn a_script_that_is_too_short_is_an_error_that_nobody_tries_again() {
    let model = ModelServer::start([]);
    assert_eq!(post(&model, "/v1/messages", &prompt("go", true)).await.status(), 400);
    assert_eq!(post(&model, "/v1/elsewhere", &json!({})).await.status(), 404);
}
