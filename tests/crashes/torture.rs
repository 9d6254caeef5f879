//! Agents that torture their server, one mode each: the turn ends with a reason, no process is left, and the server's
//! memory does not grow.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{TestServer, fake_config, numbers, processes_of_agent, text_of};
use crate::judge;
use crate::memory::{forget_the_peak, memory_kib, peak_kib};

/// How much the server's memory may grow in any mode, at its peak.
const GROWTH_KIB_MAX: u64 = 32 << 10;

const QUICK: &str = "[limits]\nresult_grace_s = 1\ncancel_grace_s = 1\nkill_grace_s = 2\nidle_timeout_s = 6\n\
    stream_timeout_s = 3\n";

/// The result of an agent.
struct Tortured {
    agent: Value,
    events: Vec<Value>,
}

impl Tortured {
    fn status(&self) -> &str {
        self.agent["status"].as_str().unwrap()
    }

    /// Why the turn failed.
    fn reason(&self) -> &str {
        self.agent["error"]["message"].as_str().unwrap()
    }

    fn codes(&self) -> Vec<&str> {
        self.events.iter().filter_map(|event| event["metadata"]["error"]["code"].as_str()).collect()
    }
}

/// Runs the agent until it ends by itself or by a timer.
async fn endure(script: Value) -> Tortured {
    endure_and(script, async |_, _| ()).await
}

/// As [`endure`], with an action meanwhile.
async fn endure_and(script: Value, meanwhile: impl AsyncFnOnce(&TestServer, &str)) -> Tortured {
    endure_with(QUICK, script, meanwhile).await
}

async fn endure_with(
    limits: &str,
    script: Value,
    meanwhile: impl AsyncFnOnce(&TestServer, &str),
) -> Tortured {
    endure_prompt(limits, &script, "", meanwhile).await
}

