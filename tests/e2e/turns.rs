//! Several prompts, queued and resumed.

use reqwest::Method;
use serde_json::json;

use crate::harness::{TestServer, text_of};

#[tokio::test]
async fn messages_queue_and_resume_the_session() {
    let server = TestServer::start();
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 3, "gate": gate, "gate_after": 1 })).await;
    server.wait_for_status(&id, "running").await;
    let path = format!("/api/agents/{id}/messages");
    for (waiting, deltas) in [(1, 4), (2, 5)] {
        let prompt = json!({ "deltas": deltas }).to_string();
        let (status, accepted) = server.post(&path, &json!({ "content": prompt })).await;
        assert_eq!((status.as_u16(), &accepted["queued"]), (202, &json!(waiting)), "{accepted}");
        assert_eq!(accepted["turn"], waiting + 1);
    }
    std::fs::write(gate, "").unwrap();
    let agent = server.wait_until(&id, |agent| agent["turn"] == 3 && agent["status"] == "completed").await;
    let events = server.events(&id).await;
    assert_eq!(text_of(&events), "0 1 2 0 1 2 3 0 1 2 3 4 ");
    let sessions: Vec<_> = events.iter().filter(|event| event["metadata"]["eventType"] == "init").collect();
    assert_eq!(sessions.len(), 3);
    for init in sessions {
        assert_eq!(init["metadata"]["data"]["session_id"], agent["sessionId"], "resumed");
    }
}

#[tokio::test]
async fn a_launch_with_a_key_happens_once() {
    let server = TestServer::start();
    let body = json!({ "type": "fake", "prompt": "{}" });
    let launch = |body: serde_json::Value| {
        server.request(Method::POST, "/api/agents").header("idempotency-key", "k-1").json(&body).send()
    };
    let first: serde_json::Value = launch(body.clone()).await.unwrap().json().await.unwrap();
    let again: serde_json::Value = launch(body).await.unwrap().json().await.unwrap();
    assert_eq!(first["agentId"], again["agentId"]);
    let other = launch(json!({ "type": "fake", "prompt": "other" })).await.unwrap();
    assert_eq!(other.status(), 422);
    assert_eq!(other.json::<serde_json::Value>().await.unwrap()["code"], "idempotency_mismatch");
    assert_eq!(server.get("/api/agents").await.as_array().unwrap().len(), 1);
}
