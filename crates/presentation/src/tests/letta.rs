//! What Letta's clients see, and those of Kelpie.

use std::future::poll_fn;
use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::ServiceResponse;
use actix_web::test::{TestRequest, call_service, init_service};
use serde_json::{Value, json};

use super::harness::{Answer, HOST, Harness, TOKEN};
use crate::app;

pub(super) async fn made(harness: &Harness) -> String {
    let answer =
        harness.post("/v1/agents/", r#"{"name":"Ada","model":"script/small","metadata":{"n":1}}"#).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

pub(super) async fn say(harness: &Harness, id: &str, body: &Value) -> Answer {
    harness.post(&format!("/v1/agents/{id}/messages"), &body.to_string()).await
}

/// As [`say`], but leaves the body of the response to be read while it comes.
pub(super) async fn opened(
    harness: &Harness,
    id: &str,
    body: &Value,
) -> ServiceResponse<impl MessageBody + use<>> {
    let service = init_service(app(harness.api.clone())).await;
    let request = TestRequest::post()
        .uri(&format!("/v1/agents/{id}/messages"))
        .insert_header(("host", HOST))
        .insert_header(("authorization", format!("Bearer {TOKEN}")))
        .insert_header(("content-type", "application/json"))
        .set_payload(body.to_string());
    call_service(&service, request.to_request()).await
}

/// The frames of a stream, without those of Kelpie. Checks the end of the stream.
pub(super) fn frames(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), "text/event-stream");
    let text = answer.text.strip_suffix("data: [DONE]\n\n").unwrap_or_else(|| panic!("{answer:?}"));
    let unnamed = text.split("\n\n").filter_map(|block| block.strip_prefix("data: "));
    unnamed.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn types(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["message_type"].as_str().unwrap()).collect()
}

pub(super) fn text(messages: &[Value]) -> String {
    messages.iter().filter_map(|message| message["content"].as_str()).collect()
}

