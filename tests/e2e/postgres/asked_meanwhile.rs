//! Requests at another server shortly before, while and shortly after it takes the turns of a silent one.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use tokenrail_test_postgres::{ROLE, database};
use tokio::runtime::Handle;

use super::config;
use super::nodes::{LOST_AFTER_S, node, node_with, pid_of, results, until_its_processes_end};
use crate::follower::Place;
use crate::harness::{PATIENCE, TestServer, numbers, text_of};
use crate::questions;

/// What is done to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Message,
    Cancel,
    Answer,
    Delete,
    Purge,
}

const DEEDS: [Deed; 5] = [Deed::Message, Deed::Cancel, Deed::Answer, Deed::Delete, Deed::Purge];

/// How many agents each deed is done to, one after the other, beginning so long before the owner may be declared lost.
const TIMES: u32 = 6;
const BEFORE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(600);

impl Deed {
    /// Launches an agent whose turn does not end by itself.
    async fn launch(self, home: &TestServer) -> String {
        match self {
            Self::Answer => home.launch_as("asking", "Clean up").await,
            _ => home.launch(&json!({ "mode": "hang", "deltas": 3 })).await,
        }
    }

    fn request(self, id: &str) -> (Method, String, Value) {
        let path = format!("/api/agents/{id}");
        let prompt = json!({ "deltas": 3 }).to_string();
        match self {
            Self::Message => (Method::POST, path + "/messages", json!({ "content": prompt })),
            Self::Cancel => (Method::POST, path + "/cancel", json!({})),
            Self::Answer => (Method::POST, path + "/permissions/1-1", json!({ "optionId": "allow" })),
            Self::Delete => (Method::DELETE, path, Value::Null),
            Self::Purge => (Method::DELETE, path + "?purge=true", Value::Null),
        }
    }

