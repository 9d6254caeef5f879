//! Two servers and their database, each in a network namespace of its own. The links between them lose what is sent in
//! one direction, in the other, or in both, for a shorter or a longer time than a server may be silent. The storm
//! (`postgres/storm.rs`) breaks them at random, together with everything else.
//!
//! `cargo xtask test` sets `TOKENRAIL_TEST_IP` where namespaces can be made.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokenrail_test_postgres::{Database, Server};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::follower::{Follower, Place, Way};
use crate::harness::{TestServer, numbers, text_of};
use crate::networks::{ADDRESSES, CUTS, Cut, Networks, database_address};
use crate::postgres::config;
use crate::postgres::nodes::{TOKEN, named, results, until_its_processes_end};

const WAYS: [Way; 4] = [Way::Rest, Way::Sse, Way::WebSocket, Way::SocketIo];

/// How long everything may take to be well again. Connections that were cut off are noticed late.
const PATIENCE: Duration = Duration::from_mins(2);

/// Shorter than a server may be silent.
const SHORTLY: Duration = Duration::from_secs(1);

const DELTAS: u64 = 20_000;

struct Cluster {
    // They end before their database does, and the networks last.
    servers: Vec<TestServer>,
    _database: Database,
    _postgres: Server,
    networks: Networks,
}

impl Cluster {
    /// `None` if namespaces cannot be made here.
    fn start() -> Option<Self> {
        let networks = Networks::make(2)?;
        let postgres = Server::start_in_network(networks.database(), ADDRESSES);
        let database = postgres.database();
        let start = |number: usize| {
            let inside = postgres.address().replace("127.0.0.1", &database_address(number));
            let config = config(&database).replace(&postgres.address(), &inside);
            let mut server = TestServer::prepare(&named(config, &format!("node-{number}")));
            server.put_token(TOKEN);
            networks.open_door(number, &server.authority());
            let command = server.command(&["serve", "--log", "warn"]);
            server.start_by(networks.command_at(number, &command)).expect("it serves");
            server
        };
        let servers = (0..2).map(start).collect();
        Some(Self { servers, _database: database, _postgres: postgres, networks })
    }

    /// An agent that writes until it is told to hurry, and its readers at all servers.
    async fn agent_at(&self, number: usize) -> Agent {
        let server = &self.servers[number];
        let hurry = server.folder.path().join(format!("hurry-{}", rand()));
        let script = json!({ "deltas": DELTAS, "pace_us": 5000, "hurry": hurry });
        let id = server.launch(&script).await;
        let mut readers = Vec::new();
        for (at, server) in self.servers.iter().enumerate() {
            for way in WAYS {
                let follower = Follower::new(Place::of(server), &id);
                let reading = follower.read_to_a_result(way, std::iter::empty());
                let name = format!("{way:?} at server {at}, of an agent at server {number}");
                readers.push((name, Handle::current().spawn(reading)));
            }
        }
        server.wait_until(&id, |agent| 20 < agent["head"].as_u64().unwrap()).await;
        Agent { id, hurry, readers }
    }

    /// Breaks the link of a server, until its turns were taken if it is for long.
    async fn survives(&self, number: usize, cut: Cut, is_long: bool) {
        let other = &self.servers[1 - number];
        let (cut_off, fine) = (self.agent_at(number).await, self.agent_at(1 - number).await);
        self.networks.cut(number, cut);
        if is_long {
            let taken = |agent: &Value| agent["status"] == "interrupted";
            until(other, &cut_off.id, taken).await;
        } else {
            tokio::time::sleep(SHORTLY).await;
        }
        self.networks.mend(number, cut);
        // Until it has learned that it was lost, it may take a message that ends with the others.
        let all_alive = |nodes: &Value| {
            nodes.as_array().is_some_and(|nodes| nodes.iter().all(|node| node["state"] == "alive"))
        };
        until_it_says(other, "/api/nodes", all_alive).await;
        for agent in [&cut_off, &fine] {
            std::fs::write(&agent.hurry, "").unwrap();
        }
        let outcomes = [self.end_of(cut_off).await, self.end_of(fine).await];
        if is_long {
            assert_eq!(outcomes, ["interrupted", "completed"], "{cut:?}");
        }
    }

    /// The one turn of this agent has ended once, in the eyes of everybody, and the agent goes on. Returns the outcome.
    async fn end_of(&self, agent: Agent) -> String {
        let Agent { id, readers, .. } = agent;
        for server in &self.servers {
            until(server, &id, |agent| agent["endedAt"].is_string()).await;
        }
        until_its_processes_end(&id).await;
        let events = self.servers[0].events(&id).await;
        assert_eq!(self.servers[1].events(&id).await, events);
        for (name, reader) in readers {
            let seen = timeout(PATIENCE, reader).await;
            let seen = seen.unwrap_or_else(|_| panic!("{name} does not come to the result")).unwrap();
            assert_eq!(seen.events(), events, "{name}");
        }
        let outcomes = results(&events);
        let (text, whole) = (text_of(&events), numbers(DELTAS));
        match outcomes[..] {
            [("completed", "-")] => assert_eq!(text, whole),
            [("interrupted", "node_lost")] => assert!(whole.starts_with(&text)),
            _ => panic!("{outcomes:?}"),
        }
        let outcome = outcomes[0].0.to_owned();
        let body = json!({ "content": json!({ "deltas": 3 }).to_string() });
        for (server, turn) in self.servers.iter().zip(2..) {
            let (path, started) = (format!("/api/agents/{id}/messages"), Instant::now());
            while server.post(&path, &body).await.0 != StatusCode::ACCEPTED {
                assert!(started.elapsed() < PATIENCE);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            until(server, &id, |agent| agent["turn"] == turn && agent["status"] == "completed").await;
        }
        outcome
    }
}

struct Agent {
    id: String,
    hurry: PathBuf,
    /// With their names.
    readers: Vec<(String, JoinHandle<Follower>)>,
}

fn rand() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0)
}

/// Waits until a server says this of an agent. It may be away meanwhile.
async fn until(server: &TestServer, id: &str, holds: impl Fn(&Value) -> bool) {
    until_it_says(server, &format!("/api/agents/{id}"), holds).await;
}

async fn until_it_says(server: &TestServer, path: &str, holds: impl Fn(&Value) -> bool) {
    let started = Instant::now();
    loop {
        let mut said = String::new();
        if let Some(answer) = server.answer_if_there(path).await {
            let is_ok = answer.status() == StatusCode::OK;
            said = answer.text().await.unwrap_or_default();
            if is_ok && holds(&serde_json::from_str(&said).unwrap_or_default()) {
                return;
            }
        }
        assert!(started.elapsed() < PATIENCE, "{said}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[expect(clippy::print_stderr, reason = "says why a test did not run")]
fn is_not_run() {
    eprintln!("NOT RUN: only root can make network namespaces");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_between_namespaces_break_and_nothing_is_lost() {
    let Some(cluster) = Cluster::start() else { return is_not_run() };
    for cut in CUTS {
        cluster.survives(1, cut, false).await;
        cluster.survives(0, cut, true).await;
    }
}
