//! Kelpie's stream, as its document describes it, and what happens to an agent whose client disconnects.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::harness::{TestServer, fake_config, numbers};

fn start() -> TestServer {
    TestServer::start_with(&format!(
        "[server]\ndefault_agent = \"fake\"\n[limits]\ncancel_grace_s = 1\n{}",
        fake_config()
    ))
}

/// Creates an agent. Returns its id with and without the prefix.
async fn made(server: &TestServer) -> (String, String) {
    let (status, agent) = server.post("/v1/agents", &json!({ "name": "stream-test" })).await;
    assert_eq!((status.as_u16(), &agent["name"]), (200, &json!("stream-test")), "{agent}");
    let id = agent["id"].as_str().unwrap().to_owned();
    let bare = id.strip_prefix("agent-").unwrap().to_owned();
    (id, bare)
}

async fn say(server: &TestServer, id: &str, query: &str, script: &Value) -> Response {
    let path = format!("/v1/agents/{id}/messages/stream{query}");
    let body = json!({ "role": "user", "content": script.to_string() });
    let answer = server.request(Method::POST, &path).json(&body).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    answer
}

/// Reads until the answer contains this text.
async fn read_until(answer: &mut Response, wanted: &str) {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        let chunk = answer.chunk().await.unwrap();
        seen.push_str(std::str::from_utf8(&chunk.expect("more")).unwrap());
    }
}

/// The named frames of a stream.
fn named(text: &str) -> Vec<(&str, Value)> {
    let frames = text.split("\n\n").filter_map(|block| {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        Some((field("event: ")?, serde_json::from_str(field("data: ")?).unwrap()))
    });
    frames.collect()
}

#[tokio::test]
async fn an_agent_is_made_without_a_prompt_and_its_first_message_is_streamed() {
    let server = start();
    let (id, bare) = made(&server).await;
    let agent = server.get(&format!("/api/agents/{bare}")).await;
    assert_eq!((&agent["status"], &agent["turn"]), (&json!("completed"), &json!(0)));

    let text = say(&server, &id, "", &json!({ "mode": "tool", "deltas": 4 })).await.text().await.unwrap();
    let frames = named(&text);
    let content: String = frames
        .iter()
        .filter(|(name, _)| *name == "message_chunk")
        .map(|(_, data)| data["content"].as_str().unwrap())
        .collect();
    assert_eq!(content, numbers(4));
    let names: Vec<_> =
        frames.iter().map(|(name, _)| *name).filter(|name| *name != "message_chunk").collect();
    assert_eq!(names, ["tool_call_start", "tool_call_complete", "message_complete"]);
    assert_eq!(frames[0].1["tool_name"], "Bash");
    assert_eq!(frames[0].1["tool_call_id"], frames[1].1["tool_call_id"]);
    assert!(text.ends_with("data: [DONE]\n\n"));
    assert!(text.contains("\"message_type\":\"assistant_message\""), "Letta's frames are there too");

    let kelpie = say(&server, &id, "?format=kelpie", &json!({})).await.text().await.unwrap();
    assert!(!kelpie.contains("message_type"));
    assert_eq!(server.get(&format!("/api/agents/{bare}")).await["turn"], 2);
}

#[tokio::test]
async fn a_turn_is_cancelled_when_its_client_goes_if_that_was_asked_for() {
    let server = start();
    for (query, body) in
        [("?cancelOnDisconnect=true", json!({})), ("", json!({ "cancel_on_disconnect": true }))]
    {
        let (id, bare) = made(&server).await;
        let script = json!({ "mode": "hang", "deltas": 3 });
        let path = format!("/v1/agents/{id}/messages/stream{query}");
        let mut body = body;
        body["content"] = json!(script.to_string());
        let mut answer = server.request(Method::POST, &path).json(&body).send().await.unwrap();
        read_until(&mut answer, "\"content\":\"2 \"").await;
        drop(answer);
        server.wait_for_status(&bare, "cancelled").await;
    }
}