#[actix_web::test]
async fn an_agent_is_made_read_listed_and_deleted() {
    let harness = Harness::new();
    let id = made(&harness).await;
    let other = made(&harness).await;
    let agent = harness.get(&format!("/v1/agents/{id}?include=agent.blocks")).await.json();
    assert_eq!(
        (&agent["id"], &agent["name"], &agent["model"]),
        (&json!(id), &json!("Ada"), &json!("script"))
    );
    assert_eq!((&agent["metadata"], &agent["memory"]), (&json!({"n": 1}), &json!({"blocks": []})));
    let ids = |answer: &Answer| -> Vec<String> {
        answer
            .json()
            .as_array()
            .unwrap()
            .iter()
            .map(|agent| agent["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids(&harness.get("/v1/agents").await), [other.as_str(), &id]);
    assert_eq!(ids(&harness.get("/v1/agents/?limit=1").await), [other.as_str()]);
    assert_eq!(ids(&harness.get(&format!("/v1/agents/?limit=1&after={other}")).await), [id.as_str()]);
    assert_eq!(ids(&harness.get(&format!("/v1/agents/?limit=1&after={id}")).await), [""; 0]);
    assert_eq!(ids(&harness.get("/v1/agents/?order=asc&limit=1").await), [id.as_str()]);
    assert_eq!(ids(&harness.get("/v1/agents/?name=Bob").await), [""; 0]);
    for list in ["secrets", "mcp-servers", "repositories"] {
        assert_eq!(harness.get(&format!("/v1/agents/{id}/{list}")).await.json(), json!([]));
    }
    let patched = TestRequest::patch().uri(&format!("/v1/agents/{id}")).set_payload(r#"{"name":"Eve"}"#);
    let patched = harness.call(patched.insert_header(("content-type", "application/json"))).await;
    assert_eq!((patched.status.as_u16(), &patched.json()["name"]), (200, &json!("Ada")), "nothing changes");

    let delete = || TestRequest::delete().uri(&format!("/v1/agents/{id}"));
    assert_eq!(harness.call(delete()).await.status, 200);
    assert_eq!(harness.get(&format!("/v1/agents/{id}")).await.status, 404);
    assert_eq!(harness.get("/v1/health").await.json()["status"], "ok");
    assert_eq!(harness.get("/v1/models/").await.json()[0]["handle"], "script");
}

#[actix_web::test]
async fn a_message_is_taken_in_every_form() {
    let harness = Harness::new();
    let id = made(&harness).await;
    let parts = json!([{"type": "text", "text": "say a b"}]);
    for body in [
        json!({"messages": [{"role": "user", "content": "say a b"}]}),
        json!({"messages": [{"type": "message", "role": "user", "content": parts, "otid": null}], "streaming": false}),
        json!({"input": "say a b", "max_steps": 3, "client_tools": [{"name": "x"}]}),
        json!({"input": parts}),
        json!({"role": "user", "content": "say a b"}),
    ] {
        let answer = say(&harness, &id, &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer = answer.json();
        assert_eq!(text(answer["messages"].as_array().unwrap()), "ab", "{body}");
        assert_eq!(answer["stop_reason"], json!({"message_type": "stop_reason", "stop_reason": "end_turn"}));
        assert_eq!(answer["usage"]["message_type"], "usage_statistics");
        let streamed = harness.post(&format!("/v1/agents/{id}/messages/stream"), &body.to_string()).await;
        let whole = body["streaming"] == false;
        assert_eq!(whole, streamed.header("content-type") == "application/json", "{body}");
    }
}

#[actix_web::test]
async fn who_asks_decides_whose_frames_there_are() {
    let harness = Harness::new();
    let id = made(&harness).await;
    let ask = async |query: &str, header: Option<&'static str>| {
        let request = TestRequest::post().uri(&format!("/v1/agents/{id}/messages/stream{query}"));
        let request = request.insert_header(("content-type", "application/json"));
        let request = request.set_payload(r#"{"role":"user","content":"say a","stream_tokens":true}"#);
        let answer = harness
            .call(match header {
                Some(header) => request.insert_header((header, "js")),
                None => request,
            })
            .await;
        (answer.text.contains("message_type"), answer.text.contains("event: message_chunk"))
    };
    assert_eq!(ask("", None).await, (true, true));
    assert_eq!(ask("", Some("x-stainless-lang")).await, (true, false));
    assert_eq!(ask("", Some("x-letta-source")).await, (true, false));
    assert_eq!(ask("?format=both", Some("x-letta-source")).await, (true, true));
    assert_eq!(ask("?format=kelpie", None).await, (false, true));
    assert_eq!(ask("?format=letta", None).await, (true, false));
}

#[actix_web::test]
async fn a_run_is_streamed_again_from_any_number() {
    let harness = Harness::new();
    let id = made(&harness).await;
    say(&harness, &id, &json!({"input": "say x"})).await;
    let body = r#"{"input":"say a b c","stream_tokens":true}"#;
    let begun = harness.post(&format!("/v1/agents/{id}/messages/async"), body).await;
    let run = begun.json()["id"].as_str().unwrap().to_owned();
    let stream = async |body: &str| frames(&harness.post(&format!("/v1/runs/{run}/stream"), body).await);
    let whole = stream("{}").await;
    assert_eq!(text(&whole), "abc");
    assert_eq!(types(&whole)[3..], ["stop_reason", "usage_statistics"]);
    for (at, frame) in whole.iter().enumerate().take(3) {
        let after = json!({"starting_after": frame["seq_id"]}).to_string();
        assert_eq!(stream(&after).await, whole[at + 1..]);
        let conversation = id.replace("agent-", "conv-");
        let answer = harness.post(&format!("/v1/conversations/{conversation}/stream"), &after).await;
        assert_eq!(frames(&answer), whole[at + 1..], "the newest run of the conversation");
    }
    let shown = harness.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!((&shown["id"], &shown["status"]), (&json!(run), &json!("completed")));
    assert_eq!(shown["agent_id"], id);
    let runs = harness.get(&format!("/v1/runs/?agent_id={id}&order=asc")).await.json();
    assert_eq!(runs.as_array().unwrap().len(), 2);
    let history = harness.get(&format!("/v1/runs/{run}/messages?order=asc")).await.json();
    assert_eq!(types(history.as_array().unwrap()), ["user_message", "assistant_message"]);
    assert_eq!(history[1]["content"], "abc");
}

#[actix_web::test]
async fn the_history_comes_in_pages_from_either_end() {
    let harness = Harness::new();
    let id = made(&harness).await;
    for word in ["a", "b", "c"] {
        say(&harness, &id, &json!({"input": format!("say {word}")})).await;
    }
    for (order, expected) in [
        ("asc", ["say a", "a", "say b", "b", "say c", "c"]),
        ("desc", ["c", "say c", "b", "say b", "a", "say a"]),
    ] {
        for limit in 1..=7 {
            let (mut seen, mut after) = (Vec::new(), String::new());
            loop {
                let path = format!("/v1/agents/{id}/messages?order={order}&limit={limit}{after}");
                let page = harness.get(&path).await.json();
                let page = page.as_array().unwrap();
                assert!(page.len() <= limit);
                let Some(last) = page.last() else { break };
                after = format!("&after={}", last["id"].as_str().unwrap());
                seen.extend(page.iter().map(|message| message["content"].as_str().unwrap().to_owned()));
            }
            assert_eq!(seen, expected, "{order}, {limit}");
        }
    }
}

#[actix_web::test]
async fn a_message_with_an_id_is_said_once() {
    let harness = Harness::new();
    let id = made(&harness).await;
    let begin = async |otid: &str| {
        let body = json!({"messages": [{"role": "user", "content": "say a", "otid": otid}]}).to_string();
        harness.post(&format!("/v1/agents/{id}/messages/async"), &body).await.json()["id"].clone()
    };
    let first = begin("one").await;
    assert_eq!(begin("one").await, first);
    assert_ne!(begin("two").await, first);
}

#[actix_web::test]
async fn a_cancelled_run_says_so() {
    let harness = Harness::new();
    let id = made(&harness).await;
    let begun = harness.post(&format!("/v1/agents/{id}/messages/async"), r#"{"input":"hang"}"#).await.json();
    let run = begun["id"].as_str().unwrap();
    assert!(matches!(begun["status"].as_str(), Some("created" | "running")), "{begun}");
    let cancelled = harness.post(&format!("/v1/agents/{id}/messages/cancel"), "{}").await.json();
    assert_eq!(cancelled, json!({ run: "cancelled" }));
    let seen = frames(&harness.post(&format!("/v1/runs/{run}/stream"), "{}").await);
    assert_eq!(types(&seen), ["stop_reason", "usage_statistics"]);
    assert_eq!(seen[0]["stop_reason"], "cancelled");
    assert_eq!(harness.get(&format!("/v1/runs/{run}")).await.json()["status"], "cancelled");
    let again = harness.post(&format!("/v1/runs/{run}/cancel"), "{}").await.json();
    assert_eq!(again["status"], "cancelled");
    let late = harness
        .post(&format!("/v1/agents/{id}/messages/cancel"), &json!({"run_ids": [run]}).to_string())
        .await;
    assert_eq!(late.json(), json!({ run: "failed" }), "there is nothing left to cancel");
}

#[actix_web::test]
async fn a_conversation_is_an_agent_of_its_own() {
    let harness = Harness::new();
    let id = made(&harness).await;
    let begin = async || harness.post(&format!("/v1/conversations/?agent_id={id}"), "").await.json();
    let first = begin().await;
    assert_eq!((&first["agent_id"], &first["id"]), (&json!(id), &json!(id.replace("agent-", "conv-"))));
    let path = format!("/v1/conversations/{}", first["id"].as_str().unwrap());
    let seen = frames(&harness.post(&format!("{path}/messages"), r#"{"input":"say a b"}"#).await);
    assert_eq!(text(&seen), "ab");
    assert_eq!(seen.len(), 3, "whole items, unless pieces are asked for");
    let second = begin().await;
    assert_ne!(second["id"], first["id"], "each conversation has its own history");
    assert_eq!(harness.get(&path).await.json(), first);
    let of_agent = async |more: &str| harness.get(&format!("/v1/conversations?agent_id={id}{more}")).await;
    assert_eq!(of_agent("").await.json(), json!([first]));
    assert_eq!(of_agent("&limit=true").await.status, 422, "as for all agents");
    assert_eq!(harness.get(&format!("{path}/messages")).await.json().as_array().unwrap().len(), 2);
    let default = format!(r#"{{"input":"say c","agent_id":"{id}"}}"#);
    assert_eq!(text(&frames(&harness.post("/v1/conversations/default/messages", &default).await)), "c");
    let ended = harness.post(&format!("{path}/stream"), "{}").await;
    assert_eq!(
        (ended.status.as_u16(), ended.json()),
        (400, json!({"detail": "this conversation has no active run"}))
    );
}

#[actix_web::test]
async fn what_is_refused_is_refused_in_lettas_own_shape() {
    let harness = Harness::new();
    let id = made(&harness).await;
    let messages = format!("/v1/agents/{id}/messages");
    let cases = [
        (messages.as_str(), "{", 400, "not valid JSON"),
        (&messages, "{}", 422, "/content: must be present"),
        (&messages, r#"{"input":" "}"#, 422, "/input: must contain text"),
        (&messages, r#"{"input":5}"#, 422, "/input: must be a string or a list of parts of the type text"),
        (
            &messages,
            r#"{"input":[{"type":"image","source":{}}]}"#,
            422,
            "/input: only parts of the type text are supported",
        ),
        (
            &messages,
            r#"{"messages":[{"role":"assistant","content":"x"}]}"#,
            422,
            "/messages: the role must be user or system",
        ),
        (&messages, r#"{"input":"x","stream_tokens":"yes"}"#, 422, "/stream_tokens: must be true or false"),
        ("/v1/agents/agent-x/messages", r#"{"input":"x"}"#, 404, "no such agent"),
        ("/v1/nowhere", "{}", 404, "no such path"),
        ("/v1/", "", 404, "no such path"),
        ("/v1/runs", "{}", 405, "the path does not support this method; it supports: GET, HEAD"),
        (
            "/v1/agents/x/",
            "{}",
            405,
            "the path does not support this method; it supports: GET, HEAD, PATCH, DELETE",
        ),
        ("/v1/runs/run-x/stream", "{}", 404, "no such run"),
        ("/v1/agents", r#"{"name":5}"#, 422, "/name: must be a string"),
        ("/v1/conversations/", "", 422, "agent_id: must be present"),
        ("/v1/conversations/default/messages", r#"{"input":"x"}"#, 422, "/agent_id: must be present"),
    ];
    for (path, body, status, detail) in cases {
        let answer = harness.post(path, body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()),
            (status, json!({ "detail": detail })),
            "{path} {body}"
        );
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.header("x-should-retry"), "false", "it would be refused again");
        assert_eq!(answer.header("allow"), detail.split_once("it supports: ").map_or("", |(_, allow)| allow));
    }
    let approval = r#"{"messages":[{"type":"approval","approve":true,"approval_request_id":"x"}]}"#;
    assert_eq!(harness.post(&messages, approval).await.status, 422);
    let format = harness.post(&format!("{messages}?format=xml"), r#"{"input":"x"}"#).await;
    assert_eq!(
        format.json(),
        json!({"detail": "format: unknown format \"xml\"; must be one of: letta, kelpie, both"})
    );
    let stranger = TestRequest::get().uri("/v1/agents/").insert_header(("host", HOST));
    let stranger = harness.call_raw(stranger).await;
    assert_eq!(stranger.problem(), "unauthenticated");
    assert!(stranger.json()["detail"].is_string(), "what the guard says has a detail too");
}

#[actix_web::test]
async fn who_asks_for_pings_gets_them_with_the_last_number() {
    for (pings, expected) in [(true, "\"seq_id\":1}"), (false, ":\n\n:\n\n")] {
        let harness = Harness::with(|config, _| {
            (config.ping, config.heartbeat) = (Duration::from_millis(5), Duration::from_millis(5));
        });
        let id = made(&harness).await;
        let body = json!({"input": "hang", "streaming": true, "include_pings": pings});
        let response = opened(&harness, &id, &body).await;
        let mut body = Box::pin(response.into_body());
        let mut seen = String::new();
        while !seen.contains(expected) {
            let chunk = poll_fn(|context| body.as_mut().poll_next(context)).await.unwrap();
            seen.push_str(std::str::from_utf8(&chunk.map_err(|_| "it breaks off").unwrap()).unwrap());
        }
        assert_eq!(seen.contains("\"message_type\":\"ping\""), pings, "{seen}");
        harness.post(&format!("/v1/agents/{id}/messages/cancel"), "{}").await;
    }
}
