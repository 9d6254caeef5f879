//! Socket.IO over a WebSocket, with a real server and a real socket.

use std::time::Duration;

use actix_http::ws::OpCode;
use actix_web::test::TestRequest;
use serde_json::{Value, json};

use super::client::{Client, Served, serve, serve_ended};
use super::harness::{HOST, Harness, TOKEN};

const PATH: &str = "/socket.io/?EIO=4&transport=websocket";

/// The packets of a turn with one word, each with its number, if it has one.
const TURN: [&str; 7] = [
    "agent:status",
    "agent:message 1",
    "agent:message 2",
    "agent:message 3",
    "agent:status",
    "agent:complete",
    "agent:message 4",
];

/// A Socket.IO client.
pub(super) struct Io(Client);

impl Io {
    /// Opens a connection, without connecting to the namespace. Returns the first packet too.
    async fn open(served: &Served) -> (Self, Value) {
        let (client, _) = Client::connect_to(served, PATH).await;
        let mut io = Self(client);
        let open = io.packet().await;
        (io, json_of(&open, "0"))
    }

    /// Connects to the namespace.
    pub(super) async fn connect(served: &Served, auth: Value) -> Self {
        let (mut io, _) = Self::open(served).await;
        io.send(&format!("40{auth}")).await;
        let connected = io.packet().await;
        assert!(connected.starts_with("40{\"sid\":\""), "{connected}");
        io
    }

    async fn send(&mut self, packet: &str) {
        self.0.send(OpCode::Text, packet.as_bytes()).await;
    }

    /// The next packet. `close CODE` if the server closes the connection.
    pub(super) async fn packet(&mut self) -> String {
        match self.0.unread().await {
            Some((OpCode::Text, packet)) => String::from_utf8(packet.to_vec()).unwrap(),
            Some((OpCode::Close, code)) => format!("close {}", u16::from_be_bytes([code[0], code[1]])),
            other => panic!("{other:?}"),
        }
    }

    /// The next event that is no lifecycle event.
    async fn event(&mut self) -> (String, Value) {
        loop {
            let packet = self.packet().await;
            let list = json_of(&packet, "42");
            let name = list[0].as_str().unwrap().to_owned();
            if !["agent:created", "agent:updated", "agent:deleted"].contains(&name.as_str()) {
                return (name, list[1].clone());
            }
        }
    }

    async fn events_to_the_end(&mut self) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        while events.last().is_none_or(|(_, value): &(String, Value)| !is_end(value)) {
            events.push(self.event().await);
        }
        events
    }
}

fn json_of(packet: &str, tag: &str) -> Value {
    let json = packet.strip_prefix(tag).unwrap_or_else(|| panic!("{packet}"));
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {packet}"))
}

fn numbers(events: &[(String, Value)]) -> Vec<String> {
    let number = |value: &Value| value.get("sequence").map(|number| format!(" {number}")).unwrap_or_default();
    events.iter().map(|(name, value)| format!("{name}{}", number(value))).collect()
}

/// Whether a packet is the last one of a turn.
fn is_end(value: &Value) -> bool {
    value["message"]["metadata"]["eventType"] == "result"
}

fn token() -> Value {
    json!({"token": TOKEN})
}

