//! What the server has confirmed or begun is completed, even if the server is killed in the middle of it.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::harness::{PATIENCE, TestServer, fake_config, no_process_is_left, outline, processes_of_agent};

/// Long enough for a kill in between.
const SLOW: &str = "[limits]\ncancel_grace_s = 4\nkill_grace_s = 2\n";

async fn until_gone(id: &str) {
    let started = tokio::time::Instant::now();
    while !processes_of_agent(id).is_empty() {
        assert!(started.elapsed() < PATIENCE, "it never ended");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The events after the current message.
fn ends(events: &[Value]) -> Vec<(String, Value)> {
    let named = events.iter().map(|event| (event["metadata"]["eventType"].as_str().unwrap(), event));
    let ends = named.filter(|(name, _)| ["user_message", "result"].contains(name)).skip(1);
    ends.map(|(name, event)| (name.to_owned(), event["metadata"]["outcome"].clone())).collect()
}

/// Writes to a FIFO. Its reader may have ended already, and the server may have removed the run.
fn tell(fifo: &Path, command: &str) {
    use std::os::unix::fs::OpenOptionsExt as _;
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    match fs::OpenOptions::new().write(true).custom_flags(nonblock).open(fifo) {
        Ok(mut fifo) => fifo.write_all(command.as_bytes()).unwrap(),
        Err(error) => {
            let over = [rustix::io::Errno::NXIO, rustix::io::Errno::NOENT];
            assert!(over.map(|errno| Some(errno.raw_os_error())).contains(&error.raw_os_error()), "{error}");
        }
    }
}

/// Kills the server right after it has confirmed a cancel. It starts again before or after the agent has ended.
async fn cancel_and_die(mode: &str, wait_for_end: bool) {
    let mut server = TestServer::start_with(&(fake_config() + SLOW));
    let id = server.launch(&json!({ "mode": mode, "deltas": 5 })).await;
    server.wait_until(&id, |agent| 5 < agent["head"].as_u64().unwrap()).await;
    server.post(&format!("/api/agents/{id}/messages"), &json!({ "content": "waits" })).await;
    let (status, answer) = server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    assert_eq!(status, 202);
    server.kill_9();
    if wait_for_end {
        // Send what the server tells the supervisor, because it may have died before it could.
        let control = server.data_dir().join(format!("runs/{id}-1/control"));
        tell(&control, "cancel 4000 2000\n");
        until_gone(&id).await;
    }
    server.start_again();
    let (_, again) = server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    assert_eq!(answer, again);
    server.wait_until(&id, |agent| agent["status"] == "cancelled" && agent["turn"] == 2).await;
    no_process_is_left(&id).await;
    let cancelled = |name: &str| (name.to_owned(), json!("cancelled"));
    let expected = [cancelled("result"), ("user_message".to_owned(), Value::Null), cancelled("result")];
    assert_eq!(ends(&server.events(&id).await), expected, "{mode}");
}

#[tokio::test]
async fn a_cancel_that_was_answered_holds_where_the_agent_ends_while_no_server_runs() {
    cancel_and_die("hang", true).await;
}

#[tokio::test]
async fn a_cancel_that_was_answered_holds_where_the_agent_still_runs() {
    cancel_and_die("ignore_term", false).await;
}

/// Begins a delete, and kills the server after the delete is saved, while the agent still runs.
async fn delete_and_die(server: &mut TestServer, id: &str, query: &str) {
    let path = format!("/api/agents/{id}");
    let delete = server.request(Method::DELETE, &format!("{path}{query}")).send();
    let delete = Handle::current().spawn(delete);
    server.wait_until(id, |agent| agent["deletedAt"].is_string()).await;
    assert!(!processes_of_agent(id).is_empty(), "it is being stopped");
    server.kill_9();
    assert!(delete.await.unwrap().is_err(), "it was not answered");
    server.start_again();
}

#[tokio::test]
async fn a_delete_that_has_begun_is_finished_after_a_kill() {
    let mut server = TestServer::start_with(&(fake_config() + SLOW));
    let id = server.launch(&json!({ "mode": "ignore_term", "deltas": 5 })).await;
    server.wait_until(&id, |agent| 5 < agent["head"].as_u64().unwrap()).await;
    delete_and_die(&mut server, &id, "").await;
    let agent = server.wait_until(&id, |agent| agent["status"] == "cancelled").await;
    assert!(agent["deletedAt"].is_string());
    no_process_is_left(&id).await;
    assert_eq!(outline(&server.events(&id).await).last().unwrap(), "result");
    assert_eq!(server.get("/api/agents").await, json!([]));
    assert!(server.data_dir().join("work").join(&id).is_dir(), "its folder stays");
}

#[tokio::test]
async fn a_purge_that_has_begun_is_finished_after_a_kill_and_leaves_what_is_not_ours() {
    let root = tempfile::tempdir().unwrap();
    let config = format!("{}cwd_roots = [{:?}]\n{SLOW}", fake_config(), root.path());
    let mut server = TestServer::start_with(&config);
    fs::write(root.path().join("mine"), "").unwrap();
    let prompt = json!({ "mode": "ignore_term", "deltas": 5 }).to_string();
    let given = json!({ "type": "fake", "prompt": prompt, "cwd": root.path() });
    let (_, given) = server.post("/api/agents", &given).await;
    let given = given["agentId"].as_str().unwrap().to_owned();
    let own = server.launch_as("fake", &prompt).await;
    for id in [&given, &own] {
        server.wait_until(id, |agent| 5 < agent["head"].as_u64().unwrap()).await;
    }
    let work = server.data_dir().join("work").join(&own);
    assert!(work.is_dir());
    for id in [&given, &own] {
        delete_and_die(&mut server, id, "?purge=true").await;
        let started = tokio::time::Instant::now();
        while server.request(Method::GET, &format!("/api/agents/{id}")).send().await.unwrap().status() != 404
        {
            assert!(started.elapsed() < PATIENCE, "it is never purged");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        no_process_is_left(id).await;
    }
    assert!(!work.exists(), "the folder that was made for it");
    assert!(root.path().join("mine").exists(), "a folder that was given is not ours to remove");
    assert_eq!(fs::read_dir(server.data_dir().join("runs")).unwrap().count(), 0);
    assert_eq!(server.get("/api/agents?deleted=true").await, json!([]));
}

#[tokio::test]
async fn whoever_follows_a_turn_that_is_cancelled_while_it_waits_sees_its_end() {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nrunning_agents = 1\n"));
    let first = server.launch(&json!({ "mode": "hang" })).await;
    server.wait_for_status(&first, "running").await;
    let id = server.launch_as("fake", "please").await;
    let follow = || {
        let request = server.request(Method::GET, &format!("/api/agents/{id}/events"));
        request.header("accept", "text/event-stream").send()
    };
    let stream = follow().await.unwrap();
    assert_eq!(stream.status(), 200);
    server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    let live = tokio::time::timeout(PATIENCE, stream.text()).await.expect("it ends").unwrap();
    assert!(live.contains("event: user_message") && live.contains("event: result"), "{live}");
    let later = follow().await.unwrap().text().await.unwrap();
    assert_eq!(live, later, "the history is the same");
    let agent = server.get(&format!("/api/agents/{id}")).await;
    assert_eq!((&agent["status"], &agent["queued"]), (&json!("cancelled"), &json!(0)));
}

#[tokio::test]
async fn a_run_that_no_agent_of_the_database_has_begun_is_ended_by_the_next_start() {
    let mut server = TestServer::start();
    let id = server.launch(&json!({ "mode": "ignore_term", "deltas": 5 })).await;
    server.wait_until(&id, |agent| 5 < agent["head"].as_u64().unwrap()).await;
    server.kill_9();
    for file in ["tokenrail.db", "tokenrail.db-wal", "tokenrail.db-shm"] {
        fs::remove_file(server.data_dir().join(file)).unwrap();
    }
    server.start_again();
    until_gone(&id).await;
    assert_eq!(fs::read_dir(server.data_dir().join("runs")).unwrap().count(), 0);
    assert!(server.data_dir().join("work").join(&id).is_dir(), "what it has worked on stays");
}

#[tokio::test]
async fn an_agent_that_never_ends_its_line_is_ended_by_the_limit_of_output() {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nspool_bytes = 1000000\n"));
    let gate = server.folder.path().join("never");
    let id = server.launch(&json!({ "mode": "no_newline", "mib": 64, "touch": gate })).await;
    let agent = server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
    assert_eq!((&agent["status"], &agent["error"]["code"]), (&json!("failed"), &json!("output_capped")));
}
