//! S17, S26, S27, S28: too much of everything.

use std::time::Duration;

use reqwest::{Client, Method};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

use crate::bodies::resident_bytes;
use crate::harness::{PATIENCE, TestServer, fake_config, no_process_is_left, processes_of_agent};
use crate::raw::{self, HANDSHAKE};
use crate::socket::{Said, Socket};

const MEMORY_BYTES: u64 = 64 << 20;
/// How many agents one connection may follow (`limits.subscriptions_per_connection`).
const SUBSCRIPTIONS: usize = 128;
/// Further subscriptions after that.
const MESSAGES: usize = 10_000;
/// How much is sent of a frame that announces a terabyte.
const FLOOD_BYTES: usize = 256 << 20;
static FLOOD_CHUNK: [u8; 1 << 20] = [b'x'; 1 << 20];
/// Idle connections. Each also takes a descriptor of this test.
const IDLE: usize = 2000;

#[tokio::test]
async fn s26_messages_that_are_too_large_end_the_connection() {
    let server = TestServer::start();
    let mut socket = Socket::open(&server, "").await;
    socket.send(Message::text(" ".repeat(64 << 10))).await.unwrap();
    assert_eq!(socket.hear_of("error").await["code"], "malformed_json", "64 KiB are read");
    let _ = socket.send(Message::text(" ".repeat((64 << 10) + 1))).await;
    assert_eq!(socket.end().await, Some(4509));
    let mut socket = Socket::open(&server, "").await;
    socket.send(Message::binary(vec![0; 8])).await.unwrap();
    assert_eq!(socket.end().await, Some(1003));
}

