//! Socket.IO's clients whose requests reach another server than before: they go on there, with the number that
//! they have.

use reqwest::Method;
use serde_json::{Value, json};
use tokenrail_test_postgres::database;
use tokio::time::timeout;

use super::vocabularies::pair;
use crate::follower::{Follower, Place, Way};
use crate::harness::{PATIENCE, TestServer, assert_dense};

const POLLING: &str = "/socket.io/?EIO=4&transport=polling";
/// How many deltas the agent prints before its gate, and in all.
const FIRST: u64 = 40;
const ALL: u64 = 90;
/// So many events of each client's are from its first server.
const SEEN: usize = 20;

/// A client that polls.
struct Poller {
    path: String,
    messages: Vec<Value>,
}

/// The response to a request, whose session may be unknown.
async fn ask(server: &TestServer, method: Method, path: &str, body: String) -> (u16, String) {
    let request = server.request(method, path).body(body).send();
    let answer = timeout(PATIENCE, request).await.expect("in time").expect("an answer");
    (answer.status().as_u16(), answer.text().await.expect("a text"))
}

impl Poller {
    fn new() -> Self {
        Self { path: String::new(), messages: Vec::new() }
    }

    /// Opens a session, and follows the agent from the number that it has.
    async fn connect(&mut self, server: &TestServer, id: &str) {
        let (_, open) = ask(server, Method::GET, POLLING, String::new()).await;
        let open: Value = serde_json::from_str(open.strip_prefix('0').unwrap()).unwrap();
        self.path = format!("{POLLING}&sid={}", open["sid"].as_str().unwrap());
        let since = json!({ "since": { id: self.messages.len() } });
        assert_eq!(ask(server, Method::POST, &self.path, format!("40{since}")).await, (200, "ok".to_owned()));
    }

    /// Polls until it has this many events, or the end of the turn.
    async fn read(&mut self, server: &TestServer, until: usize) {
        let is_end = |message: &Value| message["metadata"]["eventType"] == "result";
        while self.messages.len() < until && !self.messages.last().is_some_and(is_end) {
            let (status, packets) = ask(server, Method::GET, &self.path, String::new()).await;
            assert_eq!(status, 200, "{packets}");
            for packet in packets.split('\x1e').filter_map(|packet| packet.strip_prefix("42")) {
                let mut event: Value = serde_json::from_str(packet).unwrap();
                if event[0] == "agent:message" {
                    self.messages.push(event[1]["message"].take());
                    assert_dense(&self.messages);
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_goes_on_at_another_node_with_its_number() {
    let database = database();
    let (home, other) = pair(&database);
    let gate = home.folder.path().join("gate");
    let id = home.launch(&json!({ "deltas": ALL, "gate": gate, "gate_after": FIRST })).await;
    let mut clients = Vec::new();
    for (first, second) in [(&home, &other), (&other, &home)] {
        let mut poller = Poller::new();
        poller.connect(first, &id).await;
        poller.read(first, SEEN).await;
        // A session that polls is in the memory of one server.
        let (status, error) = ask(second, Method::GET, &poller.path, String::new()).await;
        let unknown = json!({ "code": 1, "message": "Session ID unknown" });
        assert_eq!((status, serde_json::from_str(&error).ok()), (400, Some(unknown)));
        poller.connect(second, &id).await;
        let mut socket = Follower::new(Place::of(first), &id);
        socket.read_however_often_it_is_cut(Way::SocketIo, SEEN).await;
        socket.move_to(Place::of(second));
        clients.push((poller, socket, second));
    }
    std::fs::write(gate, "").unwrap();
    home.wait_for_status(&id, "completed").await;
    let events = home.events(&id).await;
    for (mut poller, mut socket, server) in clients {
        poller.read(server, usize::MAX).await;
        assert_eq!(poller.messages, events);
        socket.read_however_often_it_is_cut(Way::SocketIo, usize::MAX >> 1).await;
        assert_eq!(socket.events(), events);
    }
}