    /// Asks until the answer is not that it may work later.
    async fn ask(self, place: Place, id: String) -> (StatusCode, Value) {
        let (method, path, body) = self.request(&id);
        let started = Instant::now();
        loop {
            let url = format!("http://{}{path}", place.authority);
            let mut request = place.http.request(method.clone(), url).bearer_auth(&place.token);
            if self == Self::Message {
                request = request.header("idempotency-key", &id);
            }
            if !body.is_null() {
                request = request.json(&body);
            }
            let answer = request.send().await.expect("an answer");
            let (status, text) = (answer.status(), answer.text().await.expect("a text"));
            let said: Value = serde_json::from_str(&text).unwrap_or_default();
            if said["retryable"] != true {
                return (status, said);
            }
            assert!(started.elapsed() < PATIENCE, "{self:?}: {said}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// It worked as at the owner, as far as the turn had not ended with it.
    async fn has_worked(self, servers: [&TestServer; 2], id: &str, answer: (StatusCode, Value)) {
        let (status, said) = answer;
        let lost = ("interrupted", "node_lost");
        match self {
            Self::Answer => {
                let code = said["code"].as_str().unwrap_or_default();
                let too_late = ["already_resolved", "not_found"].contains(&code);
                assert!(status == StatusCode::ACCEPTED || too_late, "{status} {said}");
            }
            _ => assert!(status.is_success(), "{self:?}: {status} {said}"),
        }
        until_its_processes_end(id).await;
        if self == Self::Purge {
            for server in servers {
                let answer = server.request(Method::GET, &format!("/api/agents/{id}")).send().await.unwrap();
                assert_eq!(answer.status(), StatusCode::NOT_FOUND);
            }
            return;
        }
        let turns = if self == Self::Message { 2 } else { 1 };
        for server in servers {
            server.wait_until(id, |agent| agent["turn"] == turns && agent["endedAt"].is_string()).await;
            let is_deleted = server.get(&format!("/api/agents/{id}")).await["deletedAt"].is_string();
            assert_eq!(is_deleted, self == Self::Delete, "{id}");
        }
        let events = servers[0].events(id).await;
        assert_eq!(servers[1].events(id).await, events);
        match (self, &results(&events)[..]) {
            // Queued before the takeover, or accepted when the owner was back.
            (Self::Message, [first, second]) => {
                assert!(*first == lost && (*second == lost || *second == ("completed", "-")), "{second:?}");
            }
            // Nobody could know that its processes had ended.
            (_, [only]) => assert_eq!(*only, lost, "{self:?}"),
            (_, all) => panic!("{self:?}: {all:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_at_another_server_works_during_a_takeover() {
    let database = database();
    let config = config(&database) + &questions::block();
    let (home, other) = (node_with(config.clone(), "home"), node_with(config, "other"));
    let mut agents = Vec::new();
    for (deed, _) in DEEDS.into_iter().flat_map(|deed| (0..TIMES).map(move |time| (deed, time))) {
        agents.push((deed, deed.launch(&home).await));
    }
    for (deed, id) in &agents {
        let begun = |agent: &Value| match deed {
            Deed::Answer => agent["openQuestions"] == 1,
            _ => 3 < agent["head"].as_u64().unwrap(),
        };
        other.wait_until(id, begun).await;
    }
    kill_process(pid_of(&home), Signal::STOP).unwrap();
    let begin = tokio::time::Instant::now() + Duration::from_secs(LOST_AFTER_S) - BEFORE;
    let asked: Vec<_> = agents
        .iter()
        .zip((0..TIMES).cycle())
        .map(|((deed, id), time)| {
            let (deed, id, place) = (*deed, id.clone(), Place::of(&other));
            Handle::current().spawn(async move {
                tokio::time::sleep_until(begin + PAUSE * time).await;
                deed.ask(place, id).await
            })
        })
        .collect();
    tokio::time::sleep_until(begin + PAUSE * TIMES).await;
    for (deed, id) in &agents {
        if *deed != Deed::Purge {
            other.wait_until(id, |agent| agent["endedAt"].is_string()).await;
        }
    }
    kill_process(pid_of(&home), Signal::CONT).unwrap();
    for ((deed, id), asked) in agents.iter().zip(asked) {
        let answer = tokio::time::timeout(2 * PATIENCE, asked).await.expect("it is answered").unwrap();
        deed.has_worked([&home, &other], id, answer).await;
    }
}

/// The server starts anew, and fails each time when it has already begun to work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_fails_to_start_anew_does_not_disturb_its_next_try() {
    let database = database();
    let (home, other) = (node(&database, "home"), node(&database, "other"));
    let id = home.launch_to_completion(&json!({ "deltas": 3 })).await;
    let until_sql = async |query: &str, value: &str| {
        let started = Instant::now();
        while database.sql(query) != value {
            assert!(started.elapsed() < PATIENCE, "{query}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    kill_process(pid_of(&home), Signal::STOP).unwrap();
    until_sql("SELECT state FROM nodes WHERE name = 'home'", "lost").await;
    // What is to be purged is read last.
    let columns = database.sql(
        "SELECT string_agg(column_name, ', ') FROM information_schema.columns \
         WHERE table_name = 'agents' AND column_name <> 'to_purge'",
    );
    database
        .sql(&format!("REVOKE SELECT ON agents FROM {ROLE}; GRANT SELECT ({columns}) ON agents TO {ROLE}"));
    kill_process(pid_of(&home), Signal::CONT).unwrap();

    let hurry = home.folder.path().join("hurry");
    let starts = home.folder.path().join("starts");
    let script =
        json!({ "mode": "stream", "deltas": 2000, "pace_us": 5000, "hurry": hurry, "log_start": starts });
    let (path, body) = (format!("/api/agents/{id}/messages"), json!({ "content": script.to_string() }));
    let started = Instant::now();
    while other.post(&path, &body).await.0 != StatusCode::ACCEPTED {
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let times: u64 = database.sql("SELECT incarnation FROM nodes WHERE name = 'home'").parse().unwrap();
    let again = format!("SELECT {} <= incarnation FROM nodes WHERE name = 'home'", times + 4);
    until_sql(&again, "t").await;
    database.sql(&format!("GRANT SELECT ON agents TO {ROLE}"));
    std::fs::write(&hurry, "").unwrap();
    other.wait_until(&id, |agent| agent["turn"] == 2 && agent["endedAt"].is_string()).await;
    let events = other.events(&id).await;
    assert_eq!(results(&events), [("completed", "-"); 2]);
    assert_eq!(text_of(&events), format!("{}{}", numbers(3), numbers(2000)));
    assert_eq!(std::fs::read_to_string(starts).unwrap().lines().count(), 1);
}
