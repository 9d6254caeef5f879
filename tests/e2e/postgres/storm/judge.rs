//! What must be true whatever has happened.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::nodes::until_its_processes_end;
use super::PATIENCE;
use super::clients::Asked;
use super::cluster::Cluster;
use crate::harness::{TestServer, assert_dense, numbers, text_of};

/// The journal of an agent once it is at rest: its processes are gone, and all servers show the same, byte for byte.
pub(super) async fn journal(cluster: &Cluster, id: &str) -> Vec<Box<RawValue>> {
    let at_rest = |agent: &Value| {
        let status = agent["status"].as_str().unwrap();
        agent["queued"] == 0 && !["initializing", "running"].contains(&status)
    };
    for server in cluster.servers() {
        answer_that(server, &format!("/api/agents/{id}"), at_rest).await;
    }
    until_its_processes_end(id).await;
    let mut journals = Vec::new();
    for server in cluster.servers() {
        journals.push(events(server, id).await);
    }
    let bytes =
        |journal: &[Box<RawValue>]| journal.iter().map(|event| event.get().to_owned()).collect::<Vec<_>>();
    let last = journals.pop().expect("a server");
    for other in &journals {
        assert_eq!(bytes(other), bytes(&last), "{id}: all servers have the same journal");
    }
    last
}

/// No write has contradicted a journal, as far as this server knows. Returns whether it says so in time.
pub(super) async fn nothing_is_violated(server: &TestServer, patience: Duration) -> bool {
    let asked = server.request(Method::GET, "/metrics").timeout(patience).send().await;
    let Ok(answer) = asked else { return false };
    let Ok(metrics) = answer.text().await else { return false };
    let counted = metrics.lines().filter(|line| line.starts_with("tokenrail_invariant_violations_total"));
    let counted: Vec<&str> = counted.collect();
    assert!(counted.iter().all(|line| line.ends_with(" 0")), "{counted:?}");
    !counted.is_empty()
}

/// The first answer for which this holds. A request may fail while a server replaces connections to the database.
pub(super) async fn answer_that<T: DeserializeOwned>(
    server: &TestServer,
    path: &str,
    holds: impl Fn(&T) -> bool,
) -> T {
    let started = Instant::now();
    loop {
        let answer = server.request(Method::GET, path).send().await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a text");
        if status == StatusCode::OK {
            let answer = serde_json::from_str(&text).expect("JSON");
            if holds(&answer) {
                return answer;
            }
        }
        assert!(started.elapsed() < PATIENCE, "{path}: {status} {text}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Whether something is there. For a while after a failover, servers do not say that it is not.
pub(super) async fn status_of(server: &TestServer, path: &str) -> StatusCode {
    let started = Instant::now();
    loop {
        let status = server.request(Method::GET, path).send().await.expect("an answer").status();
        if status != StatusCode::SERVICE_UNAVAILABLE {
            return status;
        }
        assert!(started.elapsed() < PATIENCE, "{path}: {status}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn events(server: &TestServer, id: &str) -> Vec<Box<RawValue>> {
    let mut events: Vec<Box<RawValue>> = Vec::new();
    loop {
        let path = format!("/api/agents/{id}/events?since={}", events.len());
        let page: Vec<Box<RawValue>> = answer_that(server, &path, |_| true).await;
        if page.is_empty() {
            return events;
        }
        events.extend(page);
    }
}

/// Each prompt that was accepted is one turn: it began at most once, and has one result. Only a turn whose end was not
/// its own has less than its whole text. Returns what the turns came to.
pub(super) fn each_turn_is_as_it_was_asked(
    cluster: &Cluster,
    journal: &[Box<RawValue>],
    asked: &[Asked],
) -> Vec<String> {
    let events: Vec<Value> =
        journal.iter().map(|event| serde_json::from_str(event.get()).expect("JSON")).collect();
    assert_dense(&events);
    let is = |event: &Value, kind: &str| event["metadata"]["eventType"] == kind;
    let turns: Vec<&[Value]> = events.split_inclusive(|event| is(event, "result")).collect();
    assert_eq!(turns.len(), asked.len(), "as many turns as prompts");
    let mut outcomes = Vec::new();
    for (number, (turn, asked)) in (1..).zip(turns.into_iter().zip(asked)) {
        let prompts: Vec<&Value> = turn.iter().filter(|event| is(event, "user_message")).collect();
        assert_eq!(prompts.len(), 1, "turn {number} has one prompt");
        assert_eq!(
            (&prompts[0]["content"], &prompts[0]["metadata"]["turn"]),
            (&asked.prompt.as_str().into(), &number.into())
        );
        let result = &turn.last().expect("a result")["metadata"];
        assert_eq!((&result["eventType"], &result["turn"]), (&"result".into(), &number.into()));
        let starts = std::fs::read_to_string(&asked.starts).unwrap_or_default().lines().count();
        assert!(starts <= 1, "the prompt of turn {number} ran {starts} times");
        let (text, whole) = (text_of(turn), numbers(asked.deltas));
        assert!(whole.starts_with(&text), "turn {number}: {text}");
        let code = result["error"]["code"].as_str().unwrap_or("-");
        let outcome = result["outcome"].as_str().unwrap();
        match outcome {
            "completed" => assert_eq!((starts, text), (1, whole), "turn {number}"),
            "cancelled" => assert!(asked.cancelled, "nobody cancelled turn {number}"),
            "interrupted" => {
                let may_be = code == "node_lost" || cluster.may_be_unstarted(outcome, code, !text.is_empty());
                assert!(may_be, "turn {number}: {result}");
            }
            _ => panic!("turn {number}: {result}"),
        }
        outcomes.push(if code == "-" { outcome.to_owned() } else { format!("{outcome} ({code})") });
    }
    outcomes
}
