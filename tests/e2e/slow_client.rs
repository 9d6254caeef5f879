//! A client that stops reading costs itself, and nobody else.

use futures_util::SinkExt as _;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::follower::{Follower, Place, Way, connect};
use crate::harness::{PATIENCE, TestServer, fake_config, text_of};

const STALLED: usize = 20;
/// What the stalled clients may cost in all: far less than the stream is long.
const MEMORY_BYTES: u64 = 48 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_stop_reading_are_cut_and_miss_nothing_when_they_resume() {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nsend_timeout_s = 2\n")).await;
    let place = Place::of(&server);
    let deltas = 200_000;
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": deltas, "gate": gate, "gate_after": 10 })).await;
    server.wait_until(&id, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    let mut stalled = Vec::new();
    for _ in 0..STALLED {
        let mut socket = connect(&place).await.unwrap();
        let subscribe = json!({ "type": "subscribe", "payload": { "agentId": id, "since": 0 } });
        socket.send(Message::text(subscribe.to_string())).await.unwrap();
        stalled.push(socket);
    }
    let before = resident_bytes(server.pid());
    std::fs::write(&gate, "").unwrap();
    let mut follower = Follower::new(place.clone(), &id);
    assert!(follower.read(Way::WebSocket, usize::MAX >> 1).await, "who reads is not disturbed");
    let expected: String = (0..deltas).map(|number| format!("{number} ")).collect();
    assert_eq!(text_of(&follower.events()), expected);
    let grown = resident_bytes(server.pid()).saturating_sub(before);
    assert!(grown < MEMORY_BYTES, "{grown} bytes more");

    let started = tokio::time::Instant::now();
    while 0 < open_streams(&server).await {
        assert!(started.elapsed() < PATIENCE, "the stalled clients are never cut");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    drop(stalled);
    let mut resumed = Follower::new(place, &id);
    assert!(resumed.read(Way::Sse, 100).await);
    assert!(resumed.read(Way::WebSocket, usize::MAX >> 1).await);
    assert!(resumed.bytes() == follower.bytes(), "the same bytes");
}

async fn open_streams(server: &TestServer) -> u64 {
    let metrics = server.request(reqwest::Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    let line = metrics.lines().find(|line| line.starts_with("tokenrail_followers ")).expect("a gauge");
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
