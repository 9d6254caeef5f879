//! What a client asks of another server while the home of its agents is dead, and nobody has noticed that yet: it is
//! saved at once, and those who take the agents over carry it out.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use tokenrail_test_postgres::{Database, database};

use super::config;
use super::nodes::{LOST_AFTER_S, TOKEN, named, pid_of, results, until_it_serves, until_its_processes_end};
use crate::harness::{PATIENCE, TestServer, no_process_is_left};
use crate::questions;

/// How the home of the agents falls silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silence {
    /// Its process is killed, and started again in the end.
    Killed,
    /// Its process is stopped, and continues in the end.
    Stopped,
}

impl Silence {
    fn begin(self, home: &mut TestServer) {
        match self {
            Self::Killed => home.kill_9(),
            Self::Stopped => kill_process(pid_of(home), Signal::STOP).unwrap(),
        }
    }

    fn end(self, home: &mut TestServer) {
        match self {
            Self::Killed => home.start_again(),
            Self::Stopped => kill_process(pid_of(home), Signal::CONT).unwrap(),
        }
    }
}

/// One agent for each kind of request.
struct Agents {
    /// Gets a message while it works.
    working: String,
    /// Gets a message while it has nothing to do.
    idle: String,
    cancelled: String,
    /// Gets an answer to its permission request.
    asking: String,
    deleted: String,
    purged: String,
}

const INTERRUPTED: (&str, &str) = ("interrupted", "node_lost");

impl Agents {
    async fn launch(home: &TestServer, other: &TestServer) -> Self {
        let hang = async || {
            let id = home.launch(&json!({ "mode": "hang", "deltas": 3 })).await;
            other.wait_until(&id, |agent| 3 < agent["head"].as_u64().unwrap()).await;
            id
        };
        let asking = home.launch_as("asking", "Clean up").await;
        other.wait_until(&asking, |agent| agent["openQuestions"] == 1).await;
        Self {
            working: hang().await,
            idle: home.launch_to_completion(&json!({ "deltas": 3 })).await,
            cancelled: hang().await,
            asking,
            deleted: hang().await,
            purged: hang().await,
        }
    }

    /// Sends all requests at the same time. The deletes wait for the takeover, and the answer waits for its home.
    async fn ask_all(&self, server: &TestServer) {
        let say = json!({ "content": json!({ "deltas": 3 }).to_string() });
        let post = async |id: &str, what: &str, body: &Value| {
            let (status, answer) = server.post(&format!("/api/agents/{id}/{what}"), body).await;
            assert_eq!(status, StatusCode::ACCEPTED, "{what}: {answer}");
        };
        let delete = async |id: &str, query: &str| {
            let path = format!("/api/agents/{id}{query}");
            let answer = server.request(Method::DELETE, &path).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        };
        let allow = json!({ "optionId": "allow" });
        tokio::join!(
            post(&self.working, "messages", &say),
            post(&self.idle, "messages", &say),
            post(&self.cancelled, "cancel", &Value::Null),
            post(&self.asking, "permissions/1-1", &allow),
            delete(&self.deleted, ""),
            delete(&self.purged, "?purge=true"),
        );
    }

    /// Those of which something is left, with the ends of their turns. No prompt has run twice, or late.
    fn ends(&self) -> [(&str, Vec<(&str, &str)>); 5] {
        [
            (&self.working, vec![INTERRUPTED, INTERRUPTED]),
            (&self.idle, vec![("completed", "-"), INTERRUPTED]),
            (&self.cancelled, vec![INTERRUPTED]),
            (&self.asking, vec![INTERRUPTED]),
            (&self.deleted, vec![INTERRUPTED]),
        ]
    }

    fn all(&self) -> [&str; 6] {
        [&self.working, &self.idle, &self.cancelled, &self.asking, &self.deleted, &self.purged]
    }

