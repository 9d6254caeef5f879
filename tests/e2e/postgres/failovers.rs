//! The database fails over to an asynchronous standby that lacks the last moments.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokenrail_test_postgres::{Database, Flush, Replication, Server};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::nodes::node_with;
use super::{WAYS, config};
use crate::follower::{Follower, Place, Way};
use crate::harness::{PATIENCE, TestServer, numbers, text_of};

/// A primary and its standby. All servers know both.
struct Pair {
    primary: Server,
    standby: Server,
    database: Database,
}

impl Pair {
    fn new() -> Self {
        let primary = Server::start(Flush::Off);
        let database = primary.database();
        let standby = primary.standby(Replication::Asynchronous);
        Self { primary, standby, database }
    }

    fn node(&self, name: &str) -> TestServer {
        let both = format!("{},{}", self.primary.address(), self.standby.address());
        node_with(config(&self.database).replace(&self.primary.address(), &both), name)
    }

    fn fail_over(&self) {
        self.primary.kill_9();
        self.standby.promote();
    }
}

pub(super) async fn metric(server: &TestServer, name: &str) -> u64 {
    let text = server.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name} is missing")).parse().unwrap()
}

fn doctor(server: &TestServer) -> (Option<i32>, String) {
    let output = server.command(&["doctor"]).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// The first answer with this status.
pub(super) async fn until_ready(server: &TestServer, status: StatusCode) -> Value {
    let started = Instant::now();
    loop {
        let answer = server.request(Method::GET, "/readyz").send().await.unwrap();
        if answer.status() == status {
            return answer.json().await.unwrap();
        }
        assert!(started.elapsed() < PATIENCE, "{}", answer.status());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_notices_what_an_asynchronous_failover_has_lost() {
    let pair = Pair::new();
    let (home, other) = (pair.node("home"), pair.node("other"));
    let hurry = home.folder.path().join("hurry");
    let script = json!({ "mode": "stream", "deltas": 20_000, "pace_us": 5000, "hurry": hurry });
    let id = home.launch(&script).await;
    let mut readers = Vec::new();
    for (at, server) in [&home, &other].into_iter().enumerate() {
        for way in WAYS {
            let servers = [&home, &other].map(Place::of).into_iter().cycle().skip(at);
            let follower = Follower::new(Place::of(server), &id);
            readers.push(Handle::current().spawn(follower.read_to_a_result(way, servers)));
        }
    }
    other.wait_until(&id, |agent| 20 < agent["head"].as_u64().unwrap()).await;
    pair.standby.fall_behind(&pair.primary);
    let lost = home.launch(&json!({ "deltas": 5 })).await;
    home.wait_for_status(&lost, "completed").await;
    let events_of_lost = home.events(&lost).await;
    let body = json!({ "content": json!({ "deltas": 3 }).to_string() });
    let (status, accepted) = other.post(&format!("/api/agents/{id}/messages"), &body).await;
    assert_eq!((status, &accepted["turn"]), (StatusCode::ACCEPTED, &json!(2)));
    let head = other.get(&format!("/api/agents/{id}")).await["head"].as_u64().unwrap();
    other.wait_until(&id, |agent| head + 50 < agent["head"].as_u64().unwrap()).await;

    // The servers are faster than a look afterwards.
    assert_eq!(
        pair.standby.sql_in(&pair.database, "SELECT count(*) FROM agents"),
        "1",
        "the new agent is lost"
    );
    pair.fail_over();
    for server in [&home, &other] {
        until_ready(server, StatusCode::OK).await;
    }
    std::fs::write(&hurry, "").unwrap();
    let end = |agent: &Value| agent["turn"] == 2 && agent["status"] == "completed";
    home.wait_until(&id, end).await;
    let events = home.events(&id).await;
    let (first, second) = (numbers(20_000), numbers(3));
    assert_eq!(text_of(&events), format!("{first}{second}"));
    for reader in readers {
        let seen = tokio::time::timeout(PATIENCE, reader).await.expect("in time").unwrap();
        let seen = seen.events();
        assert_eq!(seen, events[..seen.len()]);
    }
    assert_eq!(other.events(&lost).await, events_of_lost);
    assert!(50 < metric(&home, "tokenrail_changes_repeated_total").await);
    for server in [&home, &other] {
        assert_eq!(metric(server, "tokenrail_changes_lost_total").await, 0);
        assert_eq!(metric(server, "tokenrail_invariant_violations_total").await, 0);
        assert_eq!(metric(server, "tokenrail_database_timeline").await, 2);
    }

    let (_, said) = doctor(&home);
    assert!(
        said.contains(
            "ok      database failovers: 1 since the server started; missing afterwards, and saved again: "
        ),
        "{said}"
    );

    the_former_primary_is_refused(&pair, &home).await;
}

/// It is back, and the standby is gone.
async fn the_former_primary_is_refused(pair: &Pair, home: &TestServer) {
    pair.standby.stop();
    pair.primary.start_again();
    let started = Instant::now();
    loop {
        let problem = until_ready(home, StatusCode::SERVICE_UNAVAILABLE).await;
        assert_eq!(problem["code"], "store_busy");
        if problem["detail"].as_str().unwrap().contains("former primary") {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{problem}");
    }
    let (code, said) = doctor(home);
    assert!(code == Some(1) && said.contains("former primary"), "{said}");
}

/// An agent at one node and its reader at the other, whose database fails over and loses the last moments.
struct Loss {
    pair: Pair,
    home: TestServer,
    other: TestServer,
    id: String,
    /// The agent ends soon if this file exists.
    hurry: PathBuf,
    reader: JoinHandle<Follower>,
    /// How many events the new primary has.
    kept: usize,
}

impl Loss {
    /// The node of the agent dies together with the primary.
    async fn of_the_primary_and_the_home() -> Self {
        let pair = Pair::new();
        let (mut home, other) = (pair.node("home"), pair.node("other"));
        let hurry = home.folder.path().join("hurry");
        let script = json!({ "mode": "stream", "deltas": 20_000, "pace_us": 5000, "hurry": hurry });
        let id = home.launch(&script).await;
        let mut follower = Follower::new(Place::of(&other), &id);
        let reader = Handle::current().spawn(async move {
            while follower.results() == 0 {
                follower.read(Way::WebSocket, usize::MAX >> 1).await;
            }
            follower
        });
        other.wait_until(&id, |agent| 20 < agent["head"].as_u64().unwrap()).await;
        pair.standby.fall_behind(&pair.primary);
        let kept: usize = pair.standby.sql_in(&pair.database, "SELECT head FROM heads").parse().unwrap();
        other.wait_until(&id, |agent| kept + 100 < agent["head"].as_u64().unwrap() as usize).await;
        home.kill_9();
        pair.fail_over();
        Self { pair, home, other, id, hurry, reader, kept }
    }

    /// What was lost and seen says so in the journal, and nothing else has its numbers. Returns the journal.
    async fn judge(self) -> Vec<Value> {
        let (journal, shown) = (self.other.events(&self.id).await, self.reader.await.unwrap().events());
        assert_eq!(shown.len(), journal.len());
        let is_lost = |event: &Value| event["metadata"]["eventType"] == "events_lost";
        assert_eq!(journal.iter().position(is_lost), Some(self.kept));
        assert_eq!(shown[..self.kept], journal[..self.kept]);
        let after = journal.iter().rposition(is_lost).unwrap() + 1;
        assert_eq!(shown[after..], journal[after..]);
        for (event, saved) in shown.iter().zip(&journal) {
            assert_eq!(event["sequenceNumber"], saved["sequenceNumber"]);
            assert!(event == saved || is_lost(saved), "{event} {saved}");
        }
        drop(self.pair);
        journal
    }

    /// The other nodes are given the time to repeat what they kept.
    async fn until_it_is(&self, status: &str) {
        until_ready(&self.other, StatusCode::OK).await;
        self.other.wait_within(3 * PATIENCE, &self.id, |agent| agent["status"] == status).await;
    }
}

/// Nobody can repeat what was lost. Nothing else gets its numbers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_was_seen_is_not_used_again_if_its_node_dies_too() {
    let mut loss = Loss::of_the_primary_and_the_home().await;
    loss.until_it_is("interrupted").await;
    loss.home.start_again();
    super::nodes::until_its_processes_end(&loss.id).await;
    loss.judge().await;
}

/// It does not know how far it was. The agent prints on, and nothing of what it prints is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_was_seen_is_not_used_again_if_its_node_starts_again() {
    let mut loss = Loss::of_the_primary_and_the_home().await;
    loss.home.start_again();
    std::fs::write(&loss.hurry, "").unwrap();
    loss.until_it_is("completed").await;
    let journal = loss.judge().await;
    assert_eq!(text_of(&journal), numbers(20_000));
}