/// Performs the handshake.
async fn connected(server: &TestServer, path: &str) -> TcpStream {
    let mut socket = TcpStream::connect(server.authority()).await.unwrap();
    socket.write_all(raw::request(server, "GET", path, &HANDSHAKE).as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "));
    socket
}

/// Sends bytes, and returns the close code; `None` if the server closes without a code.
async fn closed_after(server: &TestServer, bytes: &[u8]) -> Option<u16> {
    let mut socket = connected(server, "/ws").await;
    let _ = socket.write_all(bytes).await;
    let said = raw::until_closed(&mut socket, PATIENCE).await.expect("it is closed");
    // The close frame is the last one: 0x88, its length, and then the code.
    let at = said.windows(2).rposition(|pair| pair[0] == 0x88 && usize::from(pair[1]) < 126)?;
    said.get(at + 2..at + 4).map(|code| u16::from_be_bytes([code[0], code[1]]))
}

/// A frame of a client, masked with zeros, which changes nothing.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ ..126 => frame.push(0x80 | length as u8),
        length @ ..65_536 => {
            frame.push(0x80 | 0x7e);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            frame.push(0x80 | 0x7f);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

#[tokio::test]
async fn s26_frames_against_the_protocol_end_the_connection() {
    let server = TestServer::start();
    let pieces = |count: usize| -> Vec<u8> {
        let rest = std::iter::repeat_n(frame(0x00, &[b'x'; 1000]), count);
        std::iter::once(frame(0x01, b"x")).chain(rest).flatten().collect()
    };
    let mut claimed = vec![0x81, 0x80 | 0x7f];
    claimed.extend_from_slice(&u64::MAX.to_be_bytes());
    let cases: [(&str, Vec<u8>, &[u16]); 8] = [
        ("not masked", vec![0x81, 2, b'{', b'}'], &[1002]),
        ("a reserved bit", frame(0xc1, b"{}"), &[1002]),
        ("an unknown kind", frame(0x83, b"{}"), &[1002]),
        ("a continuation of nothing", frame(0x80, b"x"), &[1002]),
        ("a ping in pieces", frame(0x09, b"x"), &[1002]),
        ("a large ping", frame(0x89, &[b'x'; 200]), &[1002]),
        ("no UTF-8", frame(0x81, b"\xff\xfe"), &[1007]),
        ("a length beyond all", claimed, &[1002, 4509]),
    ];
    for (what, bytes, expected) in cases {
        let code = closed_after(&server, &bytes).await;
        assert!(code.is_some_and(|code| expected.contains(&code)), "{what}: {code:?}");
    }
    for count in [(64 << 10) / 1000 + 1, 1000] {
        let code = closed_after(&server, &pieces(count)).await;
        assert_eq!(code, Some(4509), "{count} fragments");
    }
    server.launch(&json!({})).await;
}

/// The client announces a terabyte, and sends as much of it as the server reads.
#[tokio::test]
async fn s26_a_frame_that_announces_too_much_fills_no_memory() {
    let server = TestServer::start();
    let before = resident_bytes(server.pid());
    let announced = |first: u8| [&[first, 0xff][..], &(1_u64 << 40).to_be_bytes(), &[0; 4]].concat();
    let heads =
        [announced(0x81), announced(0x02), [frame(0x01, b"x"), announced(0x00)].concat(), announced(0x89)];
    for path in ["/ws", "/api/chat"] {
        for head in &heads {
            let mut socket = connected(&server, path).await;
            let _ = socket.write_all(head).await;
            let (mut reading, mut writing) = socket.split();
            let flood = async {
                for _ in 0..FLOOD_BYTES / FLOOD_CHUNK.len() {
                    if writing.write_all(&FLOOD_CHUNK).await.is_err() {
                        break;
                    }
                }
            };
            let answer = async {
                let mut answer = [0; 4];
                reading.read_exact(&mut answer).await.expect("a close comes before the payload");
                (answer[0], u16::from_be_bytes([answer[2], answer[3]]))
            };
            let ((), answer) = tokio::join!(flood, tokio::time::timeout(PATIENCE, answer));
            let (first, code) = answer.expect("it is closed");
            let expected = if head[0] == 0x89 { 1002 } else { 4509 };
            assert_eq!((first, code), (0x88, expected), "{path} {:x?}", &head[..2]);
        }
    }
    let grown = resident_bytes(server.pid()).saturating_sub(before);
    assert!(grown < MEMORY_BYTES, "{grown} bytes");
}

/// One agent more than a connection may follow. None of them has a running process.
async fn many_agents(server: &TestServer) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..=SUBSCRIPTIONS {
        ids.push(server.launch_as("demo", "x").await);
    }
    for id in &ids {
        server.wait_for_status(id, "completed").await;
    }
    ids
}

#[tokio::test]
async fn s26_as_many_subscriptions_as_there_may_be_and_ten_thousand_more_cost_little() {
    let config = "[agents.demo]\nrunner = \"replay\"\nspeed = 0\n[limits]\nlaunches_per_minute = 10000\n";
    let server = TestServer::start_with(config);
    let ids = many_agents(&server).await;
    let before = resident_bytes(server.pid());
    let mut socket = Socket::open(&server, "").await;
    let wish = |id: &str| json!({ "agentId": id, "since": 0 });
    for id in &ids[..SUBSCRIPTIONS] {
        socket.say("subscribe", &wish(id)).await;
        assert_eq!(socket.hear_of("subscribed").await["agentId"], *id);
    }
    socket.say("subscribe", &wish(&ids[SUBSCRIPTIONS])).await;
    assert_eq!(socket.hear_of("error").await["code"], "capacity_exhausted", "one more than there may be");

    for number in 0..MESSAGES {
        let unknown = format!("01900000-0000-7000-8000-{number:012x}");
        // In turn: an agent that the connection follows, which is sent again; the one too many; and an unknown one.
        let agent = match number % 4 {
            0 | 1 => &ids[number % SUBSCRIPTIONS],
            2 => &ids[SUBSCRIPTIONS],
            _ => &unknown,
        };
        let text = json!({ "type": "subscribe", "payload": { "agentId": agent } }).to_string();
        socket.send(Message::text(text)).await.unwrap();
        socket.send(Message::Ping(vec![0; 125].into())).await.unwrap();
    }
    socket.say("ping", &json!({})).await;
    let (mut subscribed, mut refused) = (0, 0);
    loop {
        match socket.hear().await {
            Said::Frame(frame) if frame["type"] == "pong" => break,
            Said::Frame(frame) if frame["type"] == "subscribed" => subscribed += 1,
            Said::Frame(frame) if frame["type"] == "error" => refused += 1,
            Said::Frame(_) => {}
            Said::Closed(code) => panic!("closed with {code:?}"),
        }
    }
    assert_eq!((subscribed, refused), (MESSAGES / 2, MESSAGES / 2), "each was answered");
    let grown = resident_bytes(server.pid()).saturating_sub(before);
    assert!(grown < MEMORY_BYTES, "{grown} bytes more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s27_idle_connections_keep_nobody_out_and_are_closed() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let server = TestServer::start();
    let mut idle = Vec::new();
    let parts = ["", "G", "GET /api/agents HTTP/1.1\r\n", "POST /api/agents HTTP/1.1\r\nHost: x\r\nX-"];
    for number in 0..IDLE {
        let mut socket = TcpStream::connect(server.authority()).await.unwrap();
        socket.write_all(parts[number % parts.len()].as_bytes()).await.unwrap();
        idle.push(socket);
    }
    server.launch_to_completion(&json!({ "deltas": 1 })).await;
    for mut socket in idle {
        let said = raw::until_closed(&mut socket, PATIENCE).await.expect("it is closed");
        assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&said));
    }
}

