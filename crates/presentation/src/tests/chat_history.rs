//! Chats whose clients send their whole history: only the newest message of the user counts.

use std::time::Duration;

use actix_http::ws::{OpCode, Parser};
use actix_web::web::BytesMut;
use serde_json::{Value, json};

use super::client::{Client, Heard, serve};
use super::harness::{Answer, Harness};

/// The limits for a message or any other request, for a chat request, and for all chat requests that are being
/// received.
const MESSAGE_BYTES: usize = 2_000;
const CHAT_BYTES: usize = 400_000;
const CHATS_BYTES: usize = 800_000;

fn harness() -> Harness {
    let small = |config: &mut crate::PresentationConfig| {
        config.request_bytes = MESSAGE_BYTES;
        config.chat_bytes = CHAT_BYTES;
        config.chats_bytes = CHATS_BYTES;
    };
    Harness::build(|config, _| small(config), Some("script".to_owned()))
}

fn user(id: &str, text: &str) -> String {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}).to_string()
}

fn body(chat: &str, messages: &[&str]) -> String {
    format!(r#"{{"id":"{chat}","trigger":"submit-message","messages":[{}]}}"#, messages.join(","))
}

/// Histories that clients really send, and malformed ones.
fn histories() -> Vec<(&'static str, String)> {
    let answer = |part: &str| format!(r#"{{"id":"a","role":"assistant","parts":[{part}]}}"#);
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let tool = |input: &str| answer(&format!(r#"{{"type":"dynamic-tool","input":{input}}}"#));
    vec![
        ("a large answer", answer(&json!({"type": "text", "text": "x".repeat(CHAT_BYTES / 2)}).to_string())),
        ("a large message of the user", user("u0", &"x".repeat(CHAT_BYTES / 2))),
        ("a file", r#"{"id":"u","role":"user","parts":[{"type":"file","url":"data:,x"}]}"#.to_owned()),
        ("deep nesting", tool(&deep(100_000))),
        ("an unpaired surrogate", answer(r#"{"type":"text","text":"\ud83d"}"#)),
        ("such a name", tool(r#"{"\udc00":1}"#)),
        ("a number beyond all", tool("[1e999,-1e999]")),
        ("a name twice", tool(r#"{"a":1,"a":2}"#)),
        ("a user without words", r#"{"id":"u","role":"user","parts":[]}"#.to_owned()),
        ("no message", r#"7,null,"x",[{}],{},{"role":7},{"role":"assistant","role":"user"}"#.to_owned()),
    ]
}

fn text(chunks: &[Value]) -> String {
    chunks.iter().filter_map(|chunk| chunk["delta"].as_str()).collect()
}

fn answered(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", &answer.text[..answer.text.len().min(500)]);
    let lines = answer.text.lines().filter_map(|line| line.strip_prefix("data: {"));
    text(&lines.map(|rest| serde_json::from_str(&format!("{{{rest}")).unwrap()).collect::<Vec<_>>())
}

#[actix_web::test]
async fn a_chat_goes_on_whatever_is_in_its_history() {
    let harness = harness();
    for (what, history) in histories() {
        let body = body("c", &[&user("u0", "say a"), &history, &user(what, "say b")]);
        assert_eq!(answered(&harness.post("/api/chat", &body).await), "b", "{what}");
    }
}

#[actix_web::test]
async fn what_is_said_now_is_read_strictly() {
    let harness = harness();
    let half = r#"{"id":"u","role":"user","parts":[{"type":"text","text":"say \ud83d"}]}"#;
    let number = r#"{"id":"u","role":"user","parts":[{"type":"text","text":7}]}"#;
    let long = user("u", &"x".repeat(MESSAGE_BYTES));
    let said = user("u1", "say a");
    for (messages, code, pointer, words) in [
        (vec![&*said, half], "validation_failed", "/messages/1", "an unpaired surrogate"),
        (vec![&*said, number], "validation_failed", "/messages/1", "must be a message"),
        (vec![&*said, "7", "{}"], "validation_failed", "/messages/1", "must be a message"),
        (
            vec![&*said, r#"{"role":"user","role":"user"}"#],
            "validation_failed",
            "/messages/1",
            "must be a message",
        ),
        (vec![&*said, &long], "payload_too_large", "", ""),
    ] {
        let answer = harness.post("/api/chat", &body("c", &messages)).await;
        assert_eq!(answer.problem(), code, "{messages:?}");
        let error = answer.json()["errors"][0].clone();
        assert_eq!(error["pointer"].as_str().unwrap_or_default(), pointer, "{error}");
        assert!(error["detail"].as_str().unwrap_or_default().contains(words), "{error}");
    }
    for malformed in [
        r#"{"messages":[}"#,
        r#"{"messages":[],"x":[{]}}"#,
        r#"{"messages":[],"messages":[]}"#,
        r#"{"id":"c","id":"c","messages":[]}"#,
        r#"{"messages":[]}{}"#,
        r#"{"messages":[]"#,
        "",
    ] {
        assert_eq!(harness.post("/api/chat", malformed).await.problem(), "malformed_json", "{malformed}");
    }
    let list = harness.post("/api/chat", &format!("[{said}]")).await;
    assert_eq!(list.json()["errors"][0], json!({"pointer": "", "detail": "must be an object"}));
}

#[actix_web::test]
async fn a_chat_has_a_size_and_all_of_them_together_have_one() {
    let harness = harness();
    let filled = |bytes: usize| body("c", &[&user("u0", &"x".repeat(bytes)), &user("u1", "say a")]);
    assert_eq!(harness.post("/api/chat", &filled(CHAT_BYTES)).await.problem(), "payload_too_large");
    let permit = harness.api.large_request_permit(CHATS_BYTES - CHAT_BYTES / 2).unwrap();
    let refused = harness.post("/api/chat", &filled(CHAT_BYTES - 1000)).await;
    assert_eq!((refused.problem(), refused.header("retry-after")), ("capacity_exhausted".to_owned(), "1"));
    assert_eq!(answered(&harness.post("/api/chat", &filled(1000)).await), "a", "a small one needs no room");
    drop(permit);
    for _ in 0..3 {
        assert_eq!(answered(&harness.post("/api/chat", &filled(CHAT_BYTES - 1000)).await), "a");
    }
}

async fn tell(client: &mut Client, request: &str, chat: &str) {
    let frame = format!(r#"{{"type":"send","requestId":"{request}",{}"#, &chat[1..]);
    client.send(OpCode::Text, frame.as_bytes()).await;
}

async fn heard(client: &mut Client) -> String {
    let mut chunks = Vec::new();
    loop {
        let mut frame = client.frame().await;
        match frame["type"].as_str().unwrap() {
            "end" => return text(&chunks),
            "chunk" => chunks.push(frame["chunk"].take()),
            _ => panic!("{frame}"),
        }
    }
}

#[actix_web::test]
async fn the_same_holds_for_the_frames_of_a_websocket() {
    let harness = harness();
    let served = serve(&harness);
    let (mut client, _) = Client::connect_to(&served, "/api/chat").await;
    for (what, history) in histories() {
        tell(&mut client, what, &body("c", &[&history, &user(what, "say b")])).await;
        assert_eq!(heard(&mut client).await, "b", "{what}");
    }
    tell(&mut client, "r", &body("c", &[&user("u", &"x".repeat(MESSAGE_BYTES))])).await;
    let refused = client.frame().await;
    assert_eq!(refused["errorText"], "must be at most 2000 bytes", "{refused}");
    tell(&mut client, "r", &body("c", &[&user("u", &"x".repeat(CHAT_BYTES))])).await;
    assert!(matches!(client.hear().await, Heard::Close(4509)));
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn large_frames_wait_for_nobody_and_their_room_is_given_back() {
    let harness = harness();
    let served = serve(&harness);
    let history = user("u0", &"x".repeat(CHAT_BYTES / 2));
    let permit = harness.api.large_request_permit(CHATS_BYTES - CHAT_BYTES / 4).unwrap();
    let (mut refused, _) = Client::connect_to(&served, "/api/chat").await;
    tell(&mut refused, "r", &body("c", &[&history, &user("u1", "say a")])).await;
    assert!(matches!(refused.hear().await, Heard::Close(4411)));
    drop(permit);
    let (mut client, _) = Client::connect_to(&served, "/api/chat").await;
    for request in ["r1", "r2", "r3", "r4", "r5", "r6"] {
        tell(&mut client, request, &body("c", &[&history, &user(request, "say a")])).await;
        assert_eq!(heard(&mut client).await, "a");
    }
    let all = async {
        while harness.api.large_request_permit(CHATS_BYTES).is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), all).await.expect("all of it is free again");
    served.handle.stop(false).await;
}

/// A frame that is not the last of its message.
fn begun(code: OpCode, payload: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    Parser::write_message(&mut out, payload, code, false, true);
    out
}

#[actix_web::test]
async fn a_message_in_pieces_has_the_same_bounds() {
    let harness = harness();
    let served = serve(&harness);
    let (mut client, _) = Client::connect_to(&served, "/api/chat").await;
    let chat = body("c", &[&user("u0", &"x".repeat(CHAT_BYTES / 2)), &user("u1", "say a")]);
    let frame = format!(r#"{{"type":"send","requestId":"r",{}"#, &chat[1..]);
    let (first, rest) = frame.as_bytes().split_at(CHAT_BYTES / 4);
    client.send_bytes(&begun(OpCode::Text, first)).await;
    client.send(OpCode::Ping, b"x").await;
    assert!(matches!(client.hear().await, Heard::Pong(_)));
    client.send(OpCode::Continue, rest).await;
    assert_eq!(heard(&mut client).await, "a");
    client.send_bytes(&begun(OpCode::Text, &vec![b'x'; CHAT_BYTES / 2])).await;
    client.send_bytes(&begun(OpCode::Continue, &vec![b'x'; CHAT_BYTES / 2 + 1])).await;
    assert!(matches!(client.hear().await, Heard::Close(4509)));
    served.handle.stop(false).await;
}
