//! Socket.IO by long polling: sessions over many requests, and the change to a WebSocket.

use std::time::Duration;

use actix_http::ws::OpCode;
use actix_web::http::Method;
use actix_web::test::TestRequest;
use serde_json::{Value, json};

use super::client::{Client, Served, serve};
use super::harness::{Answer, HOST, Harness, TOKEN};
use crate::PresentationConfig;

/// The right token.
const TOKEN_HEADER: &str = "Bearer 0123456789abcdef";
const PATH: &str = "/socket.io/?EIO=4&transport=polling";

/// A client that polls.
pub(super) struct Poller<'a> {
    harness: &'a Harness,
    sid: String,
}

async fn ask(harness: &Harness, method: Method, uri: &str, body: &str) -> Answer {
    let request = TestRequest::with_uri(uri).method(method).insert_header(("host", HOST));
    harness.call_raw(request.set_payload(body.to_owned())).await
}

impl<'a> Poller<'a> {
    async fn open(harness: &'a Harness) -> Self {
        let answer = ask(harness, Method::GET, PATH, "").await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("content-type")),
            (200, "text/plain; charset=UTF-8")
        );
        let open: Value = serde_json::from_str(answer.text.strip_prefix('0').unwrap()).unwrap();
        assert_eq!(open["upgrades"], json!(["websocket"]));
        Self { harness, sid: open["sid"].as_str().unwrap().to_owned() }
    }

    pub(super) async fn connect(harness: &'a Harness) -> Self {
        let (poller, packets) = Self::connect_with(harness, json!({"token": TOKEN})).await;
        assert_eq!(packets, [""; 0]);
        poller
    }

    /// Also returns the packets that come with the answer.
    pub(super) async fn connect_with(harness: &'a Harness, auth: Value) -> (Self, Vec<String>) {
        let poller = Self::open(harness).await;
        poller.send(&format!("40{auth}")).await;
        let mut packets = poller.poll().await;
        let connected = packets.remove(0);
        assert!(connected.starts_with("40{\"sid\":"), "{connected}");
        (poller, packets)
    }

    fn uri(&self) -> String {
        format!("{PATH}&sid={}", self.sid)
    }

    pub(super) async fn send(&self, body: &str) {
        let answer = ask(self.harness, Method::POST, &self.uri(), body).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, "ok"));
    }

    pub(super) async fn poll(&self) -> Vec<String> {
        let answer = ask(self.harness, Method::GET, &self.uri(), "").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.text.split('\x1e').map(str::to_owned).collect()
    }

    /// The error of the next poll.
    async fn error(&self) -> Value {
        let answer = ask(self.harness, Method::GET, &self.uri(), "").await;
        assert_eq!(answer.status, 400, "{answer:?}");
        answer.json()
    }
}

/// Whether a packet is the last one of a turn.
pub(super) fn is_end(packet: &str) -> bool {
    packet.contains("\"eventType\":\"result\"")
}

fn unknown() -> Value {
    json!({"code": 1, "message": "Session ID unknown"})
}

