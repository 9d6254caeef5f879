//! An agent that waits for a permission says so, everywhere and at any time.

use serde_json::{Value, json};

use crate::harness::TestServer;
use crate::questions::{asking, server};

/// Waits until this many permission requests of the agent are open, and returns the agent.
async fn until_open(server: &TestServer, id: &str, open: u64) -> Value {
    server.wait_until(id, |agent| agent["openQuestions"] == open).await
}

async fn inbox(server: &TestServer) -> Vec<Value> {
    server.get("/api/questions").await.as_array().unwrap().clone()
}

/// The line of `tokenrail ls` about the only agent.
fn listed(server: &TestServer) -> String {
    String::from_utf8(server.command(&["ls"]).output().unwrap().stdout).unwrap()
}

async fn answer(server: &TestServer, id: &str, option: &str) {
    let path = format!("/api/agents/{id}/permissions/1-1");
    let (status, told) = server.post(&path, &json!({ "optionId": option })).await;
    assert_eq!(status, 200, "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_waits_says_so_until_it_is_answered_and_after_a_crash_of_the_server() {
    let mut server = server("permission_timeout_s = 300\n");
    let id = asking(&server).await;
    let waits = until_open(&server, &id, 1).await;
    let events = server.events(&id).await;
    let asked = events.iter().find(|event| event["metadata"]["eventType"] == "permission_request").unwrap();
    let request = &asked["content"];
    assert_eq!(waits["waitingSince"], request["askedAt"]);
    let times = ["askedAt", "expiresAt"].map(|name| request[name].as_str().unwrap());
    let [from, until] = times.map(|time| time.parse::<jiff::Timestamp>().unwrap().as_millisecond());
    assert_eq!(until - from, 300_000, "{request}");

    let mut expected = request.clone();
    expected["agentId"] = json!(id);
    assert_eq!(expected["defaultOptionId"], "reject");
    assert_eq!(inbox(&server).await, [expected.clone()]);
    assert!(listed(&server).contains("  needs you     asking "), "{}", listed(&server));

    server.kill_and_start_again();
    let again = until_open(&server, &id, 1).await;
    assert_eq!(again["waitingSince"], waits["waitingSince"]);
    assert_eq!(inbox(&server).await, [expected]);

    answer(&server, &id, "allow").await;
    let ended = server.wait_until(&id, |agent| agent["status"] == "completed").await;
    assert_eq!((&ended["openQuestions"], ended.get("waitingSince")), (&json!(0), None));
    assert_eq!(inbox(&server).await, [] as [Value; 0]);
    assert!(listed(&server).contains("  completed     asking "), "{}", listed(&server));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_whose_request_times_out_or_is_cancelled_waits_no_more() {
    let server = server("permission_timeout_s = 2\n");
    let id = asking(&server).await;
    until_open(&server, &id, 1).await;
    until_open(&server, &id, 0).await;
    server.wait_for_status(&id, "completed").await;

    let id = asking(&server).await;
    until_open(&server, &id, 1).await;
    server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    until_open(&server, &id, 0).await;
    server.wait_until(&id, |agent| agent["endedAt"].is_string() && agent["openQuestions"] == 0).await;
}
