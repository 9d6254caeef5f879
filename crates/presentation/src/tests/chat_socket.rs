//! Chats of the AI SDK over a WebSocket.

use actix_http::ws::OpCode;
use actix_web::test::TestRequest;
use serde_json::{Value, json};

use super::client::{Client, Heard, Served, serve};
use super::harness::{HOST, Harness};

async fn connect(served: &Served) -> Client {
    let (client, head) = Client::connect_to(served, "/api/chat").await;
    assert!(head.contains("sec-websocket-protocol: tokenrail.v1\r\n"), "{head}");
    client
}

async fn tell(client: &mut Client, frame: &Value) {
    client.send(OpCode::Text, frame.to_string().as_bytes()).await;
}

fn sending(request: &str, chat: &str, text: &str) -> Value {
    let said = json!({"id": text, "role": "user", "parts": [{"type": "text", "text": text}]});
    json!({"type": "send", "requestId": request, "id": chat, "trigger": "submit-message",
        "messages": [said], "headers": {}, "body": {}})
}

fn resuming(request: &str, chat: &str) -> Value {
    json!({"type": "resume", "requestId": request, "id": chat, "headers": {}, "body": {}})
}

/// The frames up to the end of a request.
async fn to_the_end(client: &mut Client, request: &str) -> Vec<Value> {
    let mut frames = Vec::new();
    loop {
        let frame = client.frame().await;
        assert_eq!(frame["requestId"], request, "{frame}");
        let is_last = ["end", "error", "no-active"].iter().any(|kind| frame["type"] == *kind);
        frames.push(frame);
        if is_last {
            return frames;
        }
    }
}

fn sequences(frames: &[Value]) -> Vec<u64> {
    frames.iter().filter_map(|frame| frame["sequence"].as_u64()).collect()
}

#[actix_web::test]
async fn an_answer_has_numbered_chunks_and_an_end() {
    let harness = Harness::for_chats();
    let served = serve(&harness);
    let mut client = connect(&served).await;
    tell(&mut client, &sending("r1", "c", "say a b")).await;
    let frames = to_the_end(&mut client, "r1").await;
    assert_eq!(sequences(&frames), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(frames[0]["chunk"]["type"], "start");
    assert_eq!(frames[7]["chunk"]["type"], "finish");
    assert_eq!(frames[8], json!({"type": "end", "requestId": "r1"}));

    tell(&mut client, &resuming("r2", "c")).await;
    assert_eq!(client.frame().await, json!({"type": "no-active", "requestId": "r2"}));
    tell(&mut client, &resuming("r3", "unknown")).await;
    assert_eq!(client.frame().await["type"], "no-active");
    let mut rest = resuming("r4", "c");
    rest["lastSequence"] = 4.into();
    tell(&mut client, &rest).await;
    let frames = to_the_end(&mut client, "r4").await;
    assert_eq!(frames[0], json!({"type": "start", "requestId": "r4"}));
    assert_eq!(sequences(&frames), [5, 6, 7], "the exact rest");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn an_answer_that_runs_is_resumed_from_its_start_and_an_abort_cancels_it() {
    let harness = Harness::for_chats();
    let served = serve(&harness);
    let (mut first, mut second) = (connect(&served).await, connect(&served).await);
    tell(&mut first, &sending("r1", "c", "hang")).await;
    assert_eq!(first.frame().await["chunk"]["type"], "start");
    tell(&mut second, &resuming("r2", "c")).await;
    assert_eq!(second.frame().await, json!({"type": "start", "requestId": "r2"}));
    assert_eq!(second.frame().await["sequence"], 0);
    tell(&mut first, &json!({"type": "abort", "requestId": "r1"})).await;
    let rest = to_the_end(&mut second, "r2").await;
    let told: Vec<_> = rest.iter().map(|frame| frame["chunk"]["type"].as_str().unwrap_or_default()).collect();
    assert_eq!(told[told.len() - 3..], ["abort", "finish", ""], "{rest:?}");
    tell(&mut first, &json!({"type": "abort", "requestId": "r1"})).await;
    tell(&mut first, &resuming("r3", "c")).await;
    assert_eq!(first.frame().await["type"], "no-active", "nothing more is told of what was aborted");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_request_that_is_refused_does_not_end_the_connection() {
    let harness = Harness::build(|config, _| config.subscriptions_per_connection = 1, Some("script".into()));
    let served = serve(&harness);
    let mut client = connect(&served).await;
    tell(&mut client, &sending("r1", "c", " ")).await;
    let refused = client.frame().await;
    assert_eq!((&refused["type"], &refused["requestId"]), (&json!("error"), &json!("r1")));
    assert!(refused["errorText"].as_str().unwrap().contains("must contain text"), "{refused}");
    tell(&mut client, &sending("r2", "c", "hang")).await;
    assert_eq!(client.frame().await["chunk"]["type"], "start");
    for (request, why) in [("r3", "requests in progress"), ("r2", "already used by a request")] {
        tell(&mut client, &sending(request, "c2", "say a")).await;
        let refused = client.frame().await;
        assert!(refused["errorText"].as_str().unwrap().contains(why), "{refused}");
    }
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_frame_that_names_no_request_ends_the_connection() {
    let harness = Harness::for_chats();
    let served = serve(&harness);
    for frame in
        ["{", "[]", r#"{"type":"send"}"#, r#"{"type":"ping","requestId":"r"}"#, r#"{"requestId":"r"}"#]
    {
        let mut client = connect(&served).await;
        client.send(OpCode::Text, frame.as_bytes()).await;
        assert!(matches!(client.hear().await, Heard::Close(1008)), "{frame}");
    }
    let mut client = connect(&served).await;
    client.send(OpCode::Binary, b"{}").await;
    assert!(matches!(client.hear().await, Heard::Close(1003)));
    let mut client = connect(&served).await;
    client.send(OpCode::Ping, b"x").await;
    assert!(matches!(client.hear().await, Heard::Pong(_)));
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_stranger_does_not_get_in() {
    let harness = Harness::for_chats();
    let upgrade = |uri: &str| {
        TestRequest::get()
            .uri(uri)
            .insert_header(("host", HOST))
            .insert_header(("connection", "upgrade"))
            .insert_header(("upgrade", "websocket"))
            .insert_header(("sec-websocket-version", "13"))
            .insert_header(("sec-websocket-key", "x3JJHMbDL1EzLkh9GBhXDw=="))
    };
    assert_eq!(harness.call_raw(upgrade("/api/chat")).await.problem(), "unauthenticated");
    let wrong = upgrade("/api/chat").insert_header(("sec-websocket-protocol", "tokenrail.v1, bearer.wrong"));
    assert_eq!(harness.call_raw(wrong).await.problem(), "unauthenticated");
    let foreign = upgrade("/api/chat").insert_header(("origin", "https://evil.example"));
    assert_eq!(harness.call(foreign).await.problem(), "origin_not_allowed");
    let ticket = harness.post("/api/tickets", r#"{"path":"/api/chat"}"#).await.json();
    let uri = format!("/api/chat?ticket={}", ticket["ticket"].as_str().unwrap());
    assert_eq!(
        harness.call_raw(upgrade(&uri).method(actix_web::http::Method::POST)).await.problem(),
        "unauthenticated"
    );
}