#[actix_web::test]
async fn a_client_that_polls_gets_everything_in_portions() {
    let harness = Harness::new();
    let words: Vec<String> = (0..40).map(|word| word.to_string()).collect();
    let id = harness.launch_to_end(&format!("say {}", words.join(" "))).await;
    let poller = Poller::connect(&harness).await;
    poller.send(&format!("420[\"subscribe\",{{\"agentId\":\"{id}\"}}]\x1e3")).await;
    assert!(poller.poll().await[0].starts_with("430[{\"ok\":true"));
    let mut events = Vec::new();
    while events.last().is_none_or(|event: &String| !is_end(event)) {
        let packets = poller.poll().await;
        assert!(packets.len() <= 16, "some clients accept no more");
        events.extend(packets);
    }
    let messages = events.iter().filter(|event| event.starts_with("42[\"agent:message\""));
    let numbers: Vec<u64> = messages
        .map(|event| serde_json::from_str::<Value>(&event[2..]).unwrap()[1]["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=43).collect::<Vec<_>>());

    let (waiting, ()) = tokio::join!(poller.poll(), async {
        harness.post(&format!("/api/agents/{id}/messages"), r#"{"content":"say b"}"#).await;
    });
    assert!(waiting[0].contains("agent:"), "a poll waits for what comes: {waiting:?}");
}

#[actix_web::test]
async fn a_client_that_leaves_is_let_go_at_once_whatever_is_there_for_it() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a b c d e f g h i j k l m n o p q r s t").await;
    for goodbye in ["1", "41", "3\x1e41\x1e1"] {
        for subscribes in [false, true] {
            let poller = Poller::connect(&harness).await;
            if subscribes {
                poller.send(&format!("42[\"subscribe\",{{\"agentId\":\"{id}\"}}]")).await;
                assert!(!poller.poll().await.iter().any(|packet| is_end(packet)), "there is more");
            }
            poller.send(goodbye).await;
            let freed = async {
                while harness.api.open_streams() != 0 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(5), freed).await.expect("its place is free");
            assert_eq!(poller.error().await, unknown());
        }
        let poller = Poller::connect(&harness).await;
        let (waiting, ()) = tokio::join!(poller.poll(), poller.send(goodbye));
        assert_eq!(waiting, ["1"], "a request that waits gets the end");
        assert_eq!(poller.error().await, unknown());
    }
}

#[actix_web::test]
async fn errors_have_the_shape_of_engine_io() {
    let harness = Harness::new();
    let cases = [
        (Method::GET, "/socket.io/", 0, "Transport unknown"),
        (Method::GET, "/socket.io/?EIO=4&transport=x", 0, "Transport unknown"),
        (Method::GET, "/socket.io/?EIO=4&transport=polling&sid=x", 1, "Session ID unknown"),
        (Method::POST, "/socket.io/?EIO=4&transport=polling&sid=x", 1, "Session ID unknown"),
        (Method::POST, PATH, 2, "Bad handshake method"),
        (Method::GET, "/socket.io/?EIO=3&transport=polling", 5, "Unsupported protocol version"),
        (Method::GET, "/socket.io/?transport=polling", 5, "Unsupported protocol version"),
        (Method::GET, "/socket.io/?EIO=4&transport=websocket", 3, "Bad request"),
    ];
    for (method, uri, code, message) in cases {
        let answer = ask(&harness, method.clone(), uri, "").await;
        assert_eq!(answer.status, 400, "{method} {uri}");
        let error = answer.json();
        assert_eq!(error["code"], code, "{method} {uri}");
        assert!(error["message"].as_str().unwrap().starts_with(message), "{method} {uri}: {error}");
    }
    let answer = ask(&harness, Method::PUT, PATH, "").await;
    assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, "GET, POST"));
    assert_eq!(answer.json()["code"], 3);
    let full = Harness::with(|config: &mut PresentationConfig, _| config.connections = 0);
    let answer = full.call(TestRequest::get().uri(PATH)).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (503, &json!(3)));
    assert!(!answer.header("retry-after").is_empty());
}

#[actix_web::test]
async fn what_the_guard_refuses_has_the_shape_of_engine_io_too() {
    let harness = Harness::with(|config, _| config.failed_logins_per_minute = 1);
    let cases = [
        (PATH, "origin", "http://evil.example", 403, 4, "Forbidden: "),
        (PATH, "host", "evil.example", 421, 4, "Forbidden: "),
        (PATH, "content-encoding", "gzip", 415, 3, "Bad request: "),
        ("/socket.io/socket.io.js", "authorization", TOKEN_HEADER, 404, 3, "Bad request: "),
        // A wrong token is never as good as none.
        (PATH, "authorization", "Bearer wrong", 401, 4, "Forbidden: "),
        (PATH, "authorization", "Bearer wrong", 429, 3, "Bad request: "),
    ];
    for (path, name, value, status, code, begin) in cases {
        let request = TestRequest::get().uri(path).insert_header(("host", HOST));
        let answer = harness.call_raw(request.insert_header((name, value))).await;
        let what = (answer.status.as_u16(), answer.header("content-type"));
        assert_eq!(what, (status, "application/json"), "{name}");
        let error = answer.json();
        assert_eq!((&error["code"], error.as_object().unwrap().len()), (&json!(code), 2), "{error}");
        assert!(error["message"].as_str().unwrap().starts_with(begin), "{error}");
    }
}