/// The maximum number of connections. Each is answered although its body has not ended, and keeps sending it.
#[tokio::test]
async fn s27_bodies_that_never_end_keep_nobody_out() {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nconnections = 18\n"));
    let (chunked, long) = (("Transfer-Encoding: chunked", "1\r\nx\r\n"), ("Content-Length: 1000000", "x"));
    let mut dripping = JoinSet::new();
    for (line, statuses) in [
        ("POST /api/agents", [401; 2]),
        ("POST /api/agents/import", [401; 2]),
        ("GET /ws", [401; 2]),
        ("POST /nowhere", [401; 2]),
        ("GET /healthz", [200; 2]),
        ("GET /problems/not_found", [200; 2]),
        ("GET /", [200; 2]),
        ("DELETE /healthz", [401; 2]),
        // The only one that reads a body of a client without a token: for a short time, and little of it.
        ("POST /api/session", [408, 413]),
    ] {
        for ((header, piece), status) in [chunked, long].into_iter().zip(statuses) {
            let mut socket = TcpStream::connect(server.authority()).await.unwrap();
            let host = server.authority();
            let begun = format!("{line} HTTP/1.1\r\nHost: {host}\r\n{header}\r\n\r\n{piece}");
            socket.write_all(begun.as_bytes()).await.unwrap();
            let mut head = [0; 12];
            socket.read_exact(&mut head).await.unwrap();
            assert_eq!(head[..], *format!("HTTP/1.1 {status}").as_bytes(), "{line} {header}");
            dripping.spawn(async move {
                while socket.write_all(piece.as_bytes()).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            });
        }
    }
    let id =
        tokio::time::timeout(PATIENCE, server.launch(&json!({}))).await.expect("another client is served");
    server.wait_for_status(&id, "completed").await;
    tokio::time::timeout(PATIENCE, dripping.join_all()).await.expect("each is closed");
}

/// The server answers the first request. The head of the next one comes byte by byte.
#[tokio::test]
async fn s27_the_head_of_a_later_request_that_never_ends_is_cut_off() {
    let server = TestServer::start();
    let mut socket = TcpStream::connect(server.authority()).await.unwrap();
    let ask =
        format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\nGET /healthz HTTP/1.1\r\nX: ", server.authority());
    socket.write_all(ask.as_bytes()).await.unwrap();
    let drip = async {
        while socket.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, drip).await.expect("it is closed");
}

