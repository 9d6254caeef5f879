//! A client that stops reading costs itself, and nobody else.

use futures_util::SinkExt as _;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::follower::{Follower, Place, Socket, Way, connect};
use crate::harness::{PATIENCE, TestServer, fake_config, numbers, text_of};

const DELTAS: u64 = 100_000;
const STALLED: usize = 20;
/// What the stalled clients may cost in all: less than a tenth of the 800 MB that they have not read.
const MEMORY_BYTES: u64 = 64 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_stop_reading_are_cut_and_miss_nothing_when_they_resume() {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nsend_timeout_s = 5\n"));
    let place = Place::of(&server);
    // The same stream twice, so that what a flood costs anyhow is paid before the stalled clients come.
    stream(&server, &place, 0).await;
    let before = resident_bytes(server.pid());
    let (id, stalled, follower) = stream(&server, &place, STALLED).await;
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

/// Streams to one reader that reads, and to others that ask for everything and then take nothing.
async fn stream(server: &TestServer, place: &Place, stalled: usize) -> (String, Vec<Socket>, Follower) {
    let gate = server.folder.path().join(format!("gate-{stalled}"));
    let id = server.launch(&json!({ "deltas": DELTAS, "gate": gate, "gate_after": 10 })).await;
    server.wait_until(&id, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    let mut sockets = Vec::new();
    for _ in 0..stalled {
        let mut socket = connect(place).await.unwrap();
        let subscribe = json!({ "type": "subscribe", "payload": { "agentId": id, "since": 0 } });
        socket.send(Message::text(subscribe.to_string())).await.unwrap();
        sockets.push(socket);
    }
    std::fs::write(&gate, "").unwrap();
    let mut follower = Follower::new(place.clone(), &id);
    assert!(follower.read(Way::WebSocket, usize::MAX >> 1).await, "who reads is not disturbed");
    let expected = numbers(DELTAS);
    assert_eq!(text_of(&follower.events()), expected);
    (id, sockets, follower)
}

async fn open_streams(server: &TestServer) -> u64 {
    let metrics =
        server.request(reqwest::Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    let line = metrics.lines().find(|line| line.starts_with("tokenrail_followers ")).expect("a gauge");
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
