//! Hints between servers that do not arrive, arrive twice, or make no sense. No reader and no command depends on them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokenrail_test_postgres::{Database, Direction, Flush, Proxy, Server};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::failovers::metric;
use super::nodes::node_with;
use super::{WAYS, config};
use crate::follower::{Follower, Place};
use crate::harness::{PATIENCE, TestServer, no_process_is_left, numbers, text_of};
use crate::questions;

/// What a server says on the connection on which it sends hints, and on the one on which it hears them.
const SENDS: &str = "pg_notify";
const HEARS: &str = "LISTEN tokenrail_bell";

/// How late a reader may be without hints. A server promises 1.5 s, and tests in `application` check exactly that in
/// virtual time. The rest is for a busy machine and its debug build. A reader whom only a chance helps is later.
const LATE_MOST: Duration = Duration::from_secs(10);

/// Two servers, each behind a proxy that disturbs only its hints.
struct Pair {
    home: TestServer,
    other: TestServer,
    networks: [Proxy; 2],
    database: Database,
    postgres: Server,
}

impl Pair {
    /// `home` and `other` are what marks the connections that are disturbed.
    fn start(home: &[&str], other: &[&str]) -> Self {
        let postgres = Server::start(Flush::Off);
        let database = postgres.database();
        let networks = [home, other].map(|marks| {
            let network = Proxy::start(&postgres);
            network.only(marks);
            network
        });
        let node = |network: &Proxy, name: &str| {
            let config = config(&database).replace(&postgres.address(), &network.address());
            node_with(config + &questions::block(), name)
        };
        let (home, other) = (node(&networks[0], "home"), node(&networks[1], "other"));
        Self { home, other, networks, database, postgres }
    }