#[actix_web::test]
async fn a_client_that_breaks_the_protocol_loses_its_session() {
    let harness = Harness::new();
    for body in ["", "x", "40\x1e", "42[\"a\"]\x1e0{}"] {
        let poller = Poller::connect(&harness).await;
        let answer = ask(&harness, Method::POST, &poller.uri(), body).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (400, &json!(3)), "{body:?}");
        assert_eq!(poller.error().await, unknown(), "{body:?}");
    }
    let poller = Poller::connect(&harness).await;
    let uri = poller.uri();
    let (first, second) =
        tokio::join!(ask(&harness, Method::GET, &uri, ""), ask(&harness, Method::GET, &uri, ""));
    assert_eq!((first.status.as_u16(), first.json()), (400, unknown()), "the session has ended");
    assert_eq!((second.status.as_u16(), &second.json()["code"]), (400, &json!(3)));

    let poller = Poller::connect(&harness).await;
    poller.send("bAQID").await;
    let packets = poller.poll().await;
    assert!(packets[0].contains("binary data is not supported; send JSON"), "{packets:?}");
    assert_eq!(poller.poll().await, ["1"]);
    let poller = Poller::connect(&harness).await;
    let binary = TestRequest::post().uri(&poller.uri()).set_payload(vec![4, 1, 2, 3]);
    let answer = harness.call(binary.insert_header(("content-type", "application/octet-stream"))).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (400, &json!(3)), "{answer:?}");
    assert_eq!(poller.error().await, unknown(), "binary data ends the session");
    let large = "x".repeat((64 << 10) + 1);
    let poller = Poller::connect(&harness).await;
    assert_eq!(ask(&harness, Method::POST, &poller.uri(), &large).await.status, 413);
}

#[actix_web::test]
async fn a_client_that_stops_polling_is_let_go_although_more_is_there_for_it() {
    let harness = Harness::with(|config, _| {
        config.ping = Duration::from_millis(500);
        config.socket_io_pong_timeout = Duration::from_millis(500);
    });
    let words: Vec<String> = (0..200).map(|word| word.to_string()).collect();
    let id = harness.launch_to_end(&format!("say {}", words.join(" "))).await;
    let poller = Poller::connect(&harness).await;
    poller.send(&format!("42[\"subscribe\",{{\"agentId\":\"{id}\"}}]")).await;
    assert!(!poller.poll().await.iter().any(|packet| is_end(packet)), "there is more");
    while harness.api.open_streams() == 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(poller.error().await, unknown());
}

#[actix_web::test]
async fn the_end_of_the_server_is_told_to_the_client_that_waits() {
    let harness = Harness::new();
    let poller = Poller::connect(&harness).await;
    let (packets, ()) = tokio::join!(poller.poll(), async {
        tokio::task::yield_now().await;
        harness.service.closing().cancel();
    });
    assert_eq!(packets, ["1"]);
}

