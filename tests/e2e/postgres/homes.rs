//! Agents of a model API, which keep nothing on the disk of their server: another one takes their next turn.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokenrail_test_postgres::{Database, database};

use super::config;
use super::nodes::{node_with, results};
use crate::harness::{PATIENCE, TestServer, no_process_is_left, until_no_process_is_left};
use crate::model_server::{Gate, ModelServer, Reply};

/// A server with an agent type whose model is that one.
fn server(database: &Database, model: &ModelServer, name: &str, on_stop: &str) -> TestServer {
    let mut config = config(database);
    let url = model.url();
    write!(
        config,
        "[agents.model]\nrunner = \"http\"\nformat = \"openai-chat\"\nbase_url = \"{url}/v1\"\nmodel = \"m\"\n\
         [cluster]\non_stop = \"{on_stop}\"\n"
    )
    .unwrap();
    node_with(config, name)
}

async fn send(server: &TestServer, id: &str, text: &str) -> (StatusCode, Value) {
    server.post(&format!("/api/agents/{id}/messages"), &json!({ "content": text })).await
}

async fn folder_of(server: &TestServer, id: &str) -> PathBuf {
    server.get(&format!("/api/agents/{id}")).await["cwd"].as_str().unwrap().into()
}

/// Waits until this turn has ended.
async fn until_ended(server: &TestServer, id: &str, turn: u64) {
    let is_over = |status: &Value| status != "initializing" && status != "running";
    server.wait_until(id, |agent| agent["turn"] == turn && is_over(&agent["status"])).await;
}

async fn until_node_is(server: &TestServer, name: &str, state: &str) {
    let started = Instant::now();
    loop {
        let nodes = server.get("/api/nodes").await;
        let nodes = nodes.as_array().unwrap();
        if nodes.iter().any(|node| node["name"] == name && node["state"] == state) {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{nodes:?}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_a_lost_server_goes_on_at_another_one() {
    let gate = Gate::new();
    let replies = [
        Reply::text(["one"]),
        Reply::text(["half"]).gated(&gate),
        Reply::text(["two"]),
        Reply::text(["three"]),
    ];
    let model = ModelServer::start_without_tools(replies);
    let database = database();
    let mut home = server(&database, &model, "home", "stay");
    let other = server(&database, &model, "other", "stay");
    let id = home.launch_as("model", "first").await;
    until_ended(&other, &id, 1).await;
    send(&home, &id, "second").await;
    model.request(2).await;
    send(&other, &id, "third").await;
    home.kill_9();

    until_ended(&other, &id, 3).await;
    let expected = [("completed", "-"), ("interrupted", "node_lost"), ("completed", "-")];
    assert_eq!(results(&other.events(&id).await), expected);
    // It had no answer to the second one, which the API must not see as a message of its own.
    let expected = ["user: first", "assistant: one", "user: second\n\nthird"];
    assert_eq!(model.request(3).await.conversation(), expected);
    let agent = other.get(&format!("/api/agents/{id}")).await;
    assert_eq!((&agent["node"], agent.get("nodeState")), (&json!("other"), None));
    let (status, answer) = send(&other, &id, "fourth").await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    until_ended(&other, &id, 4).await;
    // The run of the second turn has outlived its server, and ends when its model has answered.
    gate.open();
    until_no_process_is_left(&id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_agent_of_a_lost_server_takes_its_next_message_at_another_one() {
    let model = ModelServer::start_without_tools([Reply::text(["one"]), Reply::text(["two"])]);
    let database = database();
    let mut home = server(&database, &model, "home", "stay");
    let other = server(&database, &model, "other", "stay");
    let id = home.launch_as("model", "first").await;
    until_ended(&other, &id, 1).await;
    let folder = folder_of(&home, &id).await;
    assert!(folder.exists());
    home.kill_9();
    until_node_is(&other, "home", "lost").await;
    let (status, answer) = send(&other, &id, "second").await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    until_ended(&other, &id, 2).await;
    assert_eq!(results(&other.events(&id).await), [("completed", "-"); 2]);
    home.start_again();
    assert_eq!(home.get(&format!("/api/agents/{id}")).await["node"], "other");
    let started = Instant::now();
    while folder.exists() {
        assert!(started.elapsed() < PATIENCE, "its former home has not removed its folder");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(folder_of(&home, &id).await.exists(), "it has another one at its new home");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_leaves_ends_its_turns_and_another_one_goes_on_at_once() {
    let gate = Gate::new();
    let replies = [Reply::text(["one"]), Reply::text(["half"]).gated(&gate), Reply::text(["two"])];
    let model = ModelServer::start_without_tools(replies);
    let database = database();
    let mut home = server(&database, &model, "home", "leave");
    let other = server(&database, &model, "other", "leave");
    let id = home.launch_as("model", "first").await;
    until_ended(&other, &id, 1).await;
    let (running, process) =
        (home.launch_as("model", "hang").await, home.launch(&json!({ "mode": "hang", "deltas": 3 })).await);
    model.request(2).await;
    other.wait_until(&process, |agent| 3 < agent["head"].as_u64().unwrap()).await;
    assert!(home.stop().success());
    for agent in [&running, &process] {
        assert_eq!(results(&other.events(agent).await), [("interrupted", "node_stopped")]);
        no_process_is_left(agent).await;
    }
    let (status, answer) = send(&other, &id, "second").await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    until_ended(&other, &id, 2).await;
    let agent = other.get(&format!("/api/agents/{id}")).await;
    assert_eq!(agent["node"], "other");
    gate.open();
}
