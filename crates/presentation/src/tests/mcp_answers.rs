//! Answers that a person gives in the forms of an MCP client.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::harness::Harness;
use super::mcp;
use super::mcp_forms::{forms, wait};
use super::mcp_newest::{about, ask};

/// How long a wait may take that is about to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time limit of a call that returns earlier, however busy the machine is.
const LONG_MS: u32 = 30_000;

/// An agent that has asked so often, and the result that asks the person.
async fn asked(harness: &Harness, prompt: &str) -> (String, Value) {
    let id = mcp::launch(harness, prompt).await;
    let asked = wait(harness, &id, &json!({}), &forms()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    (id, asked)
}

fn requests(asked: &Value) -> Vec<&str> {
    let requests = asked["inputRequests"].as_object().expect("it asks");
    requests.keys().map(String::as_str).collect()
}

fn chosen(option: &str) -> Value {
    json!({"action": "accept", "content": {"option_id": option}})
}

fn reply(asked: &Value, responses: &Value) -> Value {
    json!({"requestState": asked["requestState"], "inputResponses": responses})
}

/// The requests that are settled, each with the option.
async fn settled(harness: &Harness, id: &str) -> Vec<(String, String)> {
    let events = harness.get(&format!("/api/agents/{id}/messages")).await.json();
    let resolved = |event: &&Value| event["metadata"]["eventType"] == "permission_resolved";
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let settled = events.as_array().unwrap().iter().filter(resolved).map(|event| &event["content"]);
    settled.map(|content| (text(&content["requestId"]), text(&content["optionId"]))).collect()
}

fn pairs(wanted: &[(&str, &str)]) -> Vec<(String, String)> {
    wanted.iter().map(|(id, option)| ((*id).to_owned(), (*option).to_owned())).collect()
}

#[actix_web::test]
async fn a_bad_answer_is_asked_for_again_and_the_others_are_given() {
    let harness = Harness::new();
    let (id, asked) = asked(&harness, "asks 2").await;
    assert_eq!(requests(&asked), ["1-1", "1-2"]);
    let responses = json!({"1-1": chosen("perhaps"), "1-2": chosen("yes")});
    let again = wait(&harness, &id, &reply(&asked, &responses), &forms()).await;
    assert_eq!(requests(&again), ["1-1"], "{again}");
    let message = again["inputRequests"]["1-1"]["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("Your answer was not accepted: option_id: not an option"), "{message}");
    assert!(message.ends_with("script asks: Write\n\n{}"), "{message}");
    let done = wait(&harness, &id, &reply(&again, &json!({"1-1": chosen("no")})), &forms()).await;
    assert_eq!(done["structuredContent"]["reason"], "ended", "{done}");
    assert_eq!(settled(&harness, &id).await, pairs(&[("1-2", "yes"), ("1-1", "no")]));
}

#[actix_web::test]
async fn a_note_counts_only_with_a_rejection() {
    let harness = Harness::new();
    let (id, asked) = asked(&harness, "asks 2").await;
    let with_note =
        |option: &str| json!({"action": "accept", "content": {"option_id": option, "note": "because"}});
    let responses = json!({"1-1": with_note("yes"), "1-2": with_note("no")});
    let done = wait(&harness, &id, &reply(&asked, &responses), &forms()).await;
    assert_eq!(done["structuredContent"]["reason"], "ended", "{done}");
    assert_eq!(settled(&harness, &id).await.len(), 2);
}

#[actix_web::test]
async fn one_who_declines_takes_the_option_that_rejects_or_none() {
    for (prompt, option) in [("asks 1", "no"), ("asks 1 must", "none")] {
        let harness = Harness::new();
        let (id, asked) = asked(&harness, prompt).await;
        let declined = reply(&asked, &json!({"1-1": {"action": "decline"}}));
        let done = wait(&harness, &id, &declined, &forms()).await;
        assert_eq!(done["structuredContent"]["reason"], "ended", "{done}");
        assert_eq!(settled(&harness, &id).await, pairs(&[("1-1", option)]), "{prompt}");
    }
}

#[actix_web::test]
async fn what_is_answered_is_not_asked_again_although_the_agent_is_slow() {
    let harness = Harness::with(|_, limits| limits.commands.answer_timeout = Duration::from_millis(1));
    let (id, mut asked) = asked(&harness, "asks 3 in vain").await;
    for (answered, left) in [("1-1", &["1-2", "1-3"][..]), ("none", &["1-2", "1-3"]), ("1-3", &["1-2"])] {
        let mut responses = json!({});
        responses[answered] = chosen("yes");
        asked = wait(&harness, &id, &reply(&asked, &responses), &forms()).await;
        assert_eq!(requests(&asked), left, "{answered}");
    }
}

#[actix_web::test]
async fn eight_are_asked_at_once_and_then_the_ninth() {
    let harness = Harness::new();
    let (id, asked) = asked(&harness, "asks 9").await;
    assert_eq!(requests(&asked).len(), 8);
    let responses: Value =
        requests(&asked).iter().map(|request| ((*request).to_owned(), chosen("yes"))).collect();
    let last = wait(&harness, &id, &reply(&asked, &responses), &forms()).await;
    assert_eq!(requests(&last), ["1-9"]);
    let done = wait(&harness, &id, &reply(&last, &json!({"1-9": chosen("no")})), &forms()).await;
    assert_eq!(done["structuredContent"]["reason"], "ended", "{done}");
}

#[actix_web::test]
async fn the_answer_of_somebody_who_was_faster_counts() {
    let harness = Harness::new();
    let (id, asked) = asked(&harness, "asks 2").await;
    let first = json!({"agent_id": id, "request_id": "1-1", "option_id": "no"});
    mcp::tool(&harness, "answer_permission", &first).await;
    let responses = json!({"1-1": chosen("yes"), "1-2": chosen("yes")});
    let done = wait(&harness, &id, &reply(&asked, &responses), &forms()).await;
    assert_eq!(done["structuredContent"]["reason"], "ended", "{done}");
    assert_eq!(settled(&harness, &id).await, pairs(&[("1-1", "no"), ("1-2", "yes")]));
}

#[actix_web::test]
async fn an_answer_counts_even_if_the_call_no_longer_offers_forms() {
    let harness = Harness::new();
    let (id, asked) = asked(&harness, "asks 1").await;
    let given = reply(&asked, &json!({"1-1": chosen("yes")}));
    let done = wait(&harness, &id, &given, &json!({})).await;
    assert_eq!(done["structuredContent"]["reason"], "ended", "{done}");
}

#[actix_web::test]
async fn the_time_of_a_wait_includes_its_answers() {
    let harness = Harness::with(|_, limits| limits.commands.answer_timeout = Duration::from_hours(1));
    let (id, asked) = asked(&harness, "asks 2 in vain").await;
    let responses = json!({"1-1": chosen("yes"), "1-2": chosen("yes")});
    let mut call = reply(&asked, &responses);
    call["name"] = json!("wait_for_agent");
    call["arguments"] = json!({"agent_id": id, "timeout_ms": 1});
    let call = about(call, &forms());
    let over = timeout(PATIENCE, ask(&harness, "tools/call", &call)).await.expect("it ends");
    let result = &over["result"]["structuredContent"];
    assert_eq!(result["reason"], "timeout", "{over}");
    assert_eq!(result["open_requests"].as_array().unwrap().len(), 2, "the agent is slow: {result}");
}

#[actix_web::test]
async fn a_person_is_asked_even_if_the_page_is_full() {
    let harness = Harness::new();
    let long = "x".repeat(3_000);
    let id = mcp::launch(&harness, &format!("asks 1 and say {long} end-of-it")).await;
    while !harness.get(&format!("/api/agents/{id}/messages")).await.text.contains("end-of-it\"") {
        tokio::task::yield_now().await;
    }
    let call = async |since: &Value, offers: &Value, timeout_ms: u32| {
        let arguments = json!({"agent_id": id, "since": since, "max_bytes": 1_000, "timeout_ms": timeout_ms});
        let params = about(json!({"name": "wait_for_agent", "arguments": arguments}), offers);
        ask(&harness, "tools/call", &params).await["result"].clone()
    };
    // The prompt alone fills the first page, and the words after the request the second.
    let mut since = json!(0);
    for _ in 0..2 {
        let asked = call(&since, &forms(), LONG_MS).await;
        assert_eq!(requests(&asked), ["1-1"], "{since}");
        let told = call(&since, &json!({}), LONG_MS).await;
        assert_eq!(told["structuredContent"]["reason"], "page_full", "without forms: {told}");
        since = told["structuredContent"]["next_since"].clone();
    }
    // With a cursor that is past the request, somebody else has been asked.
    let later = call(&since, &forms(), 1).await;
    assert_eq!(later["resultType"], "complete", "{later}");
}