/// The script is the first line of the prompt.
async fn endure_prompt(
    limits: &str,
    script: &Value,
    more: &str,
    meanwhile: impl AsyncFnOnce(&TestServer, &str),
) -> Tortured {
    let mut server = TestServer::start_with(&(fake_config() + limits));
    // The costs of the server's first agent do not count as growth: threads, statements, code that is loaded.
    let first = server.launch_to_completion(&json!({ "deltas": 2000 })).await;
    server.events(&first).await;
    let before = memory_kib(&server);
    forget_the_peak(&server);

    let id = server.launch_as("fake", &format!("{script}\n{more}")).await;
    meanwhile(&server, &id).await;
    let started = tokio::time::Instant::now();
    let agent = loop {
        let agent = server.get(&format!("/api/agents/{id}")).await;
        if agent["endedAt"].is_string() {
            break agent;
        }
        assert!(started.elapsed() < Duration::from_mins(2), "it never ends: {agent}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    no_process_is_left(&id).await;
    let grown = peak_kib(&server).saturating_sub(before);
    println!("{script}: {before} KiB before, {grown} KiB more at the highest");
    assert!(grown <= GROWTH_KIB_MAX, "{script}: {grown} KiB more than {before} KiB");

    let head = agent["head"].as_u64().unwrap();
    let since = head.saturating_sub(200);
    let events = server.get(&format!("/api/agents/{id}/messages?since={since}")).await;
    let events = events.as_array().unwrap().clone();
    let last = &events.last().unwrap()["metadata"];
    assert_eq!(last["eventType"], "result", "{script}: the last word");
    assert_eq!(last["outcome"], agent["status"], "{script}");
    assert_eq!(last["error"], agent["error"], "{script}");
    let reason = agent["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(!reason.is_empty(), agent["status"] == "failed", "{script}: who has failed says why: {agent}");
    assert_eq!(server.request(Method::GET, "/readyz").send().await.unwrap().status(), 200);
    assert!(server.stop().success());
    judge::database_is_sound(&server.data_dir(), &script.to_string());
    Tortured { agent, events }
}

/// The supervisor first records that all other processes are gone, and then exits too.
async fn no_process_is_left(id: &str) {
    let started = tokio::time::Instant::now();
    loop {
        let left = processes_of_agent(id);
        if left.is_empty() {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(5), "they are left: {left:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn cancelled(server: &TestServer, id: &str) {
    server.wait_until(id, |agent| 5 < agent["head"].as_u64().unwrap()).await;
    server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
}

#[tokio::test]
async fn one_gibibyte_without_a_line_end() {
    let end = endure(json!({ "mode": "no_newline", "mib": 1024 })).await;
    assert_eq!(end.status(), "failed");
    assert!(end.codes().contains(&"line_too_long"), "{:?}", end.codes());
}

#[tokio::test]
async fn a_flood_as_fast_as_a_disk_takes_it() {
    let end = endure(json!({ "mode": "flood", "mib": 512 })).await;
    assert_eq!(end.status(), "completed");
}

#[tokio::test]
async fn a_flood_on_standard_error() {
    let end = endure(json!({ "mode": "stderr_flood", "mib": 256, "deltas": 5 })).await;
    assert_eq!((end.status(), text_of(&end.events)), ("completed", numbers(5)));
}

#[tokio::test]
async fn many_tiny_lines_that_mean_nothing() {
    let end = endure(json!({ "mode": "tiny_lines", "mib": 3, "deltas": 5 })).await;
    assert_eq!((end.status(), text_of(&end.events)), ("completed", numbers(5)));
}

#[tokio::test]
async fn signals_are_ignored_and_a_grandchild_escapes_with_the_output() {
    let end = endure_and(json!({ "mode": "ignore_term" }), cancelled).await;
    assert_eq!(end.status(), "cancelled");
}

#[tokio::test]
async fn a_daemon_is_left_behind_that_holds_the_output() {
    let end = endure(json!({ "mode": "daemon", "deltas": 5 })).await;
    assert_eq!((end.status(), text_of(&end.events)), ("completed", numbers(5)));
}

#[tokio::test]
async fn two_hundred_processes_with_sessions_of_their_own() {
    let end = endure_and(json!({ "mode": "many_processes" }), cancelled).await;
    assert_eq!(end.status(), "cancelled");
}

#[tokio::test]
async fn processes_that_are_born_as_fast_as_they_are_found() {
    let end = endure_and(json!({ "mode": "hoppers" }), cancelled).await;
    assert_eq!(end.status(), "cancelled");
}

#[tokio::test]
async fn it_stops_itself() {
    let end = endure(json!({ "mode": "stop_itself" })).await;
    assert_eq!(end.status(), "failed");
    assert_eq!(end.codes().first(), Some(&"stream_timeout"));
}

#[tokio::test]
async fn it_closes_its_output_and_lives_on() {
    let end = endure(json!({ "mode": "close_stdout" })).await;
    assert_eq!(end.status(), "failed");
    assert_eq!(end.codes().first(), Some(&"stream_timeout"));
}

#[tokio::test]
async fn it_closes_its_input_at_once() {
    let script = json!({ "mode": "close_stdin", "deltas": 5 });
    let end = endure_prompt(QUICK, &script, &"x".repeat(400_000), async |_, _| ()).await;
    assert_eq!((end.status(), text_of(&end.events)), ("completed", numbers(5)));
}

#[tokio::test]
async fn it_ends_with_code_0_and_no_result() {
    let end = endure(json!({ "mode": "no_result", "deltas": 5 })).await;
    assert_eq!((end.status(), text_of(&end.events)), ("failed", numbers(5)));
    assert!(end.reason().contains("exited with code 0 without a result"), "{}", end.reason());
}

#[tokio::test]
async fn it_hangs_after_its_result() {
    let end = endure(json!({ "mode": "result_then_hang", "deltas": 5 })).await;
    assert_eq!((end.status(), text_of(&end.events)), ("completed", numbers(5)));
}

#[tokio::test]
async fn it_dies_by_a_signal_in_the_middle_of_a_message() {
    for signal in [6, 9, 11] {
        let end = endure(json!({ "mode": "crash", "signal": signal, "deltas": 5 })).await;
        assert_eq!((end.status(), text_of(&end.events)), ("failed", numbers(5)), "{signal}");
        assert!(end.reason().contains(&format!("was killed by signal {signal}")), "{}", end.reason());
    }
}

#[tokio::test]
async fn a_line_that_is_cut_inside_a_character_at_each_place() {
    for cut in 1..=3 {
        let end = endure(json!({ "mode": "half_utf8", "cut": cut, "deltas": 3 })).await;
        assert_eq!((end.status(), text_of(&end.events)), ("completed", numbers(3)), "{cut}");
    }
}

#[tokio::test]
async fn a_last_line_of_64_kibibytes_that_is_cut() {
    let end = endure(json!({ "mode": "partial_last_line", "deltas": 24_000 })).await;
    assert_eq!((end.status(), text_of(&end.events)), ("failed", numbers(24_000)));
    assert!(end.reason().contains("without a result"), "{}", end.reason());
}

#[tokio::test]
async fn it_takes_much_memory_for_itself() {
    let end = endure_and(json!({ "mode": "memory", "mib": 256 }), cancelled).await;
    assert_eq!(end.status(), "cancelled");
}

/// Runs the agent in the middle of another agent's answer, which must stay complete.
async fn endure_beside_another(limits: &str, mut script: Value) -> Tortured {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    script["gate"] = json!(gate);
    script["gate_after"] = json!(5);
    let other = async |server: &TestServer, _: &str| {
        let id = server.launch(&json!({ "deltas": 1000, "pace_us": 2000 })).await;
        server.wait_until(&id, |agent| 5 < agent["head"].as_u64().unwrap()).await;
        std::fs::write(&gate, "").unwrap();
        server.wait_for_status(&id, "completed").await;
        assert_eq!(text_of(&server.events(&id).await), numbers(1000));
    };
    endure_with(&format!("[limits]\n{limits}"), script, other).await
}

#[tokio::test]
async fn a_fork_bomb_is_ended_and_another_agent_goes_on() {
    let end = endure_beside_another("agent_processes = 200\n", json!({ "mode": "fork_bomb" })).await;
    assert_eq!(end.status(), "failed");
    assert_eq!(end.codes().first(), Some(&"processes_capped"));
    let error = &end.agent["error"];
    println!("{error}");
    assert!(error["message"].as_str().unwrap().contains("limits.agent_processes (200)"), "{error}");
}

#[tokio::test]
async fn it_takes_more_memory_than_it_may_and_another_agent_goes_on() {
    let limits = format!("agent_memory_bytes = {}\n", 128 << 20);
    let end = endure_beside_another(&limits, json!({ "mode": "memory", "mib": 512 })).await;
    assert_eq!(end.status(), "failed");
    assert_eq!(end.codes().first(), Some(&"memory_capped"));
    let error = &end.agent["error"];
    assert!(error["message"].as_str().unwrap().contains("limits.agent_memory_bytes"), "{error}");
}

#[tokio::test]
async fn it_takes_less_memory_than_it_may() {
    let limits = format!("{QUICK}agent_memory_bytes = {}\n", 128 << 20);
    let end = endure_with(&limits, json!({ "mode": "memory", "mib": 64 }), cancelled).await;
    assert_eq!(end.status(), "cancelled");
}

#[tokio::test]
async fn it_writes_a_large_file_and_another_agent_goes_on() {
    let script = json!({ "mode": "disk", "mib": 256, "deltas": 10 });
    let end = endure_beside_another("", script).await;
    assert_eq!((end.status(), text_of(&end.events)), ("completed", numbers(10)));
}

#[tokio::test]
async fn it_opens_as_many_files_as_it_may_and_another_agent_goes_on() {
    let end = endure_beside_another("", json!({ "mode": "descriptors", "deltas": 10 })).await;
    assert_eq!((end.status(), text_of(&end.events)), ("completed", numbers(10)));
}
