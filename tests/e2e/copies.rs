//! Copies of an agent's history: the record of a turn, a file, an import, and a reparse.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::harness::{TestServer, numbers, text_of};

fn run(server: &TestServer, args: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = server.command(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

async fn ended(server: &TestServer, script: Value) -> String {
    server.launch_to_completion(&script).await
}

/// The parts in which a copy equals its original.
fn told(events: &[Value]) -> Vec<Value> {
    let parts =
        |event: &Value| json!([event["sequenceNumber"], event["type"], event["content"], event["raw"]]);
    events.iter().map(parts).collect()
}

async fn raw_events(server: &TestServer, id: &str) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    loop {
        let page = server.get(&format!("/api/agents/{id}/events?raw=true&since={}", events.len())).await;
        match page.as_array().unwrap() {
            page if page.is_empty() => return events,
            page => events.extend_from_slice(page),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_of_a_turn_holds_every_line_that_the_agent_has_printed() {
    let server = TestServer::start();
    let id = ended(&server, json!({ "deltas": 700, "mode": "half_utf8" })).await;
    let record = server.get(&format!("/api/agents/{id}/turns/1")).await;
    assert_eq!((&record["agentType"], &record["outcome"]), (&json!("fake"), &json!("completed")));
    assert_eq!(record["agentResult"]["outcome"], "completed");
    let raw = record["rawAgentMessages"].as_array().unwrap();
    assert!(700 < raw.len(), "{}", raw.len());
    assert_eq!(raw[0]["type"], "system", "the first line, as JSON");
    assert_eq!(raw.last().unwrap()["type"], "result");
    let broken: Vec<_> = raw.iter().filter_map(|line| line["hex"].as_str()).collect();
    assert_eq!(broken.len(), 1, "bytes that are no text");
    assert!(broken[0].starts_with("7b22"), "{broken:?}");
    let messages = record["messages"].as_array().unwrap();
    for pair in messages.windows(2) {
        assert_eq!(pair[1]["metadata"]["parentId"], pair[0]["id"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_moves_to_another_server_as_a_file() {
    let (server, other) = (TestServer::start(), TestServer::start());
    let id = ended(&server, json!({ "deltas": 1500, "mode": "half_utf8" })).await;
    let file = server.folder.path().join("agent.json");
    let path = file.to_str().unwrap();
    let (code, _, said) = run(&server, &["export", &id, "-o", path]);
    assert_eq!(code, 0, "{said}");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else reads it");
    let (code, _, said) = run(&server, &["export", &id, "-o", path]);
    assert_eq!(code, 1, "a file that is there stays: {said}");

    let (code, printed, said) = run(&other, &["import", path]);
    assert_eq!(code, 0, "{said}");
    let copy = printed.trim();
    assert_eq!(raw_events(&other, copy).await.len(), raw_events(&server, &id).await.len());
    assert_eq!(told(&raw_events(&other, copy).await), told(&raw_events(&server, &id).await));
    let (code, exported, _) = run(&other, &["export", copy]);
    assert_eq!(code, 0);
    // The path of its working folder contains the id too.
    let expected = std::fs::read_to_string(&file).unwrap().replacen(&id, copy, 1);
    assert!(exported == expected, "the same file but for the id");
    let (status, refused) =
        other.post(&format!("/api/agents/{copy}/messages"), &json!({ "content": "{}" })).await;
    assert_eq!((status, &refused["code"]), (StatusCode::CONFLICT, &json!("agent_read_only")));

    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() / 2]).unwrap();
    let (code, _, said) = run(&other, &["import", path]);
    assert_eq!(code, 1);
    assert!(said.contains("validation_failed") && said.contains("events/"), "{said}");
    assert_eq!(other.get("/api/agents").await.as_array().unwrap().len(), 1, "nothing is left of it");
    let (code, report, _) = run(&other, &["doctor", "--json"]);
    assert!(
        report.lines().any(|line| line.contains("\"database\"") && line.contains("\"ok\"")),
        "{code}: {report}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_survives_a_crash_of_the_server() {
    let mut server = TestServer::start();
    let id = ended(&server, json!({ "deltas": 300, "pace_us": 5000 })).await;
    let (status, replay) = server.post(&format!("/api/agents/{id}/replay"), &json!({ "speed": 1 })).await;
    assert_eq!((status, &replay["replayOf"]), (StatusCode::CREATED, &json!(id)), "{replay}");
    let copy = replay["agentId"].as_str().unwrap().to_owned();
    server.wait_until(&copy, |agent| 20 < agent["head"].as_u64().unwrap()).await;
    server.kill_and_start_again();
    server.wait_for_status(&copy, "completed").await;
    let events = raw_events(&server, &copy).await;
    assert_eq!(told(&events), told(&raw_events(&server, &id).await));
    assert_eq!(text_of(&events), numbers(300));

    let (code, shown, said) = run(&server, &["replay", &id, "--speed", "0"]);
    assert_eq!(code, 0, "{said}");
    assert!(shown.contains("0 1 2 3") && shown.contains("— completed"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_lines_are_read_again_without_a_server() {
    let mut server = TestServer::start();
    let id = ended(&server, json!({ "deltas": 50, "mode": "tool" })).await;
    let cut = server.launch(&json!({ "deltas": 5, "mode": "no_result" })).await;
    server.wait_for_status(&cut, "failed").await;
    let (code, _, said) = run(&server, &["reparse", "--all"]);
    assert_eq!(code, 1);
    assert!(said.contains("in use"), "a server runs: {said}");
    let events = server.events(&id).await;
    // As if an older version had parsed one delta differently.
    let file = server.folder.path().join("old.json");
    let (_, exported, _) = run(&server, &["export", &id]);
    let old = exported.replacen("\"text\":\"7 \"", "\"text\":\"sieben \"", 1);
    assert_ne!(old, exported);
    std::fs::write(&file, old).unwrap();
    let (code, copy, said) = run(&server, &["import", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    let copy = copy.trim().to_owned();
    server.stop();

    let (code, shown, said) = run(&server, &["reparse", &id]);
    assert_eq!(code, 0, "{said}");
    assert!(shown.contains("no changes"), "{shown}");
    let (code, shown, _) = run(&server, &["reparse", "--all"]);
    assert_eq!(code, 1, "{shown}");
    assert!(
        shown.contains("sieben") && shown.contains("of 3 agents: 1 would change; nothing saved"),
        "{shown}"
    );
    let (code, shown, _) = run(&server, &["reparse", &copy, "--apply", "--json"]);
    assert_eq!(code, 0, "{shown}");
    let last: Value = serde_json::from_str(shown.lines().last().unwrap()).unwrap();
    assert_eq!((&last["changed"], &last["refused"], &last["applied"]), (&json!(1), &json!(0), &json!(true)));
    let (code, shown, _) = run(&server, &["reparse", "--all"]);
    assert_eq!((code, shown.contains("no changes")), (0, true), "{shown}");
    server.start_again();
    assert_eq!(told(&server.events(&copy).await), told(&events));
}