    /// The journals of those of which something is left, and whether the right ones are listed.
    async fn seen_at(&self, server: &TestServer) -> Vec<Vec<Value>> {
        let mut seen = Vec::new();
        for (id, ends) in self.ends() {
            let events = server.events(id).await;
            assert_eq!(results(&events), ends, "{id}");
            seen.push(events);
        }
        let listed = server.get("/api/agents").await.to_string();
        let is_listed = self.all().map(|id| listed.contains(id));
        assert_eq!(is_listed, [true, true, true, true, false, false], "{listed}");
        let answer = server.request(Method::GET, &format!("/api/agents/{}", self.purged)).send().await;
        assert_eq!(answer.unwrap().status(), StatusCode::NOT_FOUND);
        seen
    }

    async fn until_all_have_ended(&self, server: &TestServer) {
        for id in [&self.working, &self.idle, &self.cancelled, &self.asking] {
            let is_over = |agent: &Value| agent["status"] == "interrupted" && agent["queued"] == 0;
            server.wait_until(id, is_over).await;
        }
    }
}

async fn until_rows_are(database: &Database, of: &str, count: &str) {
    let started = Instant::now();
    while database.sql(&format!("SELECT count(*) FROM {of}")) != count {
        assert!(started.elapsed() < PATIENCE, "there are not {count} rows of {of}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Answers a permission request. For a moment, a server may not know yet that the home is back.
async fn answer_late(server: &TestServer, id: &str) -> (StatusCode, Value) {
    let path = format!("/api/agents/{id}/permissions/1-1");
    let started = Instant::now();
    loop {
        let (status, answer) = server.post(&path, &json!({ "optionId": "allow" })).await;
        if answer["code"] != "node_unavailable" {
            return (status, answer);
        }
        assert!(started.elapsed() < PATIENCE, "{answer}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn all_is_done_once(silence: Silence) {
    let database = database();
    let node = |name| {
        // Everything is asked before anybody can declare the home lost.
        let config = named(config(&database) + &questions::block(), name);
        let patient = config.replace(&format!("lost_after_s = {LOST_AFTER_S}\n"), "lost_after_s = 15\n");
        TestServer::start_with_token(&patient, TOKEN)
    };
    let (mut home, other) = (node("home"), node("other"));
    let agents = Agents::launch(&home, &other).await;
    let folder = home.get(&format!("/api/agents/{}", agents.purged)).await["cwd"].clone();
    let folder = PathBuf::from(folder.as_str().unwrap());
    silence.begin(&mut home);
    agents.ask_all(&other).await;
    agents.until_all_have_ended(&other).await;
    until_rows_are(&database, "tombstones", "1").await;
    let seen = agents.seen_at(&other).await;
    let deleted = format!("/api/agents/{}", agents.deleted);
    let deleted_at = other.get(&deleted).await["deletedAt"].clone();
    assert!(deleted_at.is_string(), "{deleted_at}");

    silence.end(&mut home);
    for id in agents.all() {
        until_its_processes_end(id).await;
    }
    until_it_serves(&home).await;
    // It also finds what was asked of it while it was silent.
    until_rows_are(&database, "leftovers", "0").await;
    until_rows_are(&database, "inbox WHERE reply IS NULL", "0").await;
    assert!(!folder.exists(), "its home has removed its folder");
    for server in [&home, &other] {
        assert_eq!(agents.seen_at(server).await, seen);
        assert_eq!(server.get(&deleted).await["deletedAt"], deleted_at);
        let (status, problem) = answer_late(server, &agents.asking).await;
        assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("already_resolved")), "{problem}");
    }
    assert_eq!(database.sql("SELECT count(*) FROM tombstones"), "1");
    no_process_is_left(&agents.purged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_while_a_killed_server_is_taken_over_is_done_once() {
    all_is_done_once(Silence::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_while_a_stopped_server_is_taken_over_is_done_once() {
    all_is_done_once(Silence::Stopped).await;
}
