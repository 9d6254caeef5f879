//! Launches that run on another server than the one that was asked.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokenrail_test_postgres::{Database, database};

use super::config;
use super::nodes::{node, node_with};
use crate::harness::{PATIENCE, TestServer, no_process_is_left, numbers, text_of};

async fn launched(server: &TestServer, body: &Value) -> (StatusCode, Value) {
    let mut launch = json!({ "type": "fake", "prompt": json!({ "deltas": 3 }).to_string() });
    launch.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    server.post("/api/agents", &launch).await
}

/// A server with these limits.
fn limited(database: &Database, name: &str, limits: &str) -> TestServer {
    node_with(format!("{}[limits]\n{limits}\n", config(database)), name)
}

/// Waits until a server knows the other one and its agent types.
pub(super) async fn until_it_knows(server: &TestServer, node: &str) -> String {
    let started = Instant::now();
    loop {
        let (status, answer) = launched(server, &json!({ "node": node })).await;
        if status == StatusCode::CREATED {
            return answer["agentId"].as_str().unwrap().to_owned();
        }
        assert!(status == StatusCode::UNPROCESSABLE_ENTITY && started.elapsed() < PATIENCE, "{answer}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launch_may_name_its_server() {
    let database = database();
    let (first, second) = (node(&database, "first"), node(&database, "second"));
    let id = until_it_knows(&first, "second").await;
    first.wait_for_status(&id, "completed").await;
    let agent = first.get(&format!("/api/agents/{id}")).await;
    assert_eq!(agent["node"], "second");
    let cwd = std::path::PathBuf::from(agent["cwd"].as_str().unwrap());
    assert!(cwd.starts_with(second.data_dir()) && cwd.is_dir(), "{}", cwd.display());
    assert_eq!(text_of(&first.events(&id).await), numbers(3));
    let (status, problem) = launched(&first, &json!({ "node": "third" })).await;
    assert_eq!((status, &problem["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("node_unknown")));
    let prompt = json!({ "deltas": 3 }).to_string();
    let run = ["run", "--type", "fake", "--node", "second", "--detach", "--json", &prompt];
    let output = first.command(&run).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(said["node"], "second", "{said}");
    first.wait_for_status(said["agentId"].as_str().unwrap(), "completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launch_at_a_full_server_runs_on_the_first_one_with_a_free_place() {
    let database = database();
    let (first, second) = (
        limited(&database, "first", "running_agents = 1"),
        limited(&database, "second", "running_agents = 1"),
    );
    let warm = until_it_knows(&first, "second").await;
    first.wait_for_status(&warm, "completed").await;
    let hang = json!({ "mode": "hang", "deltas": 3 });
    let full = first.launch(&hang).await;
    first.wait_until(&full, |agent| 3 < agent["head"].as_u64().unwrap()).await;
    let there = first.launch(&hang).await;
    first.wait_until(&there, |agent| 3 < agent["head"].as_u64().unwrap()).await;
    assert_eq!(first.get(&format!("/api/agents/{there}")).await["node"], "second");

    let waits = second.launch(&json!({ "deltas": 3 })).await;
    let agent = first.get(&format!("/api/agents/{waits}")).await;
    assert_eq!((agent.get("node"), &agent["cwd"], &agent["queued"]), (None, &json!(""), &json!(1)));
    second.post(&format!("/api/agents/{full}/cancel"), &json!({})).await;
    first.wait_for_status(&waits, "completed").await;
    let agent = second.get(&format!("/api/agents/{waits}")).await;
    assert_eq!(agent["node"], "first");
    let events = second.events(&waits).await;
    assert_eq!(text_of(&events), numbers(3), "once");
    second.post(&format!("/api/agents/{there}/cancel"), &json!({})).await;
    second.wait_for_status(&there, "cancelled").await;
    no_process_is_left(&there).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launch_that_no_server_has_taken_can_be_deleted() {
    let database = database();
    let limits = "running_agents = 1\nqueued_launches = 1";
    let (first, second) = (limited(&database, "first", limits), limited(&database, "second", limits));
    let warm = until_it_knows(&first, "second").await;
    first.wait_for_status(&warm, "completed").await;
    let mut full = Vec::new();
    for server in [&first, &second] {
        let id = server.launch(&json!({ "mode": "hang", "deltas": 3 })).await;
        server.wait_until(&id, |agent| 3 < agent["head"].as_u64().unwrap()).await;
        full.push(id);
    }
    let waits = first.launch(&json!({ "deltas": 3 })).await;
    for server in [&first, &second] {
        let (status, problem) = launched(server, &json!({})).await;
        let expected = (StatusCode::SERVICE_UNAVAILABLE, &json!("capacity_exhausted"));
        assert_eq!((status, &problem["code"]), expected, "one limit for both");
    }
    let path = format!("/api/agents/{waits}?purge=true");
    let answer = second.request(reqwest::Method::DELETE, &path).send().await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    for id in full {
        second.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
        second.wait_for_status(&id, "cancelled").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn launches_in_a_minute_are_counted_on_all_servers_together() {
    let database = database();
    let limits = "launches_per_minute = 4";
    let (first, second) = (limited(&database, "first", limits), limited(&database, "second", limits));
    for server in [&first, &second, &first, &second] {
        server.launch_to_completion(&json!({ "deltas": 3 })).await;
    }
    // A launch more may fit by now, if these took long.
    let mut refused = Vec::new();
    for server in [&first, &second, &first, &second] {
        refused.push(launched(server, &json!({})).await);
    }
    let refused: Vec<_> = refused.iter().filter(|(status, _)| *status != StatusCode::CREATED).collect();
    assert!(2 <= refused.len(), "{refused:?}");
    assert!(refused.iter().all(|(status, _)| *status == StatusCode::TOO_MANY_REQUESTS), "{refused:?}");
}
