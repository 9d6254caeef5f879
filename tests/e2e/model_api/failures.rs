//! Responses that fail, as the APIs report it.

use serde_json::{Value, json};

use super::{APIS, KEY, of_type, server_for, turn};
use crate::harness::text_of;
use crate::model_server::{Gate, ModelServer, Reply};

/// Sends one prompt. The turn must fail with this class.
async fn fails(reply: Reply, class: &str, recoverable: bool) -> Vec<(Value, String)> {
    let mut errors = Vec::new();
    for api in APIS {
        let model = ModelServer::start_without_tools([reply.clone()]);
        let server = server_for(model.url(), "");
        let (agent, events) = turn(&server, api, "Hi").await;
        assert_eq!(agent["status"], "failed", "{api}: {agent}");
        let error = agent["error"].clone();
        assert_eq!(
            (&error["class"], &error["recoverable"]),
            (&json!(class), &json!(recoverable)),
            "{api}: {error}"
        );
        assert_eq!(of_type(&events, "error").len(), 1, "{api}: it is told once");
        errors.push((error, text_of(&events)));
    }
    errors
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_again() {
    let reply = Reply::error(429, "rate_limit_error", "Slow down").retry_after_s(7);
    for (error, _) in fails(reply, "rate_limit", true).await {
        assert_eq!(
            (&error["code"], &error["retryAfter"]),
            (&json!("upstream_refused"), &json!(7.0)),
            "{error}"
        );
        assert_eq!(error["message"], "the model API answered 429 Too Many Requests: Slow down", "{error}");
    }
}

#[tokio::test]
async fn an_overloaded_api_may_be_asked_again() {
    for status in [529, 500, 503] {
        fails(Reply::error(status, "overloaded_error", "Overloaded"), "overloaded", true).await;
    }
}

#[tokio::test]
async fn a_wrong_key_and_a_wrong_request_may_not() {
    for (error, _) in fails(Reply::error(401, "authentication_error", KEY), "authentication", false).await {
        let text = error["message"].as_str().unwrap();
        assert!(
            text.starts_with("the model API answered 401 Unauthorized: ***") && !text.contains(KEY),
            "{text}"
        );
    }
    fails(Reply::error(400, "invalid_request_error", "No such model"), "invalid_request", false).await;
}

#[tokio::test]
async fn an_error_in_the_middle_keeps_what_was_said() {
    let reply = Reply::text(["Half ", "of"]).then_error("overloaded_error", "Overloaded 👀");
    for (error, text) in fails(reply, "overloaded", true).await {
        assert_eq!((&error["message"], &*text), (&json!("Overloaded 👀"), "Half of"), "{error}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_no_answer() {
    let gate = Gate::new();
    gate.open();
    for (error, text) in fails(Reply::text(["Half ", "of"]).gated(&gate).then_cut(), "network", true).await {
        assert_eq!((&error["code"], &*text), (&json!("upstream_dropped"), "Half of"), "{error}");
    }
}
