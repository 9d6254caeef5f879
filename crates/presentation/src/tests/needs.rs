//! What agents need from a user, in lists, in lifecycle events, and as a list of its own.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, Heard, serve};
use super::harness::{Answer, Harness};

/// How long an agent may take until it asks.
const PATIENCE: Duration = Duration::from_secs(30);
const NOW: &str = "2026-11-21T22:10:00.000Z";

/// An agent whose permission request is open. Returns its id.
async fn asking(harness: &Harness, prompt: &str) -> String {
    let id = harness.launch(prompt).await;
    let waits = async {
        while harness.service.needs(id.parse().unwrap()).open_questions == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.expect("it waits");
    id
}

fn needs(agent: &Value) -> (&Value, Option<&Value>) {
    (&agent["openQuestions"], agent.get("waitingSince"))
}

fn items(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json().as_array().unwrap().clone()
}

#[actix_web::test]
async fn an_agent_that_waits_says_so_wherever_it_is_shown() {
    let harness = Harness::new();
    let id = asking(&harness, "ask").await;
    let paths = [format!("/api/agents/{id}"), "/api/agents".to_owned(), "/api/agents/active".to_owned()];
    let shown = async |path: &String| {
        let agent = harness.get(path).await.json();
        if agent.is_array() { agent[0].clone() } else { agent }
    };
    for path in &paths {
        assert_eq!(needs(&shown(path).await), (&json!(1), Some(&json!(NOW))), "{path}");
    }
    let path = format!("/api/agents/{id}/permissions/1-1");
    assert_eq!(harness.post(&path, r#"{"optionId":"yes"}"#).await.status, 200);
    harness.ended(&id).await;
    for path in &paths[..2] {
        assert_eq!(needs(&shown(path).await), (&json!(0), None), "{path}");
    }
    assert_eq!(items(&harness.get("/api/questions").await), [] as [Value; 0]);
}

#[actix_web::test]
async fn a_change_of_the_open_requests_is_news() {
    let harness = Harness::new();
    let served = serve(&harness);
    let (mut client, _) = Client::connect(&served, "").await;
    client.say("ping", json!({})).await;
    client.frame().await;
    let id = asking(&harness, "ask").await;
    harness.post(&format!("/api/agents/{id}/permissions/1-1"), r#"{"cancelled":true}"#).await;
    let mut news = Vec::new();
    while news.last().is_none_or(|news: &Value| news["status"] != "completed") {
        match client.hear().await {
            Heard::Frame(frame) if frame["type"] == "agent:updated" => news.push(frame["payload"].clone()),
            Heard::Frame(_) => {}
            other => panic!("{other:?}"),
        }
    }
    let update = |status: &str, open: u32| {
        let mut update = json!({"agentId": id, "status": status, "openQuestions": open, "timestamp": NOW});
        if 0 < open {
            update["waitingSince"] = json!(NOW);
        }
        update
    };
    let (first, last) = (news.first().unwrap(), news.last().unwrap());
    assert_eq!((first, last), (&update("running", 0), &update("completed", 0)));
    // A permission request puts an archived agent back into the lists, so the agent is also announced as edited.
    let mut asks = update("running", 1);
    asks["edited"] = json!(true);
    assert!(news.contains(&asks), "{news:?}");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn the_open_requests_of_all_agents_are_one_list() {
    let harness = Harness::new();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(asking(&harness, "ask").await);
    }
    let options = json!([
        {"optionId": "yes", "name": "yes", "kind": "allow_once"},
        {"optionId": "no", "name": "no", "kind": "allow_once"},
    ]);
    let first = json!({
        "agentId": ids[0], "requestId": "1-1", "toolName": "Write", "input": {"file_path": "a.txt"}, "options": options,
        "askedAt": NOW, "expiresAt": "2026-11-21T22:11:00.000Z", "defaultOptionId": "no",
    });
    assert_eq!(items(&harness.get("/api/questions").await)[0], first);

    let (mut at, mut seen) = (Some("/api/questions?limit=2".to_owned()), Vec::new());
    while let Some(path) = at.take() {
        let page = harness.get(&path).await;
        seen.extend(items(&page).into_iter().map(|item| item["agentId"].as_str().unwrap().to_owned()));
        let link = page.header("link").strip_prefix('<').map(str::to_owned);
        at = link.map(|link| link.strip_suffix(">; rel=\"next\"").unwrap().to_owned());
    }
    assert_eq!(seen, ids, "each once, from the oldest");
    for wrong in ["limit=0", "after=", "after=x", "after=1.2.3"] {
        let refused = harness.get(&format!("/api/questions?{wrong}")).await;
        assert_eq!(
            (refused.status.as_u16(), refused.problem().as_str()),
            (422, "validation_failed"),
            "{wrong}"
        );
    }
}

#[actix_web::test]
async fn a_listed_request_says_what_it_accepts_besides_one_option() {
    let harness = Harness::new();
    asking(&harness, "ask freely").await;
    let listed = items(&harness.get("/api/questions").await).remove(0);
    assert_eq!(listed["accepts"], json!({"note": true, "text": true}));
}

#[actix_web::test]
async fn an_input_that_is_too_long_for_a_list_is_left_out() {
    let harness = Harness::with(|_, limits| limits.lists.list_field_bytes = 8);
    asking(&harness, "ask").await;
    let listed = items(&harness.get("/api/questions").await).remove(0);
    assert_eq!((&listed["requestId"], listed.get("input")), (&json!("1-1"), None));
}
