//! Agents that misbehave: the turn ends with a reason, and nothing that was printed is lost.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{PATIENCE, TestServer, fake_config, no_process_is_left, processes_of_agent, text_of};

const QUICK: &str =
    "[limits]\nresult_grace_s = 1\ncancel_grace_s = 1\nline_bytes = 1048576\nidle_timeout_s = 2\n";

async fn run(script: Value) -> (Value, Vec<Value>) {
    let server = TestServer::start_with(&(fake_config() + QUICK));
    let id = server.launch(&script).await;
    let agent = server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
    no_process_is_left(&id).await;
    let events = server.events(&id).await;
    assert_eq!(events.last().unwrap()["metadata"]["eventType"], "result", "the last word");
    (agent, events)
}

fn error_codes(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["metadata"]["error"]["code"].as_str()).collect()
}

#[tokio::test]
async fn an_exit_without_result_is_a_failure_whatever_the_exit_code() {
    for (script, expected) in [
        (json!({ "mode": "no_result", "deltas": 5 }), "exited with code 0"),
        (json!({ "mode": "crash", "code": 3, "deltas": 5 }), "exited with code 3"),
        (json!({ "mode": "crash", "signal": 9, "deltas": 5 }), "killed by signal 9"),
    ] {
        let (agent, events) = run(script).await;
        assert_eq!(agent["status"], "failed");
        let message = agent["error"]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
        assert_eq!(text_of(&events), "0 1 2 3 4 ", "what came is kept");
    }
}

#[tokio::test]
async fn what_a_program_complains_of_instead_of_an_answer_says_what_kind_of_error_it_is() {
    let complaint =
        "Error: thread/resume: thread/resume failed: no rollout found for thread id 1 (code -32600)";
    let server = TestServer::start_with(&format!(
        "[agents.fake]\nformat = \"codex\"\nprogram = \"/bin/sh\"\nargs = [\"-c\", \"echo '{complaint}' >&2; exit 1\"]\n"
    ));
    let id = server.launch(&json!("hello")).await;
    let agent = server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
    let error = &agent["error"];
    assert_eq!(
        (&error["class"], &error["code"]),
        (&json!("invalid_request"), &json!("no_result")),
        "{error}"
    );
    assert!(error["message"].as_str().unwrap().ends_with(complaint), "{error}");
}

#[tokio::test]
async fn an_agent_that_stops_its_supervisor_is_cancelled_all_the_same() {
    let agent = "[agents.fake]\nprogram = \"/bin/sh\"\nargs = [\"-c\", \"kill -STOP $PPID; sleep 600 & sleep 600\"]\n";
    let server = TestServer::start_with(&format!("{agent}{QUICK}"));
    let id = server.launch(&json!("hello")).await;
    server.wait_for_status(&id, "running").await;
    let started = Instant::now();
    while !a_process_is_stopped(&id) {
        assert!(started.elapsed() < PATIENCE, "the supervisor of {id} goes on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    server.wait_for_status(&id, "cancelled").await;
    no_process_is_left(&id).await;
}

fn a_process_is_stopped(id: &str) -> bool {
    let state = |pid: &String| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    processes_of_agent(id).iter().any(|pid| state(pid).contains(") T "))
}

#[tokio::test]
async fn an_agent_that_hangs_after_its_result_has_completed_and_is_ended() {
    let (agent, events) = run(json!({ "mode": "result_then_hang", "deltas": 3 })).await;
    assert_eq!((&agent["status"], text_of(&events).as_str()), (&json!("completed"), "0 1 2 "));
}

#[tokio::test]
async fn a_silent_agent_is_ended_with_the_timers_code() {
    let (agent, events) = run(json!({ "mode": "hang", "deltas": 3 })).await;
    assert_eq!(agent["status"], "failed");
    assert_eq!(error_codes(&events).first(), Some(&"idle_timeout"));
}

#[tokio::test]
async fn a_line_that_is_too_long_is_reported_and_the_rest_is_read() {
    let (agent, events) = run(json!({ "mode": "long_line", "mib": 2, "deltas": 4 })).await;
    assert_eq!(agent["status"], "completed");
    assert_eq!(error_codes(&events), ["line_too_long"]);
    assert_eq!(text_of(&events), "0 1 2 3 ");
}

#[tokio::test]
async fn output_without_a_line_end_does_not_fill_the_memory() {
    let (agent, events) = run(json!({ "mode": "no_newline", "mib": 300 })).await;
    assert_eq!(agent["status"], "failed");
    assert!(error_codes(&events).contains(&"line_too_long"), "{:?}", error_codes(&events));
}

#[tokio::test]
async fn a_last_line_that_is_cut_is_no_result() {
    let (agent, events) = run(json!({ "mode": "partial_last_line", "deltas": 4 })).await;
    assert_eq!(agent["status"], "failed");
    assert_eq!(text_of(&events), "0 1 2 3 ");
}

#[tokio::test]
async fn half_a_character_is_one_replacement_character() {
    let (agent, events) = run(json!({ "mode": "half_utf8", "deltas": 2 })).await;
    assert_eq!(agent["status"], "completed");
    let shown = |event: &Value| event["content"].as_str().is_some_and(|text| text.contains('\u{fffd}'));
    assert!(events.iter().any(shown), "it is shown");
    assert_eq!(text_of(&events), "0 1 ", "and the agent's own whole message has the last word");
}

#[tokio::test]
async fn an_agent_sees_what_the_configuration_gives_it_and_no_more() {
    let config =
        fake_config().replace("pass_env = [\"PATH\"]", "pass_env = [\"PATH\"]\nenv = { COLOUR = \"blue\" }");
    let server = TestServer::start_with(&config);
    let id =
        server.launch_as("fake", &(json!({ "mode": "env_dump" }).to_string() + "\nthe secret prompt")).await;
    server.wait_for_status(&id, "completed").await;
    let seen: Value = serde_json::from_str(&text_of(&server.events(&id).await)).unwrap();
    let mut names: Vec<_> = seen["env"].as_object().unwrap().keys().cloned().collect();
    names.sort();
    assert_eq!(names, ["COLOUR", "PATH", "TOKENRAIL_RUN"]);
    let cwd = seen["cwd"].as_str().unwrap();
    assert!(cwd.ends_with(&format!("/work/{id}")), "{cwd}");
    assert!(!seen["cmdline"].to_string().contains("secret"), "{}", seen["cmdline"]);
    assert!(seen["umask"].to_string().contains("77"), "{}", seen["umask"]);
}