    /// Waits until both servers say this of their hints.
    async fn until_hints_are(&self, state: &str) {
        for server in [&self.home, &self.other] {
            let started = Instant::now();
            loop {
                let answer = server.request(Method::GET, "/readyz").send().await.unwrap();
                let is_ready = answer.status() == StatusCode::OK;
                let said = answer.json::<Value>().await.unwrap();
                if is_ready && said["bell"] == state {
                    break;
                }
                assert!(started.elapsed() < PATIENCE, "{said}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Turns, an answer and a cancel, all of them at the server that is not the agent's home: its readers have each
    /// event once, also before the next one comes.
    async fn nobody_misses_anything(&self) {
        let folder = tempfile::tempdir().unwrap();
        let gate = folder.path().join("gate");
        let script = json!({ "deltas": 40, "pace_us": 20_000, "gate": gate, "gate_after": 20 });
        let id = self.home.launch(&script).await;
        let readers = readers(&self.other, &id, folder.path(), 3);
        self.all_have_what_is_there(&id, 20, &readers).await;
        std::fs::write(gate, "").unwrap();
        self.other.wait_for_status(&id, "completed").await;

        let (path, say) = (format!("/api/agents/{id}/messages"), |script: Value| script.to_string());
        let body = json!({ "content": say(json!({ "deltas": 10 })) });
        assert_eq!(self.other.post(&path, &body).await.0, StatusCode::ACCEPTED);
        self.other.wait_until(&id, |agent| agent["turn"] == 2 && agent["status"] == "completed").await;
        let head = self.head_of(&id).await;
        let body = json!({ "content": say(json!({ "mode": "hang", "deltas": 5 })) });
        assert_eq!(self.other.post(&path, &body).await.0, StatusCode::ACCEPTED);
        self.all_have_what_is_there(&id, head + 5, &readers).await;
        let (status, _) = self.other.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
        assert_eq!(status, StatusCode::ACCEPTED);
        self.other.wait_for_status(&id, "cancelled").await;
        no_process_is_left(&id).await;

        let events = self.home.events(&id).await;
        assert_eq!(text_of(&events), numbers(40) + &numbers(10) + &numbers(5));
        assert_eq!(self.other.events(&id).await, events);
        for Reading { task, .. } in readers {
            let seen = tokio::time::timeout(PATIENCE, task).await.expect("in time").unwrap();
            assert_eq!(seen.events(), events, "each once, and in order");
        }
        self.a_question_is_answered().await;
    }

    async fn a_question_is_answered(&self) {
        let id = self.home.launch_as("asking", "Clean up").await;
        self.other.wait_until(&id, |agent| agent["openQuestions"] == 1).await;
        let path = format!("/api/agents/{id}/permissions/1-1");
        let (status, said) = self.other.post(&path, &json!({ "optionId": "allow" })).await;
        assert!(status.is_success(), "{status} {said}");
        self.other.wait_for_status(&id, "completed").await;
        assert_eq!(text_of(&self.other.events(&id).await), "It was allowed.");
    }

    async fn head_of(&self, id: &str) -> u64 {
        self.home.get(&format!("/api/agents/{id}")).await["head"].as_u64().unwrap()
    }

    /// Nothing comes after these events by itself, so that no later hint can tell readers of them.
    async fn all_have_what_is_there(&self, id: &str, least: u64, readers: &[Reading]) {
        self.home.wait_until(id, |agent| least < agent["head"].as_u64().unwrap()).await;
        let started = Instant::now();
        for reader in readers {
            loop {
                let (head, seen) = (self.head_of(id).await, lines_of(&reader.history));
                if seen == head {
                    break;
                }
                let way = &reader.way;
                assert!(started.elapsed() < LATE_MOST, "{way} has {seen} of {head} events");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// Somebody who reads until the end of some turns.
struct Reading {
    way: String,
    /// One line for each event.
    history: PathBuf,
    task: JoinHandle<Follower>,
}

fn readers(server: &TestServer, id: &str, folder: &Path, turns: usize) -> Vec<Reading> {
    let start = |way| {
        let name = format!("{way:?}");
        let history = folder.join(&name);
        let mut follower = Follower::new(Place::of(server), id);
        follower.history = Some(File::create(&history).unwrap());
        let task = Handle::current().spawn(async move {
            while follower.results() < turns {
                follower.read(way, usize::MAX >> 1).await;
            }
            follower
        });
        Reading { way: name, history, task }
    };
    WAYS.into_iter().map(start).collect()
}

fn lines_of(file: &Path) -> u64 {
    // The last one may be half written.
    std::fs::read_to_string(file).unwrap().matches('\n').count() as u64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_misses_anything_without_hints() {
    let both = [SENDS, HEARS];
    let pair = Pair::start(&both, &both);
    pair.until_hints_are("working").await;
    for network in &pair.networks {
        network.refuse();
    }
    pair.until_hints_are("polling").await;
    pair.nobody_misses_anything().await;
    for network in &pair.networks {
        network.release();
    }
    pair.until_hints_are("working").await;
    pair.nobody_misses_anything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_misses_anything_while_no_hint_arrives_on_open_connections() {
    let pair = Pair::start(&[SENDS], &[HEARS]);
    for (at, direction) in [(0, Direction::ToServer), (1, Direction::ToClient)] {
        pair.until_hints_are("working").await;
        pair.networks[at].hold(direction);
        pair.nobody_misses_anything().await;
        pair.networks[at].release();
    }
    pair.until_hints_are("working").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_misses_anything_while_the_processes_of_the_hints_hang() {
    let pair = Pair::start(&[], &[]);
    pair.until_hints_are("working").await;
    let of = |text: &str| {
        format!("FROM pg_stat_activity WHERE query LIKE '%{text}%' AND application_name = 'tokenrail'")
    };
    let mut hang = Vec::new();
    for text in [SENDS, HEARS] {
        pair.postgres.wait_for(&format!("SELECT count(*) {}", of(text)), "2");
        for offset in 0..2 {
            let query = format!("SELECT pid {} ORDER BY pid OFFSET {offset} LIMIT 1", of(text));
            hang.push(pair.postgres.freeze(&query));
        }
    }
    pair.nobody_misses_anything().await;
    pair.until_hints_are("working").await;
    drop(hang);
    pair.nobody_misses_anything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_gets_anything_twice_if_hints_come_twice_and_among_nonsense() {
    let pair = Pair::start(&[], &[]);
    pair.until_hints_are("working").await;
    let long = "x".repeat(7_900);
    let id = "019abcdef012734586789abcdef01234";
    let unknown = format!("1 {id} h{id}:345 a{id} d{id} c{id} e3 i4 m");
    let [other_version, half] = [format!("2 {id} e3"), format!("1 {id} h{id}:")];
    let nonsense = ["", "hello", &long, &unknown, &other_version, &half];
    let echo = pair.database.echo("tokenrail_bell", &nonsense);
    pair.nobody_misses_anything().await;
    let repeated = echo.repeated();
    assert!(repeated.iter().any(|payload| payload.contains(" h")), "{repeated:?}");
    for server in [&pair.home, &pair.other] {
        // Nonsense may be a hint of a later version, so it counts as one that did not arrive.
        assert!(0 < metric(server, "tokenrail_hints_missed_total").await);
    }
    pair.until_hints_are("working").await;
}