#[tokio::test]
async fn s27_a_client_that_sends_byte_for_byte_is_cut_off() {
    let server = TestServer::start();
    let mut socket = TcpStream::connect(server.authority()).await.unwrap();
    let head = raw::request(&server, "GET", "/api/agents", &["X-Slow: 1"]);
    let started = tokio::time::Instant::now();
    // One byte every tenth of a second takes longer than the limit for the whole head.
    for byte in head.bytes() {
        if socket.write_all(&[byte]).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(started.elapsed() < PATIENCE, "it is never cut off");
        let mut one = [0];
        if !matches!(socket.try_read(&mut one), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
        {
            return;
        }
    }
    let said = raw::until_closed(&mut socket, PATIENCE).await.expect("it is closed");
    assert!(!said.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&said));
}

#[tokio::test]
async fn s28_too_many_launches_are_told_when_to_come_again_and_disturb_nothing_else() {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nlaunches_per_minute = 3\n"));
    let launch =
        || server.request(Method::POST, "/api/agents").json(&json!({ "type": "fake", "prompt": "{}" }));
    for _ in 0..3 {
        assert_eq!(launch().send().await.unwrap().status(), 201);
    }
    for _ in 0..20 {
        let refused = launch().send().await.unwrap();
        let after: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=60).contains(&after), "{after}");
        let problem: Value = refused.json().await.unwrap();
        assert_eq!((&problem["code"], &problem["retryable"]), (&json!("rate_limited"), &json!(true)));
    }
    assert_eq!(server.get("/api/agents").await.as_array().unwrap().len(), 3, "reading goes on");
}

#[tokio::test]
async fn s28_failed_logins_are_limited_for_their_peer_and_for_nobody_else() {
    let server = TestServer::start();
    let url = format!("http://{}/api/agents", server.authority());
    let wrong = "0".repeat(64);
    let mut refused = Vec::new();
    for _ in 0..15 {
        let answer = server.http.get(&url).bearer_auth(&wrong).send().await.unwrap();
        refused.push((answer.status().as_u16(), answer.headers().contains_key("retry-after")));
    }
    assert_eq!(refused[0], (401, false));
    assert_eq!(refused[14], (429, true), "{refused:?}");
    let neighbour =
        Client::builder().no_proxy().local_address(std::net::IpAddr::from([127, 0, 0, 2])).build().unwrap();
    assert_eq!(neighbour.get(&url).bearer_auth(&wrong).send().await.unwrap().status(), 401, "another peer");
    assert_eq!(neighbour.get(&url).bearer_auth(server.token()).send().await.unwrap().status(), 200);
    assert_eq!(server.get("/api/agents").await, json!([]), "who knows the token comes in");
}

#[tokio::test]
async fn s17_an_agent_that_floods_or_leaves_processes_behind_is_ended_with_all_of_them() {
    let limits = "[limits]\nspool_bytes = 4194304\ncancel_grace_s = 1\nkill_grace_s = 5\n";
    let server = TestServer::start_with(&(fake_config() + limits));
    let flood = server.launch(&json!({ "mode": "flood", "mib": 512 })).await;
    let escape = server.launch(&json!({ "mode": "ignore_term" })).await;
    let agent = server.wait_until(&flood, |agent| agent["endedAt"].is_string()).await;
    assert_eq!(
        (&agent["status"], &agent["error"]["code"]),
        (&json!("failed"), &json!("output_capped")),
        "{agent}"
    );
    server.wait_until(&escape, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    assert!(3 <= processes_of_agent(&escape).len(), "supervisor, agent, and what has a session of its own");
    server.post(&format!("/api/agents/{escape}/cancel"), &json!({})).await;
    server.wait_for_status(&escape, "cancelled").await;
    for id in [flood, escape] {
        no_process_is_left(&id).await;
    }
}
