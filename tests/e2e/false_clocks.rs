//! Servers whose wall clock is wrong or jumps. `cargo xtask test` sets `TOKENRAIL_TEST_FAKETIME`, the path of a library
//! that changes the clock of one process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokenrail_test_postgres::{Database, database};
use tokio::runtime::Handle;

use crate::follower::{Follower, Place, Way};
use crate::foreign_follower::{ForeignFollower, Vocabulary};
use crate::harness::{TestServer, no_process_is_left, numbers, text_of};
use crate::postgres::config;
use crate::postgres::nodes::{LOST_AFTER_S, TOKEN, named, results};

/// Names the library.
const VARIABLE: &str = "TOKENRAIL_TEST_FAKETIME";

const WAYS: [Way; 4] = [Way::Rest, Way::Sse, Way::WebSocket, Way::SocketIo];

/// A server, and the file that says what its clock shows.
struct Node {
    server: TestServer,
    clock: PathBuf,
}

impl Node {
    fn start(database: &Database, folder: &Path, name: &str, clock: &str) -> Self {
        let library = std::env::var_os(VARIABLE);
        let library =
            library.unwrap_or_else(|| panic!("install libfaketime, and name its library in {VARIABLE}"));
        let mut server = TestServer::prepare(&named(config(database), name));
        server.put_token(TOKEN);
        let file = folder.join(name);
        std::fs::write(&file, clock).unwrap();
        let mut command = server.command(&["serve", "--log", "warn"]);
        command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &file);
        command
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("NO_FAKE_STAT", "1");
        server.start_by(command).expect("it serves");
        Self { server, clock: file }
    }

    /// Another time from now on.
    fn jump(&self, clock: &str) {
        let new = self.clock.with_extension("new");
        std::fs::write(&new, clock).unwrap();
        std::fs::rename(new, &self.clock).unwrap();
    }

    /// How far its clock is ahead of ours, by the header of an answer.
    async fn is_ahead_s(&self) -> i64 {
        let answer = self.server.request(Method::GET, "/healthz").send().await.unwrap();
        let date = answer.headers()["date"].to_str().unwrap();
        let theirs = jiff::fmt::rfc2822::parse(date).unwrap().timestamp();
        theirs.as_second() - jiff::Timestamp::now().as_second()
    }
}

async fn all_are_alive(server: &TestServer, count: usize) {
    let nodes = server.get("/api/nodes").await;
    let nodes = nodes.as_array().unwrap();
    assert!(nodes.len() == count && nodes.iter().all(|node| node["state"] == "alive"), "{nodes:?}");
}

/// An agent that writes for longer than a server may be silent, and its readers at all servers.
async fn launch(home: &Node, nodes: &[&Node]) -> (String, Vec<tokio::task::JoinHandle<Follower>>) {
    let pace_us = (LOST_AFTER_S + 5) * 1_000_000 / DELTAS;
    let id = home.server.launch(&json!({ "deltas": DELTAS, "pace_us": pace_us })).await;
    let mut readers = Vec::new();
    for node in nodes {
        for way in WAYS {
            let mut follower = Follower::new(Place::of(&node.server), &id);
            readers.push(Handle::current().spawn(async move {
                follower.read_however_often_it_is_cut(way, usize::MAX >> 1).await;
                follower
            }));
        }
    }
    (id, readers)
}

const DELTAS: u64 = 1000;

/// After so many pieces of a stream, a reader in another protocol disconnects and continues.
const PIECES: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_with_false_clocks_lose_nobody_and_nothing() {
    let (database, folder) = (database(), tempfile::tempdir().unwrap());
    let start = |name, clock| Node::start(&database, folder.path(), name, clock);
    let (ahead, behind, jumping) = (start("ahead", "+1h"), start("behind", "-1h"), start("jumping", "+0"));
    let nodes = [&ahead, &behind, &jumping];
    assert!(3000 < ahead.is_ahead_s().await && behind.is_ahead_s().await < -3000, "the clocks are wrong");
    let mut agents = Vec::new();
    for home in nodes {
        agents.push(launch(home, &nodes).await);
    }
    let (id, _) = &agents[2];
    for (number, clock) in (1..).zip(["+2h", "-3d", "+400d", "-1h", "+0"]) {
        let due = number * DELTAS / 6;
        behind.server.wait_until(id, |agent| due < agent["head"].as_u64().unwrap()).await;
        jumping.jump(clock);
        all_are_alive(&ahead.server, 3).await;
    }
    for (id, readers) in agents {
        for node in nodes {
            node.server.wait_for_status(&id, "completed").await;
        }
        let events = ahead.server.events(&id).await;
        assert_eq!((text_of(&events), results(&events)), (numbers(DELTAS), vec![("completed", "-")]));
        for reader in readers {
            assert_eq!(reader.await.unwrap().events(), events);
        }
        no_process_is_left(&id).await;
        for (turn, node) in (2..).zip(nodes) {
            let body = json!({ "content": json!({ "deltas": 3 }).to_string() });
            let (status, _) = node.server.post(&format!("/api/agents/{id}/messages"), &body).await;
            assert_eq!(status, StatusCode::ACCEPTED);
            let ended = |agent: &Value| agent["turn"] == turn && agent["status"] == "completed";
            node.server.wait_until(&id, ended).await;
        }
        is_read_in_every_protocol(&ahead, &behind, &id).await;
        // An answer is there at any age, from any cursor.
        jumping.jump("+400d");
        is_read_in_every_protocol(&jumping, &behind, &id).await;
        jumping.jump("+0");
    }
    for node in nodes {
        all_are_alive(&node.server, 3).await;
    }
    a_ticket_is_valid_elsewhere(&ahead, &behind).await;
    a_ticket_is_valid_elsewhere(&behind, &ahead).await;
}

/// The whole agent, at two servers.
async fn is_read_in_every_protocol(one: &Node, other: &Node, id: &str) {
    for vocabulary in Vocabulary::ALL {
        for node in [one, other] {
            let mut reader = ForeignFollower::new(Place::of(&node.server), id, vocabulary);
            reader.pieces_max = PIECES;
            let reader = reader.read_turns(4).await;
            assert_eq!(reader.text(), numbers(DELTAS) + &numbers(3).repeat(3), "{vocabulary:?}");
        }
    }
}

/// A ticket is valid for a short time, which the wrong clocks do not decide.
async fn a_ticket_is_valid_elsewhere(from: &Node, to: &Node) {
    let (status, ticket) = from.server.post("/api/tickets", &json!({})).await;
    assert!(status.is_success(), "{ticket}");
    let ticket = ticket["ticket"].as_str().unwrap();
    let agents = to.server.get("/api/agents?limit=1").await;
    let id = agents[0]["agentId"].as_str().unwrap();
    let url = format!("http://{}/api/agents/{id}/events?ticket={ticket}", to.server.authority());
    let request = to.server.http.get(url).header("accept", "text/event-stream");
    let answer = request.timeout(Duration::from_secs(10)).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}
