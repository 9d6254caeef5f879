//! Permission requests, answered over REST and WebSocket.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, serve};
use super::harness::Harness;

/// An agent that has sent a permission request. Returns its id.
async fn asking(harness: &Harness, prompt: &str) -> String {
    let id = harness.launch(prompt).await;
    while question(harness, &id).await.is_none() {
        tokio::task::yield_now().await;
    }
    id
}

async fn question(harness: &Harness, id: &str) -> Option<Value> {
    let events = harness.get(&format!("/api/agents/{id}/messages")).await.json();
    let events = events.as_array().unwrap().iter();
    events.clone().find(|event| event["metadata"]["eventType"] == "permission_request").cloned()
}

fn path(id: &str, question: &str) -> String {
    format!("/api/agents/{id}/permissions/{question}")
}

#[actix_web::test]
async fn a_question_is_an_event_and_its_first_answer_counts() {
    let harness = Harness::new();
    let id = asking(&harness, "ask").await;
    let asked = question(&harness, &id).await.unwrap();
    assert_eq!((&asked["type"], &asked["role"]), (&json!("system"), &json!("system")));
    assert_eq!(asked["content"], json!({"requestId": "1-1", "toolName": "Write"}));

    let answered = harness.post(&path(&id, "1-1"), r#"{"optionId":"yes"}"#).await;
    assert_eq!(answered.status, 200, "{answered:?}");
    assert_eq!(answered.json(), json!({"requestId": "1-1", "state": "selected", "optionId": "yes"}));
    let again = harness.post(&path(&id, "1-1"), r#"{"optionId":"yes"}"#).await;
    assert_eq!((again.status.as_u16(), again.problem().as_str()), (409, "already_resolved"));
    harness.ended(&id).await;
    let again = harness.post(&path(&id, "1-1"), r#"{"optionId":"no"}"#).await;
    assert_eq!((again.status.as_u16(), again.problem().as_str()), (409, "already_resolved"));
}

#[actix_web::test]
async fn what_is_no_answer_is_refused_and_leaves_the_question_open() {
    let harness = Harness::new();
    let id = asking(&harness, "ask").await;
    for (body, code) in [
        ("{}", "validation_failed"),
        (r#"{"optionId":"maybe"}"#, "validation_failed"),
        (r#"{"optionId":"yes","cancelled":true}"#, "validation_failed"),
        (r#"{"cancelled":false}"#, "validation_failed"),
        (r#"{"optionId":7}"#, "validation_failed"),
        (r#"{"optionIds":[]}"#, "validation_failed"),
        (r#"{"optionIds":["yes","yes"]}"#, "validation_failed"),
        (r#"{"optionIds":"yes"}"#, "validation_failed"),
        (r#"{"optionIds":["yes"],"optionId":"yes"}"#, "validation_failed"),
        (r#"{"optionIds":["yes"],"cancelled":true}"#, "validation_failed"),
        (r#"{"text":" "}"#, "validation_failed"),
        (r#"{"text":"x","cancelled":true}"#, "validation_failed"),
        (r#"{"note":"x"}"#, "validation_failed"),
        (r#"{"note":"x","cancelled":true}"#, "validation_failed"),
        (r#"{"optionId":"no","note":""}"#, "validation_failed"),
        ("", "malformed_json"),
    ] {
        let refused = harness.post(&path(&id, "1-1"), body).await;
        assert_eq!(refused.problem(), code, "{body}");
    }
    for unknown in ["1-2", "9-1", "x", "%F0%9F%99%82"] {
        let refused = harness.post(&path(&id, unknown), r#"{"cancelled":true}"#).await;
        assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (404, "not_found"), "{unknown}");
    }
    let answered = harness.post(&path(&id, "1-1"), r#"{"optionId":"yes"}"#).await;
    assert_eq!(answered.status, 200, "{answered:?}");
}

#[actix_web::test]
async fn what_the_request_does_not_accept_is_refused_with_the_field_and_what_to_do() {
    let harness = Harness::with(|_, limits| limits.commands.answer_text_bytes = 8);
    let id = asking(&harness, "ask").await;
    for (body, pointer, words) in [
        (r#"{"optionId":"no","note":"why"}"#, "/note", "accepts no note; answer without it"),
        (r#"{"text":"mine"}"#, "/text", "accepts no text; send one of its options"),
        (r#"{"optionIds":["yes","no"]}"#, "/optionIds", "accepts only one answer"),
        (r#"{"text":"nine long"}"#, "/text", "at most 8 bytes long (limits.answer_text_bytes)"),
        (r#"{"optionId":"no","note":"nine long"}"#, "/note", "at most 8 bytes long"),
    ] {
        let refused = harness.post(&path(&id, "1-1"), body).await;
        assert_eq!(refused.status, 422, "{body}");
        let errors = refused.json()["errors"].clone();
        assert_eq!(errors[0]["pointer"], pointer, "{body}");
        assert!(errors[0]["detail"].as_str().unwrap().contains(words), "{errors}");
    }
    let one = harness.post(&path(&id, "1-1"), r#"{"optionIds":["yes"]}"#).await;
    assert_eq!(
        one.json(),
        json!({"requestId": "1-1", "state": "selected", "optionId": "yes"}),
        "a list of one"
    );
}

#[actix_web::test]
async fn an_agent_that_does_not_take_its_answer_does_not_hold_up_the_client() {
    let harness = Harness::with(|_, limits| limits.commands.answer_timeout = Duration::from_millis(1));
    let id = asking(&harness, "ask in vain").await;
    let answered = harness.post(&path(&id, "1-1"), r#"{"cancelled":true}"#).await;
    assert_eq!(answered.status, 202, "{answered:?}");
    assert_eq!(answered.json(), json!({"requestId": "1-1", "state": "pending"}));
}

#[actix_web::test]
async fn a_websocket_answers_questions_too() {
    let harness = Harness::new();
    let served = serve(&harness);
    let id = asking(&harness, "ask").await;
    let (mut client, _) = Client::connect(&served, "").await;
    client.say("permission", json!({"agentId": id, "requestId": "1-1", "optionId": "maybe"})).await;
    let refused = client.frame().await;
    assert_eq!(refused["payload"]["code"], "validation_failed", "{refused}");
    client.say("permission", json!({"agentId": id, "requestId": "1-1", "optionId": "yes"})).await;
    let answered = client.frame().await;
    assert_eq!(answered["type"], "permission", "{answered}");
    assert_eq!(
        answered["payload"],
        json!({"agentId": id, "requestId": "1-1", "state": "selected", "optionId": "yes"})
    );
    client.say("permission", json!({"agentId": id, "requestId": "1-1", "cancelled": true})).await;
    assert_eq!(client.frame().await["payload"]["code"], "already_resolved");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn of_several_same_answers_at_the_same_moment_one_is_told_that_it_counts() {
    for _ in 0..10 {
        let harness = Harness::new();
        let served = serve(&harness);
        let id = asking(&harness, "ask").await;
        let (mut client, _) = Client::connect(&served, "").await;
        let (path, body) = (path(&id, "1-1"), r#"{"optionId":"yes"}"#);
        let over_socket = async {
            client.say("permission", json!({"agentId": id, "requestId": "1-1", "optionId": "yes"})).await;
            client.frame().await["type"].as_str().unwrap().to_owned()
        };
        let (one, two, three, frame) = futures_util::join!(
            harness.post(&path, body),
            harness.post(&path, body),
            harness.post(&path, body),
            over_socket
        );
        let mut told = [one, two, three].map(|answer| answer.status.as_u16());
        told.sort_unstable();
        let settled =
            told.iter().filter(|status| **status == 200).count() + usize::from(frame == "permission");
        assert_eq!(settled, 1, "{told:?} and {frame}");
        assert!(told.iter().all(|status| [200, 409].contains(status)), "{told:?}");
        served.handle.stop(false).await;
    }
}
