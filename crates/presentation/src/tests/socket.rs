//! WebSocket, over a real server and a real socket.

use std::time::Duration;

use actix_http::ws::OpCode;
use serde_json::{Value, json};
use tokenrail_application::Deletion;

use super::client::{Client, Heard, serve, serve_ended};
use super::harness::Harness;

fn kinds(frames: &[Value]) -> Vec<String> {
    frames
        .iter()
        .map(|frame| format!("{} {}", frame["type"].as_str().unwrap(), frame["payload"]["sequence"]))
        .collect()
}

const WHOLE_TURN: [&str; 8] = [
    "agent:message 1",
    "agent:status 1",
    "agent:message 2",
    "agent:message 3",
    "agent:message 4",
    "agent:message 5",
    "agent:status 5",
    "agent:complete 5",
];

#[actix_web::test]
async fn a_subscriber_gets_history_and_then_what_comes() {
    let harness = Harness::new();
    let served = serve(&harness);
    let id = harness.launch("say a b").await;
    let (mut client, head) = Client::connect(&served, "").await;
    assert!(head.contains("sec-websocket-protocol: tokenrail.v1\r\n"), "{head}");
    assert!(!head.contains("permessage-deflate"), "{head}");
    assert!(head.contains("x-request-id: "), "{head}");

    client.say("subscribe", json!({"agentId": id, "since": 0})).await;
    let subscribed = client.frame().await;
    assert_eq!((&subscribed["type"], &subscribed["payload"]["agentId"]), (&json!("subscribed"), &json!(id)));
    let first = client.frames_to_the_end().await;
    assert_eq!(kinds(&first), WHOLE_TURN);

    harness.post(&format!("/api/agents/{id}/messages"), r#"{"content":"say c"}"#).await;
    let second = client.frames_to_the_end().await;
    assert_eq!(second[0]["payload"]["message"]["content"], "say c", "later turns are seen");
    assert_eq!(second.last().unwrap()["payload"]["sequence"], 9);

    client.say("subscribe", json!({"agentId": id, "since": 3})).await;
    assert_eq!(client.frame().await["payload"]["head"], 9);
    let again = client.frames_to_the_end().await;
    assert_eq!(again, first[4..], "the same frames again, from the new cursor");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn one_connection_follows_many_agents_until_it_unsubscribes() {
    let harness = Harness::with(|config, _| config.subscriptions_per_connection = 2);
    let served = serve(&harness);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(harness.launch("say a").await);
    }
    for id in &ids {
        harness.ended(id).await;
    }
    let (mut client, _) = Client::connect(&served, "").await;
    for id in &ids[..2] {
        client.say("subscribe", json!({"agentId": id})).await;
        let subscribed = client.frame().await["payload"].clone();
        assert_eq!(subscribed, json!({"agentId": id, "head": 4, "status": "completed"}));
    }
    client.say("subscribe", json!({"agentId": ids[2]})).await;
    let refused = client.frame().await["payload"].clone();
    assert_eq!((&refused["code"], &refused["agentId"]), (&json!("capacity_exhausted"), &json!(ids[2])));
    client.say("unsubscribe", json!({"agentId": ids[0]})).await;
    assert_eq!(client.frame().await["type"], "unsubscribed");
    client.say("subscribe", json!({"agentId": ids[2]})).await;
    assert_eq!(client.frame().await["type"], "subscribed");
    for id in [&ids[0], &ids[2]] {
        harness.post(&format!("/api/agents/{id}/messages"), r#"{"content":"say b"}"#).await;
        harness.ended(id).await;
    }
    let frames = client.frames_to_the_end().await;
    assert!(frames.iter().all(|frame| frame["payload"]["agentId"] == ids[2]), "{frames:?}");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_mistake_is_told_and_the_connection_stays_open() {
    let (_harness, served, id) = serve_ended("say a").await;
    let (mut client, _) = Client::connect(&served, "").await;
    let subscribe = |payload: Value| json!({"type": "subscribe", "payload": payload}).to_string();
    let unknown = "0195bd2f-0a00-7000-8000-000000000000";
    let cases = [
        ("{not json".to_owned(), "malformed_json", None),
        ("[]".to_owned(), "validation_failed", None),
        ("7".to_owned(), "validation_failed", None),
        (r#"{"type":"dance"}"#.to_owned(), "validation_failed", None),
        (r#"{"payload":{}}"#.to_owned(), "validation_failed", None),
        (subscribe(json!([])), "validation_failed", None),
        (subscribe(json!({})), "validation_failed", None),
        (subscribe(json!({"agentId": "x"})), "not_found", None),
        (subscribe(json!({"agentId": unknown})), "not_found", Some(unknown)),
        (subscribe(json!({"agentId": id, "since": "3"})), "cursor_malformed", Some(&id[..])),
        (subscribe(json!({"agentId": id, "since": 5})), "cursor_ahead", Some(&id[..])),
        (subscribe(json!({"agentId": id, "raw": 1})), "validation_failed", Some(&id[..])),
        (subscribe(json!({"agentId": id, "dialect": "x"})), "dialect_unknown", Some(&id[..])),
    ];
    for (said, code, agent) in cases {
        client.send(OpCode::Text, said.as_bytes()).await;
        let frame = client.frame().await;
        assert_eq!(frame["type"], "error", "{said}");
        assert_eq!(frame["payload"]["code"], code, "{said}");
        assert_eq!(frame["payload"].get("agentId").and_then(Value::as_str), agent, "{said}");
        let message = frame["payload"]["message"].as_str().unwrap();
        assert!(message.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/'), "{message:?} of {said}");
    }
    client.say("ping", json!({})).await;
    assert_eq!(client.frame().await["type"], "pong");
    client.send(OpCode::Ping, b"x").await;
    assert!(matches!(client.hear().await, Heard::Pong(payload) if payload == "x"));
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn frames_can_be_had_in_batches() {
    let (_harness, served, id) = serve_ended("say a b").await;
    let (mut client, _) = Client::connect(&served, "?batch=5").await;
    client.say("subscribe", json!({"agentId": id, "since": 0})).await;
    let mut frames = Vec::new();
    while frames.len() < 1 + WHOLE_TURN.len() {
        let batch = client.frame().await;
        assert_eq!(batch["type"], "batch");
        frames.extend(batch["messages"].as_array().unwrap().iter().cloned());
    }
    assert_eq!(kinds(&frames[1..]), WHOLE_TURN);
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn news_of_all_agents_go_to_every_connection() {
    let harness = Harness::new();
    let served = serve(&harness);
    let (mut client, _) = Client::connect(&served, "").await;
    // The answer shows that the server is listening before the lifecycle events come.
    client.say("ping", json!({})).await;
    client.frame().await;
    let id = harness.launch_to_end("say a").await;
    harness.call(actix_web::test::TestRequest::delete().uri(&format!("/api/agents/{id}"))).await;
    let mut news = Vec::new();
    while news.last().is_none_or(|(kind, _)| kind != "agent:deleted") {
        let Heard::Frame(frame) = client.hear().await else { panic!() };
        assert_eq!(frame["payload"]["timestamp"], "2026-11-21T22:10:00.000Z");
        let status = &frame["payload"]["status"];
        news.push((frame["type"].as_str().unwrap().to_owned(), status.as_str().unwrap_or("").to_owned()));
    }
    let expected = [
        ("agent:created", ""),
        ("agent:updated", "running"),
        ("agent:updated", "completed"),
        ("agent:deleted", ""),
    ];
    assert_eq!(news, expected.map(|(kind, status)| (kind.to_owned(), status.to_owned())));
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn of_a_deleted_agent_that_is_followed_the_last_word_is_that_it_was_deleted() {
    let harness = Harness::new();
    let served = serve(&harness);
    let (mut client, _) = Client::connect(&served, "").await;
    for _ in 0..20 {
        let id = harness.launch("hang").await;
        client.say("subscribe", json!({"agentId": id, "since": 0})).await;
        while client.frame().await["type"] != "agent:status" {}
        harness.service.delete(id.parse().unwrap(), Deletion::Purge).await.unwrap();
        let mut heard = Vec::new();
        while heard.last().is_none_or(|kind: &String| kind != "agent:deleted") {
            let Heard::Frame(frame) = client.hear().await else { panic!() };
            heard.push(frame["type"].as_str().unwrap().to_owned());
        }
        assert_eq!(heard[heard.len() - 2], "unsubscribed", "{heard:?}");
    }
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn an_agent_that_was_deleted_before_is_followed_to_its_end() {
    let harness = Harness::new();
    let served = serve(&harness);
    let id = harness.launch_to_end("say a").await;
    harness.service.delete(id.parse().unwrap(), Deletion::KeepHistory).await.unwrap();
    let (mut client, _) = Client::connect(&served, "").await;
    for dialect in ["agent", "message", "stream"] {
        client.say("subscribe", json!({"agentId": id, "since": 1, "dialect": dialect})).await;
        let mut heard = Vec::new();
        while heard.last().is_none_or(|kind: &String| kind != "agent:deleted") {
            let Heard::Frame(frame) = client.hear().await else { panic!() };
            heard.push(frame["type"].as_str().unwrap().to_owned());
        }
        assert_eq!((&*heard[0], &*heard[heard.len() - 2]), ("subscribed", "unsubscribed"), "{heard:?}");
        assert!(3 < heard.len(), "{heard:?}");
    }
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_quiet_connection_shows_signs_of_life_and_needs_them() {
    let harness = Harness::with(|config, _| {
        config.heartbeat = Duration::from_millis(20);
        config.ping = Duration::from_millis(50);
        config.pong_timeout = Duration::from_millis(100);
    });
    let served = serve(&harness);
    let id = harness.launch_to_end("say a").await;
    let (mut client, _) = Client::connect(&served, "").await;
    client.say("subscribe", json!({"agentId": id})).await;
    assert_eq!(client.frame().await["type"], "subscribed");
    let beat = client.frame().await;
    assert_eq!((&beat["type"], &beat["payload"]), (&json!("heartbeat"), &json!({"heads": {id: 4}})));
    let mut pinged = false;
    let code = loop {
        match client.hear().await {
            Heard::Ping => pinged = true,
            Heard::Close(code) => break code,
            Heard::Frame(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((pinged, code), (true, 4410), "this client never answers");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_connection_ends_with_a_code_that_says_what_to_do() {
    let harness = Harness::new();
    let served = serve(&harness);
    let cases: [(OpCode, Vec<u8>, u16); 4] = [
        (OpCode::Close, vec![3, 232], 1000),
        (OpCode::Binary, vec![1], 1003),
        (OpCode::Text, vec![0xff], 1007),
        (OpCode::Text, vec![b' '; (64 << 10) + 1], 4509),
    ];
    for (kind, payload, expected) in cases {
        let (mut client, _) = Client::connect(&served, "").await;
        client.send(kind, &payload).await;
        assert!(matches!(client.hear().await, Heard::Close(code) if code == expected), "{expected}");
        assert!(matches!(client.hear().await, Heard::End));
    }
    let (mut client, _) = Client::connect(&served, "").await;
    harness.service.shutdown(tokenrail_application::AtStop::Keep, Duration::from_secs(5)).await;
    assert!(matches!(client.hear().await, Heard::Close(4401)));
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_client_that_missed_news_is_told_to_load_the_list() {
    let harness = Harness::with(|_, limits| limits.admission.launches_per_minute = u32::MAX);
    let served = serve(&harness);
    let (mut client, _) = Client::connect(&served, "").await;
    client.say("ping", json!({})).await;
    client.frame().await;
    let id = harness.launch("hang").await;
    // The client reads nothing while more lifecycle events come than the server keeps and the socket buffers.
    let mut told = false;
    for _ in 0..8_000 {
        harness.service.delete(id.parse().unwrap(), Deletion::KeepHistory).await.unwrap();
    }
    while !told {
        match client.hear().await {
            Heard::Frame(frame) => told = frame["payload"]["code"] == "news_lagged",
            other => panic!("{other:?}"),
        }
    }
    served.handle.stop(false).await;
}

/// The head of a frame that announces `length` bytes.
fn announcing(first: u8, length: u64) -> Vec<u8> {
    [&[first, 0xff][..], &length.to_be_bytes(), &[0; 4]].concat()
}

#[actix_web::test]
async fn what_is_too_large_is_refused_by_the_head_that_announces_it() {
    let harness = Harness::for_chats();
    let served = serve(&harness);
    let fragment = |length: usize| {
        let mut out = bytes::BytesMut::new();
        actix_http::ws::Parser::write_message(&mut out, vec![b'x'; length], OpCode::Text, false, true);
        out.to_vec()
    };
    let cases = [
        ("/ws", announcing(0x81, 1 << 40), 4509),
        ("/ws", announcing(0x82, (64 << 10) + 1), 4509),
        ("/ws", [fragment(64 << 10), announcing(0x00, 1)].concat(), 4509),
        ("/ws", announcing(0x89, 1 << 40), 1002),
        ("/ws", [fragment(1), announcing(0x8a, 126)].concat(), 1002),
        ("/api/chat", announcing(0x81, 1 << 40), 4509),
        ("/api/chat", [fragment(1), announcing(0x80, 32 << 20)].concat(), 4509),
        ("/api/chat", announcing(0x88, 1 << 40), 1002),
    ];
    for (path, bytes, expected) in cases {
        let (mut client, _) = Client::connect_to(&served, path).await;
        client.send_bytes(&bytes).await;
        // No byte of the payload is sent, and the client stays connected.
        let heard = client.hear().await;
        assert!(matches!(heard, Heard::Close(code) if code == expected), "{path} {expected}: {heard:?}");
    }
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_message_that_does_not_come_to_its_end_is_not_waited_for() {
    let harness = Harness::build(
        |config, _| config.body_timeout = Duration::from_millis(50),
        Some("script".to_owned()),
    );
    let served = serve(&harness);
    for path in ["/ws", "/api/chat"] {
        for begun in [&b"\x81"[..], b"\x81\xfe\x01\0\0\0\0\0x", b"\x01\x81\0\0\0\0x\x89\x80\0\0\0\0"] {
            let (mut client, _) = Client::connect_to(&served, path).await;
            client.send_bytes(begun).await;
            let heard = loop {
                match client.hear().await {
                    Heard::Pong(_) => {}
                    heard => break heard,
                }
            };
            assert!(matches!(heard, Heard::Close(4408)), "{path} {begun:x?}: {heard:?}");
        }
    }
    served.handle.stop(false).await;
}
