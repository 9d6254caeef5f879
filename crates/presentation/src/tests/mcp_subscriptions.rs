//! Subscriptions of an MCP client to transcripts.

use std::time::Duration;

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use tokenrail_application::AtStop;
use tokio::time::timeout;

use super::harness::Harness;
use super::mcp::{self, tool};
use super::mcp_newest::{about, ask, post};

/// How long a subscription may take that is about to end.
const PATIENCE: Duration = Duration::from_secs(30);

const HEADERS: [(&str, &str); 2] =
    [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen")];

/// The messages of a subscription, once it has ended.
async fn subscribe(harness: &Harness, notifications: &Value) -> Vec<Value> {
    let params = about(json!({"notifications": notifications}), &json!({}));
    let message = json!({"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": params});
    let answer = timeout(PATIENCE, post(harness, &HEADERS, &message)).await.expect("it ends");
    assert_eq!(
        (answer.status.as_u16(), answer.header("content-type")),
        (200, "text/event-stream"),
        "{answer:?}"
    );
    assert_eq!(answer.header("x-accel-buffering"), "no");
    let data = answer.text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn uri(id: &str) -> String {
    format!("tokenrail://agents/{id}/transcript")
}

#[actix_web::test]
async fn a_client_hears_that_a_transcript_grows_until_its_agent_is_deleted() {
    let harness = Harness::new();
    let id = mcp::launch(&harness, "ask and say hello").await;
    let other = mcp::launch(&harness, "ask and say hello").await;
    assert_eq!(mcp::wait(&harness, &id, 0).await["reason"], "needs_answer");
    let wish = json!({"toolsListChanged": true, "resourceSubscriptions": [uri(&id), uri("x"), "file:///x", uri(&id)]});
    let change = async {
        while harness.api.open_streams() == 0 {
            tokio::task::yield_now().await;
        }
        for agent in [&other, &id] {
            let yes = json!({"agent_id": agent, "request_id": "1-1", "option_id": "yes"});
            tool(&harness, "answer_permission", &yes).await;
            harness.ended(agent).await;
        }
        harness.call(TestRequest::delete().uri(&format!("/api/agents/{id}"))).await;
    };
    let (messages, ()) = tokio::join!(subscribe(&harness, &wish), change);
    let (first, rest) = messages.split_first().unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let honoured = json!({"resourceSubscriptions": [uri(&id)]});
    assert_eq!(first["params"]["notifications"], honoured, "what exists, and only once");
    let (last, told) = rest.split_last().unwrap();
    assert!(!told.is_empty());
    for message in told {
        assert_eq!(message["method"], "notifications/resources/updated", "{message}");
        assert_eq!(message["params"]["uri"], uri(&id), "not that of another agent");
    }
    for message in told.iter().chain([first]) {
        assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s", "{message}");
    }
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!("s"), &json!("complete")), "{last}");
    assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    assert_eq!(harness.api.open_streams(), 0);
}

#[actix_web::test]
async fn a_subscription_to_an_agent_that_is_already_deleted_ends_at_once() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    let deleted = harness.call(TestRequest::delete().uri(&format!("/api/agents/{id}"))).await;
    assert_eq!(deleted.status, 204, "{deleted:?}");
    let messages = subscribe(&harness, &json!({"resourceSubscriptions": [uri(&id)]})).await;
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(messages[0]["params"]["notifications"], json!({}), "it never grows again");
    assert_eq!(messages[1]["result"]["resultType"], "complete");
}

#[actix_web::test]
async fn a_subscription_ends_in_good_order_if_the_server_stops() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    let stop = async {
        while harness.api.open_streams() == 0 {
            tokio::task::yield_now().await;
        }
        harness.service.shutdown(AtStop::Keep, PATIENCE).await
    };
    let wish = json!({"resourceSubscriptions": [uri(&id)]});
    let (messages, _) = tokio::join!(subscribe(&harness, &wish), stop);
    assert_eq!(messages[0]["params"]["notifications"], wish, "it had begun");
    let last = messages.last().unwrap();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!("s"), &json!("complete")), "{last}");
    assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    assert_eq!(harness.api.open_streams(), 0);
}

#[actix_web::test]
async fn a_subscription_is_announced_checked_and_limited() {
    let harness = Harness::with(|config, _| config.streams_per_peer = 0);
    let discovered = ask(&harness, "server/discover", &about(json!({}), &json!({}))).await;
    assert_eq!(discovered["result"]["capabilities"]["resources"], json!({"subscribe": true}));
    let many: Vec<_> = (0..33).map(|number| uri(&number.to_string())).collect();
    for (params, code) in [
        (json!({}), -32602),
        (json!({"notifications": 1}), -32602),
        (json!({"notifications": {"resourceSubscriptions": "x"}}), -32602),
        (json!({"notifications": {"resourceSubscriptions": many}}), -32602),
        (json!({"notifications": {}}), -32603),
    ] {
        let refused = ask(&harness, "subscriptions/listen", &about(params.clone(), &json!({}))).await;
        assert_eq!(refused["error"]["code"], code, "{params}: {refused}");
    }
    let nothing = subscribe(&Harness::new(), &json!({"promptsListChanged": true})).await;
    assert_eq!(nothing[0]["params"]["notifications"], json!({}));
    assert_eq!(nothing[1]["result"]["resultType"], "complete", "it is over at once");
    assert_eq!(nothing.len(), 2);
    let earlier = mcp::ask(&harness, "subscriptions/listen", &json!({"notifications": {}})).await;
    assert_eq!(earlier["error"]["code"], -32601);
}
