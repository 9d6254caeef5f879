//! What an agent asks reaches a person through a client of the Model Context Protocol that can show forms.

use serde_json::{Value, json};

use super::harness::Harness;
use super::mcp;
use super::mcp_newest::{about, ask};

pub(super) fn forms() -> Value {
    json!({"elicitation": {}})
}

/// The result of a wait of a client that offers this, with what it sends besides the arguments.
pub(super) async fn wait(harness: &Harness, id: &str, sent: &Value, offers: &Value) -> Value {
    let mut params = json!({"name": "wait_for_agent", "arguments": {"agent_id": id, "timeout_ms": 50_000}});
    for (name, value) in sent.as_object().unwrap() {
        params[name] = value.clone();
    }
    let response = ask(harness, "tools/call", &about(params, offers)).await;
    assert!(response["error"].is_null(), "{response}");
    response["result"].clone()
}

/// What a client sends back after `asked`.
pub(super) fn reply(asked: &Value, response: &Value) -> Value {
    json!({"requestState": asked["requestState"], "inputResponses": {"1-1": response}})
}

async fn asked(harness: &Harness) -> (String, Value) {
    let id = mcp::launch(harness, "ask and say hello").await;
    let asked = wait(harness, &id, &json!({}), &forms()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    (id, asked)
}

#[actix_web::test]
async fn a_person_fills_in_a_form_and_the_agent_goes_on() {
    let harness = Harness::new();
    let (id, asked) = asked(&harness).await;
    assert_eq!((&asked["content"], &asked["ttlMs"]), (&Value::Null, &Value::Null), "no result yet: {asked}");
    assert_eq!(asked["inputRequests"].as_object().unwrap().len(), 1);
    let request = &asked["inputRequests"]["1-1"];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(
        (&request["params"]["mode"], &request["params"]["message"]),
        (&json!("form"), &json!("script asks: Write\n\n{}"))
    );
    let schema = json!({
        "type": "object",
        "properties": {"option_id": {"type": "string", "title": "Answer", "oneOf": [{"const": "yes", "title": "Yes"}]}},
        "required": ["option_id"],
    });
    assert_eq!(request["params"]["requestedSchema"], schema);

    let chosen = json!({"action": "accept", "content": {"option_id": "yes", "note": "", "text": null}});
    let done = wait(&harness, &id, &reply(&asked, &chosen), &forms()).await;
    assert_eq!(done["resultType"], "complete", "{done}");
    let result = &done["structuredContent"];
    assert_eq!((&result["reason"], &result["open_requests"]), (&json!("ended"), &json!([])));
    let kinds: Vec<_> = result["entries"].as_array().unwrap().iter().map(|entry| &entry["kind"]).collect();
    assert_eq!(
        kinds,
        ["prompt", "permission_request", "text", "permission_resolved", "turn_end"],
        "all of it"
    );
    // A client that repeats its call, because the response was lost, gets the same.
    let again = wait(&harness, &id, &reply(&asked, &chosen), &forms()).await;
    assert_eq!(again["structuredContent"], *result);
}

#[actix_web::test]
async fn a_client_that_shows_no_forms_is_told_of_the_request() {
    let harness = Harness::new();
    let id = mcp::launch(&harness, "ask and say hello").await;
    for offers in [json!({}), json!({"elicitation": {"url": {}}}), json!({"sampling": {}})] {
        let told = wait(&harness, &id, &json!({}), &offers).await;
        assert_eq!(told["resultType"], "complete", "{told}");
        assert_eq!(told["structuredContent"]["reason"], "needs_answer");
        assert_eq!(told["structuredContent"]["open_requests"][0]["request_id"], "1-1");
    }
    assert_eq!(mcp::wait(&harness, &id, 0).await["reason"], "needs_answer", "an earlier version");
    for offers in [json!({"elicitation": {"form": {}}}), json!({"elicitation": {"form": {}, "url": {}}})] {
        let asked = wait(&harness, &id, &json!({}), &offers).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
    }
}

#[actix_web::test]
async fn a_person_who_declines_rejects_and_one_who_closes_the_form_decides_nothing() {
    let harness = Harness::new();
    let (id, asked) = asked(&harness).await;
    let closed = wait(&harness, &id, &reply(&asked, &json!({"action": "cancel"})), &forms()).await;
    assert_eq!(closed["structuredContent"]["reason"], "needs_answer", "the model is told: {closed}");
    assert_eq!(closed["structuredContent"]["open_requests"][0]["request_id"], "1-1");
    let declined = wait(&harness, &id, &reply(&asked, &json!({"action": "decline"})), &forms()).await;
    assert_eq!(declined["structuredContent"]["reason"], "ended", "the agent has its answer: {declined}");
}

#[actix_web::test]
async fn what_is_missing_is_asked_again() {
    let harness = Harness::new();
    let (id, asked) = asked(&harness).await;
    for sent in [
        json!({"requestState": asked["requestState"]}),
        json!({"requestState": asked["requestState"], "inputResponses": {}}),
        json!({"requestState": asked["requestState"], "inputResponses": {"2-2": {"action": "accept"}}}),
        reply(&asked, &json!({"action": "accept"})),
        reply(&asked, &json!({"action": "accept", "content": {}})),
        reply(&asked, &json!({"action": "accept", "content": {"option_id": " ", "note": "no"}})),
    ] {
        let again = wait(&harness, &id, &sent, &forms()).await;
        assert_eq!(again["resultType"], "input_required", "{sent}");
        assert_eq!(again["inputRequests"], asked["inputRequests"]);
    }
}

#[actix_web::test]
async fn what_a_client_sends_back_is_checked() {
    let harness = Harness::new();
    let (id, asked) = asked(&harness).await;
    let (other, _) = self::asked(&harness).await;
    let state = &asked["requestState"];
    let good = json!({"1-1": {"action": "accept", "content": {"option_id": "yes"}}});
    let tampered = format!("{}x", state.as_str().unwrap());
    for (agent, sent, field) in [
        (&id, json!({"inputResponses": good}), "requestState"),
        (&id, json!({"inputResponses": good, "requestState": tampered}), "requestState"),
        (&id, json!({"inputResponses": good, "requestState": "e30"}), "requestState"),
        (&id, json!({"inputResponses": good, "requestState": 1}), "requestState"),
        (&other, json!({"inputResponses": good, "requestState": state}), "requestState"),
        (&id, json!({"inputResponses": null, "requestState": state}), "inputResponses"),
        (&id, json!({"inputResponses": [], "requestState": state}), "inputResponses"),
        (&id, json!({"inputResponses": {"1-1": 12345}, "requestState": state}), "1-1"),
        (&id, json!({"inputResponses": {"1-1": {}}, "requestState": state}), "1-1/action"),
        (&id, json!({"inputResponses": {"1-1": {"action": "x"}}, "requestState": state}), "1-1/action"),
        (
            &id,
            reply(&asked, &json!({"action": "accept", "content": {"option_id": 1}})),
            "1-1/content/option_id",
        ),
    ] {
        let mut params = json!({"name": "wait_for_agent", "arguments": {"agent_id": agent}});
        for (name, value) in sent.as_object().unwrap() {
            params[name] = value.clone();
        }
        let response = ask(&harness, "tools/call", &about(params, &forms())).await;
        assert_eq!(response["error"]["code"], -32602, "{sent}: {response}");
        let message = response["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{field}: ")), "{sent}: {message}");
    }
    let open = mcp::wait(&harness, &id, 0).await;
    assert_eq!(open["reason"], "needs_answer", "nothing was answered");
}