#[actix_web::test]
async fn a_client_shows_its_token_when_it_connects() {
    let harness = Harness::new();
    let served = serve(&harness);
    let (mut io, open) = Io::open(&served).await;
    assert_eq!((&open["pingInterval"], &open["pingTimeout"]), (&json!(25_000), &json!(20_000)));
    assert_eq!((&open["maxPayload"], &open["upgrades"]), (&json!(65_536), &json!([])));
    assert_eq!(open["sid"].as_str().unwrap().len(), 32);
    for (auth, code) in [
        ("", "unauthenticated"),
        (r#"{"token":"wrong"}"#, "unauthenticated"),
        (r#"{"token":7}"#, "validation_failed"),
        (r#"{"token":"0123456789abcdef","since":7}"#, "validation_failed"),
        (r#"{"token":"0123456789abcdef","since":{"x":-1}}"#, "validation_failed"),
    ] {
        io.send(&format!("40{auth}")).await;
        let refused = json_of(&io.packet().await, "44");
        assert_eq!(refused["data"]["code"], code, "{auth}");
        assert_eq!(refused["message"], refused["data"]["message"]);
    }
    io.send("40/admin,{}").await;
    assert_eq!(json_of(&io.packet().await, "44/admin,")["message"], "Invalid namespace");
    io.send(&format!("40{}", token())).await;
    let sid = json_of(&io.packet().await, "40")["sid"].clone();
    assert_ne!(sid, open["sid"], "others may know the id of the socket");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn nothing_is_told_before_that() {
    let (harness, served, id) = serve_ended("say a").await;
    let (mut io, _) = Io::open(&served).await;
    harness.launch_to_end("say b").await;
    io.send(&format!(r#"42["subscribe",{{"agentId":"{id}"}}]"#)).await;
    assert_eq!(io.packet().await, "close 1008");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn few_clients_without_a_token_have_a_place() {
    let harness = Harness::with(|config, _| config.unauthenticated_clients = 1);
    let served = serve(&harness);
    let (first, _) = Io::open(&served).await;
    let open = || TestRequest::get().uri("/socket.io/?EIO=4&transport=polling").insert_header(("host", HOST));
    assert_eq!(harness.call_raw(open()).await.status, 503);
    drop(first);
    while harness.call_raw(open()).await.status == 503 {
        tokio::task::yield_now().await;
    }
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_client_that_shows_no_token_in_time_is_let_go() {
    let harness = Harness::with(|config, _| config.handshake_timeout = Duration::from_millis(50));
    let served = serve(&harness);
    let (mut io, _) = Io::open(&served).await;
    assert_eq!(io.packet().await, "close 1008");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_subscriber_gets_everything_or_what_follows_its_number() {
    let (harness, served, id) = serve_ended("say a").await;
    let mut io = Io::connect(&served, token()).await;
    io.send(&format!(r#"42["subscribe",{{"agentId":"{id}"}}]"#)).await;
    let (name, subscribed) = io.event().await;
    assert_eq!((name.as_str(), &subscribed["head"]), ("subscribed", &json!(4)));
    let whole = io.events_to_the_end().await;
    assert_eq!(numbers(&whole), TURN);
    assert_eq!(whole[1].1["message"]["sequenceNumber"], 1);

    io.send(&format!(r#"420["subscribe",{{"agentId":"{id}","since":2}}]"#)).await;
    let ack = json_of(&io.packet().await, "430");
    assert_eq!(ack, json!([{"ok": true, "agentId": id, "head": 4, "status": "completed"}]));
    assert_eq!(io.events_to_the_end().await, whole[3..], "the same bytes, from the new number on");

    harness.post(&format!("/api/agents/{id}/messages"), r#"{"content":"say b"}"#).await;
    let next = io.events_to_the_end().await;
    assert_eq!(next.last().unwrap().1["sequence"], 8, "later turns are seen");

    io.send(&format!(r#"427["unsubscribe",{{"agentId":"{id}"}}]"#)).await;
    while !io.packet().await.starts_with("437[{\"ok\":true") {}
    harness.post(&format!("/api/agents/{id}/messages"), r#"{"content":"say c"}"#).await;
    harness.ended(&id).await;
    io.send(r#"428["dance"]"#).await;
    let ack = loop {
        let packet = io.packet().await;
        assert!(!packet.contains("agent:message"), "{packet}");
        if packet.starts_with("438") {
            break json_of(&packet, "438");
        }
    };
    assert_eq!((&ack[0]["ok"], &ack[0]["error"]["code"]), (&json!(false), &json!("validation_failed")));
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_client_that_comes_back_gets_the_rest_of_all_its_agents() {
    let (harness, served, first) = serve_ended("say a").await;
    let second = harness.launch_to_end("say b").await;
    let since = json!({"token": TOKEN, "since": {&first: 3, &second: 4, "x": 1}});
    let mut io = Io::connect(&served, since).await;
    assert_eq!(io.event().await.1["code"], "not_found", "of the name that is no id");
    let mut heads = Vec::new();
    for _ in 0..2 {
        let (name, subscribed) = io.event().await;
        assert_eq!(name, "subscribed");
        heads.push(subscribed["agentId"].as_str().unwrap().to_owned());
    }
    heads.sort_unstable();
    let mut ids = [first.clone(), second.clone()];
    ids.sort_unstable();
    assert_eq!(heads, ids);
    assert_eq!(numbers(&io.events_to_the_end().await), TURN[4..]);
    harness.post(&format!("/api/agents/{second}/messages"), r#"{"content":"say c"}"#).await;
    let (name, next) = io.event().await;
    assert_eq!((name.as_str(), &next["agentId"]), ("agent:status", &json!(second)));
    assert_eq!(io.event().await.1["sequence"], 5);
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_mistake_is_told_and_the_connection_stays_open() {
    let (_harness, served, id) = serve_ended("say a").await;
    let mut io = Io::connect(&served, token()).await;
    let unknown = "0195bd2f-0a00-7000-8000-000000000000";
    for (packet, code) in [
        (r#"42["subscribe"]"#.to_owned(), "validation_failed"),
        (r#"42["subscribe",7]"#.to_owned(), "validation_failed"),
        (r#"42["subscribe",{"agentId":"x"}]"#.to_owned(), "not_found"),
        (format!(r#"42["subscribe",{{"agentId":"{unknown}"}}]"#), "not_found"),
        (format!(r#"42["subscribe",{{"agentId":"{id}","since":"3"}}]"#), "cursor_malformed"),
        (format!(r#"42["subscribe",{{"agentId":"{id}","since":5}}]"#), "cursor_ahead"),
        (format!(r#"42["subscribe",{{"agentId":"{id}","dialect":"stream"}}]"#), "dialect_unknown"),
        (r#"42["unsubscribe",{}]"#.to_owned(), "validation_failed"),
        (r#"42["dance",{}]"#.to_owned(), "validation_failed"),
    ] {
        io.send(&packet).await;
        let (name, error) = io.event().await;
        assert_eq!((name.as_str(), &error["code"]), ("error", &json!(code)), "{packet}");
    }
    io.send(r#"42/admin,["subscribe"]"#).await;
    io.send("43[]").await;
    io.send("3").await;
    io.send(r#"420["unsubscribe",{"agentId":"0195bd2f-0a00-7000-8000-000000000000"}]"#).await;
    assert!(io.packet().await.starts_with("430[{\"ok\":true"));
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn what_is_no_packet_ends_the_connection() {
    let harness = Harness::new();
    let served = serve(&harness);
    for (packet, expected) in [
        ("", 1008),
        ("0{}", 1008),
        ("9", 1008),
        ("4", 1008),
        ("49", 1008),
        ("42{}", 1008),
        ("42[]", 1008),
        ("40", 1008),
        ("1", 1000),
        ("41", 1000),
    ] {
        let mut io = Io::connect(&served, token()).await;
        io.send(packet).await;
        assert_eq!(io.packet().await, format!("close {expected}"), "{packet:?}");
    }
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn binary_data_is_refused_in_words() {
    let harness = Harness::new();
    let served = serve(&harness);
    let announced = r#"451-["subscribe",{"_placeholder":true,"num":0}]"#.as_bytes();
    for (code, payload) in [(OpCode::Text, announced), (OpCode::Binary, b"x")] {
        let mut io = Io::connect(&served, token()).await;
        io.0.send(code, payload).await;
        let (name, error) = io.event().await;
        assert_eq!((name.as_str(), &error["code"]), ("error", &json!("unsupported_media_type")));
        assert_eq!(error["message"], "binary data is not supported; send JSON");
        assert_eq!(io.packet().await, "close 1003");
    }
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_client_that_does_not_answer_pings_is_let_go() {
    let harness = Harness::with(|config, _| {
        config.ping = Duration::from_millis(20);
        config.socket_io_pong_timeout = Duration::from_millis(100);
    });
    let served = serve(&harness);
    let mut io = Io::connect(&served, token()).await;
    for _ in 0..10 {
        assert_eq!(io.packet().await, "2");
        io.send("3").await;
    }
    let end = loop {
        match io.packet().await {
            ping if ping == "2" => {}
            other => break other,
        }
    };
    assert_eq!(end, "close 4410");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn news_of_all_agents_go_to_every_client() {
    let harness = Harness::new();
    let served = serve(&harness);
    let mut io = Io::connect(&served, token()).await;
    let id = harness.launch_to_end("say a").await;
    harness.call(actix_web::test::TestRequest::delete().uri(&format!("/api/agents/{id}"))).await;
    let mut news = Vec::new();
    while news.last().is_none_or(|(name, _): &(String, String)| name != "agent:deleted") {
        let list = json_of(&io.packet().await, "42");
        let status = list[1]["status"].as_str().unwrap_or_default();
        news.push((list[0].as_str().unwrap().to_owned(), status.to_owned()));
    }
    let expected = [
        ("agent:created", ""),
        ("agent:updated", "running"),
        ("agent:updated", "completed"),
        ("agent:deleted", ""),
    ];
    assert_eq!(news, expected.map(|(name, status)| (name.to_owned(), status.to_owned())));
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_client_whose_agent_was_deleted_meanwhile_gets_the_rest_and_learns_it() {
    let harness = Harness::new();
    let served = serve(&harness);
    let id = harness.launch_to_end("say a").await;
    harness.call(actix_web::test::TestRequest::delete().uri(&format!("/api/agents/{id}"))).await;
    let mut io = Io::connect(&served, json!({"token": TOKEN, "since": {&id: 1}})).await;
    let mut names = Vec::new();
    while names.last().is_none_or(|name| name != "agent:deleted") {
        let list = json_of(&io.packet().await, "42");
        assert_eq!(list[1]["agentId"], id);
        names.push(list[0].as_str().unwrap().to_owned());
    }
    assert_eq!(names[0], "subscribed");
    assert_eq!(names[names.len() - 3..], ["agent:message", "unsubscribed", "agent:deleted"], "{names:?}");
    served.handle.stop(false).await;
}

/// The clients' libraries repeat nothing on a connection that lives, so the room would stay empty.
#[actix_web::test]
async fn a_client_reconnects_if_its_history_cannot_be_read() {
    let harness = Harness::new();
    let served = serve(&harness);
    let id = harness.launch_to_end("say a").await;
    let auth = json!({"token": TOKEN, "since": {&id: 1}});
    harness.store.refuse_reads(1);
    let mut io = Io::connect(&served, auth.clone()).await;
    assert_eq!(io.event().await.0, "subscribed");
    let (name, error) = io.event().await;
    assert_eq!((&*name, &error["code"], &error["agentId"]), ("error", &json!("store_busy"), &json!(id)));
    assert_eq!(io.packet().await, "close 4412");
    let mut io = Io::connect(&served, auth).await;
    assert_eq!(io.event().await.0, "subscribed");
    assert!(is_end(&io.events_to_the_end().await.pop().unwrap().1));
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_client_takes_a_place_among_the_streams_when_it_has_shown_its_token() {
    let harness = Harness::with(|config, _| config.connections = 1);
    let served = serve(&harness);
    let (mut second, _) = Io::open(&served).await;
    assert_eq!(harness.api.open_streams(), 0, "without a token it takes none");
    let first = Io::connect(&served, token()).await;
    assert_eq!(harness.api.open_streams(), 1);
    second.send(&format!("40{}", token())).await;
    let refused = json_of(&second.packet().await, "44");
    assert_eq!(
        (&refused["data"]["code"], &refused["data"]["retryable"]),
        (&json!("capacity_exhausted"), &json!(true))
    );
    drop(first);
    while harness.api.open_streams() == 1 {
        tokio::task::yield_now().await;
    }
    second.send(&format!("40{}", token())).await;
    assert!(second.packet().await.starts_with("40"));
    served.handle.stop(false).await;
}
