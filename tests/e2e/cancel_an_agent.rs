//! A cancel leaves no process, however the agent reacts.

use std::time::Duration;

use serde_json::json;

use crate::harness::{TestServer, fake_config, no_process_is_left, outline, processes_of_agent};

const QUICK: &str = "[limits]\ncancel_grace_s = 1\nkill_grace_s = 2\n";
/// What a busy machine may need beyond the two grace periods. An agent that ignores signals takes the whole first one
/// and almost nothing of the second. So the real slack is larger than this, but a second full round would exceed it.
const SLACK: Duration = Duration::from_secs(3);
const CANCEL_GRACE: Duration = Duration::from_secs(8);
const KILL_GRACE: Duration = Duration::from_secs(2);

#[tokio::test]
async fn an_agent_that_ignores_signals_and_its_escaped_grandchild_are_gone() {
    let (cancel, kill) = (CANCEL_GRACE.as_secs(), KILL_GRACE.as_secs());
    let graces = format!("[limits]\ncancel_grace_s = {cancel}\nkill_grace_s = {kill}\n");
    let server = TestServer::start_with(&(fake_config() + &graces));
    let id = server.launch(&json!({ "mode": "ignore_term", "deltas": 5 })).await;
    server.wait_until(&id, |agent| 5 < agent["head"].as_u64().unwrap()).await;
    assert!(3 <= processes_of_agent(&id).len(), "supervisor, agent, grandchild");

    let asked = tokio::time::Instant::now();
    let (status, first) = server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    assert_eq!(status, 202);
    let (_, again) = server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    assert_eq!(first, again);
    server.wait_for_status(&id, "cancelled").await;
    let took = asked.elapsed();
    no_process_is_left(&id).await;
    assert!(took < CANCEL_GRACE + KILL_GRACE + SLACK, "{took:?}");
    let (_, late) = server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    assert_eq!(first, late);

    let events = server.events(&id).await;
    assert_eq!(outline(&events)[3..], ["content_delta", "reaped", "message", "result"]);
    assert_eq!(events[events.len() - 2]["metadata"]["outcome"], "cancelled");
}

#[tokio::test]
async fn a_delete_stops_the_agent_and_a_purge_removes_its_history() {
    let server = TestServer::start_with(&(fake_config() + QUICK));
    let id = server.launch(&json!({ "mode": "hang" })).await;
    server.wait_until(&id, |agent| 5 < agent["head"].as_u64().unwrap()).await;
    let path = format!("/api/agents/{id}");
    let delete = |path: String| server.request(reqwest::Method::DELETE, &path).send();
    assert_eq!(delete(path.clone()).await.unwrap().status(), 204);
    no_process_is_left(&id).await;
    assert_eq!(server.get("/api/agents").await, json!([]));
    assert_eq!(server.get("/api/agents?deleted=true").await[0]["agentId"], id);
    assert!(!server.events(&id).await.is_empty(), "its history can be read");

    assert_eq!(delete(format!("{path}?purge=true")).await.unwrap().status(), 204);
    assert_eq!(delete(path.clone()).await.unwrap().status(), 404);
    assert_eq!(server.request(reqwest::Method::GET, &path).send().await.unwrap().status(), 404);
}