#[tokio::test]
async fn an_agent_runs_on_when_its_client_goes_and_did_not_ask() {
    let server = start();
    let (id, bare) = made(&server).await;
    let gate = server.folder.path().join("gate");
    let script = json!({ "deltas": 6, "gate": gate, "gate_after": 3 });
    let mut answer = say(&server, &id, "", &script).await;
    read_until(&mut answer, "\"content\":\"2 \"").await;
    drop(answer);
    std::fs::write(gate, "").unwrap();
    server.wait_for_status(&bare, "completed").await;
    let history = server.get(&format!("/v1/agents/{id}/messages?order=asc")).await;
    assert_eq!(history[1]["content"], numbers(6));
}

/// A run that waits for its gate in the middle. Returns its id and the gate.
async fn gated(server: &TestServer, bare: &str, number: u32) -> (String, std::path::PathBuf) {
    let gate = server.folder.path().join(format!("gate-{number}"));
    let script = json!({ "deltas": 6, "gate": gate, "gate_after": 3 });
    let (status, sent) =
        server.post(&format!("/api/agents/{bare}/messages"), &json!({ "content": script.to_string() })).await;
    assert_eq!((status.as_u16(), &sent["turn"]), (202, &json!(number)), "{sent}");
    (format!("run-{bare}-{number}"), gate)
}

async fn outcomes(server: &TestServer, bare: &str) -> Vec<String> {
    let turns = server.get(&format!("/api/agents/{bare}/turns")).await;
    turns.as_array().unwrap().iter().map(|turn| turn["status"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn who_cancels_one_run_cancels_no_other() {
    let server = start();
    let (id, bare) = made(&server).await;
    let (one, first_gate) = gated(&server, &bare, 1).await;
    server.wait_until(&bare, |agent| 3 < agent["head"].as_u64().unwrap()).await;
    let (two, _) = gated(&server, &bare, 2).await;
    let (three, _) = gated(&server, &bare, 3).await;
    let (four, last_gate) = gated(&server, &bare, 4).await;
    // Cancels queued runs, with each of the available endpoints.
    let named = json!({ "run_ids": [two] });
    let (_, cancelled) = server.post(&format!("/v1/agents/{id}/messages/cancel"), &named).await;
    assert_eq!(cancelled, json!({ two: "cancelled" }));
    let (status, _) = server.post(&format!("/v1/runs/{three}/cancel"), &json!({})).await;
    assert_eq!(status.as_u16(), 200);
    std::fs::write(first_gate, "").unwrap();
    server.wait_until(&bare, |agent| agent["turn"] == 4 && agent["status"] == "running").await;
    // Stops a run that has already ended.
    let (status, _) = server.post(&format!("/api/chat/{one}/stop"), &json!({})).await;
    assert_eq!(status.as_u16(), 202);
    std::fs::write(last_gate, "").unwrap();
    server.wait_until(&bare, |agent| agent["turn"] == 4 && agent["endedAt"].is_string()).await;
    assert_eq!(
        outcomes(&server, &bare).await,
        ["completed", "cancelled", "cancelled", "completed"],
        "{four}"
    );
}

#[tokio::test]
async fn a_server_that_is_stopped_has_not_been_left_by_its_clients() {
    let mut server = start();
    let (id, bare) = made(&server).await;
    let gate = server.folder.path().join("gate");
    let script = json!({ "deltas": 6, "gate": gate, "gate_after": 3 });
    let mut answer = say(&server, &id, "?cancelOnDisconnect=true", &script).await;
    read_until(&mut answer, "\"content\":\"2 \"").await;
    assert!(server.stop().success());
    drop(answer);
    server.start_again();
    std::fs::write(gate, "").unwrap();
    server.wait_until(&bare, |agent| agent["endedAt"].is_string()).await;
    assert_eq!(outcomes(&server, &bare).await, ["completed"]);
}