#[actix_web::test]
async fn a_websocket_takes_over_in_the_middle_and_nothing_is_lost_or_twice() {
    let harness = Harness::new();
    let served = serve(&harness);
    let id = harness.launch_to_end("say a b c d e f g h i j k l m n o p q r s t").await;
    let poller = Poller::connect(&harness).await;
    poller.send(&format!("42[\"subscribe\",{{\"agentId\":\"{id}\"}}]")).await;
    let mut packets = poller.poll().await;
    packets.extend(poller.poll().await);

    let socket = format!("/socket.io/?EIO=4&transport=websocket&sid={}", poller.sid);
    let (mut client, _) = Client::connect_to(&served, &socket).await;
    client.send(OpCode::Text, b"2probe").await;
    assert_eq!(text(&mut client).await, "3probe");
    assert_eq!(poller.poll().await, ["6"], "polls end, and take nothing");
    let (mut other, _) = Client::connect_to(&served, &socket).await;
    other.send(OpCode::Text, b"2probe").await;
    assert!(matches!(other.unread().await, Some((OpCode::Close, _))), "one socket is enough");
    client.send(OpCode::Text, b"5").await;
    while packets.last().is_none_or(|packet| !is_end(packet)) {
        packets.push(text(&mut client).await);
    }
    let numbers: Vec<u64> = packets
        .iter()
        .filter(|packet| packet.starts_with("42[\"agent:message\""))
        .map(|packet| serde_json::from_str::<Value>(&packet[2..]).unwrap()[1]["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=23).collect::<Vec<_>>());
    assert_eq!(poller.error().await["code"], 3, "it is no longer polled");
    client.send(OpCode::Text, format!("420[\"unsubscribe\",{{\"agentId\":\"{id}\"}}]").as_bytes()).await;
    assert!(text(&mut client).await.starts_with("430[{\"ok\":true"));
    client.send(OpCode::Binary, b"x").await;
    assert!(text(&mut client).await.contains("binary data is not supported"));
    let Some((OpCode::Close, code)) = client.unread().await else { panic!() };
    assert_eq!(code[..2], 1003_u16.to_be_bytes());
    served.handle.stop(false).await;
}

fn often(config: &mut PresentationConfig) {
    config.ping = Duration::from_millis(100);
    config.socket_io_pong_timeout = Duration::from_millis(500);
}

#[actix_web::test]
async fn a_client_that_polls_is_pinged_and_kept_as_long_as_it_answers() {
    let harness = Harness::with(|config, _| often(config));
    let poller = Poller::connect(&harness).await;
    for _ in 0..10 {
        assert_eq!(poller.poll().await, ["2"]);
        poller.send("3").await;
    }
    let mut unanswered = 0;
    let end = loop {
        match poller.poll().await {
            ping if ping == ["2"] => unanswered += 1,
            other => break other,
        }
    };
    assert_eq!(end, ["1"]);
    assert!(1 < unanswered, "pings go on until the first one is too late: {unanswered}");
    assert_eq!(poller.error().await, unknown());
    assert_eq!(harness.api.open_streams(), 0);
}

#[actix_web::test]
async fn a_client_is_pinged_after_an_upgrade_and_kept_as_long_as_it_answers() {
    let harness = Harness::with(|config, _| often(config));
    let served = serve(&harness);
    let poller = Poller::connect(&harness).await;
    let mut client = upgraded(&served, &poller).await;
    for _ in 0..10 {
        assert_eq!(text(&mut client).await, "2");
        client.send(OpCode::Text, b"3").await;
    }
    let end = loop {
        match client.unread().await {
            Some((OpCode::Text, ping)) if ping == "2" => {}
            other => break other,
        }
    };
    let Some((OpCode::Close, code)) = end else { panic!("{end:?}") };
    assert_eq!(code[..2], 4410_u16.to_be_bytes());
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_client_whose_websocket_fails_goes_on_polling() {
    let harness = Harness::new();
    let served = serve(&harness);
    let id = harness.launch_to_end("say a").await;
    let poller = Poller::connect(&harness).await;
    let socket = format!("/socket.io/?EIO=4&transport=websocket&sid={}", poller.sid);
    let (mut client, _) = Client::connect_to(&served, &socket).await;
    client.send(OpCode::Text, b"2probe").await;
    assert_eq!(text(&mut client).await, "3probe");
    drop(client);
    poller.send(&format!("420[\"subscribe\",{{\"agentId\":\"{id}\"}}]")).await;
    let packets = loop {
        let packets = poller.poll().await;
        if packets != ["6"] {
            break packets;
        }
    };
    assert!(packets[0].starts_with("430[{\"ok\":true"), "{packets:?}");
    served.handle.stop(false).await;
}

/// A WebSocket that has taken over.
pub(super) async fn upgraded(served: &Served, poller: &Poller<'_>) -> Client {
    let socket = format!("/socket.io/?EIO=4&transport=websocket&sid={}", poller.sid);
    let (mut client, _) = Client::connect_to(served, &socket).await;
    client.send(OpCode::Text, b"2probe").await;
    assert_eq!(text(&mut client).await, "3probe");
    client.send(OpCode::Text, b"5").await;
    client
}

pub(super) async fn text(client: &mut Client) -> String {
    match client.unread().await {
        Some((OpCode::Text, text)) => String::from_utf8(text.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}
