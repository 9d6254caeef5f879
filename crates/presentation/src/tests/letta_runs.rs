//! What Letta's clients see of runs: long ones, repeated ones, and the list of all.

use std::future::poll_fn;
use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::test::TestRequest;
use serde_json::{Value, json};

use super::harness::{Answer, Harness};
use super::letta::{frames, made, opened, say, text};

/// A harness that sends heartbeats after a short silence.
fn lively() -> Harness {
    Harness::with(|config, _| config.heartbeat = Duration::from_millis(5))
}

/// Begins a run. Returns its id.
async fn begin(harness: &Harness, id: &str, prompt: &str) -> String {
    let body = json!({ "input": prompt }).to_string();
    let begun = harness.post(&format!("/v1/agents/{id}/messages/async"), &body).await;
    begun.json()["id"].as_str().unwrap_or_else(|| panic!("{begun:?}")).to_owned()
}

/// Begins a run that hangs and one that waits for it. Returns their ids.
async fn running_and_waiting(harness: &Harness, id: &str) -> (String, String) {
    (begin(harness, id, "hang").await, begin(harness, id, "say a").await)
}

async fn cancel(harness: &Harness, id: &str) {
    harness.post(&format!("/v1/agents/{id}/messages/cancel"), "{}").await;
}

async fn shown(harness: &Harness, run: &str) -> Value {
    harness.get(&format!("/v1/runs/{run}")).await.json()
}

/// Sends a message and waits for the whole answer. `between` runs meanwhile.
async fn whole(harness: &Harness, id: &str, prompt: &str, between: impl AsyncFnOnce()) -> (String, bool) {
    let body = json!({ "input": prompt });
    let response = opened(harness, id, &body).await;
    let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap());
    assert_eq!((response.status().as_u16(), kind), (200, Some("application/json")));
    let mut body = Box::pin(response.into_body());
    let (mut seen, mut between) = (String::new(), Some(between));
    loop {
        match poll_fn(|context| body.as_mut().poll_next(context)).await {
            Some(Ok(chunk)) => seen.push_str(std::str::from_utf8(&chunk).unwrap()),
            Some(Err(_)) => return (seen, false),
            None => return (seen, true),
        }
        if seen.starts_with("\n\n")
            && let Some(between) = between.take()
        {
            between().await;
        }
    }
}

#[actix_web::test]
async fn an_answer_that_takes_long_begins_at_once_and_shows_that_it_lives() {
    let harness = lively();
    let id = made(&harness).await;
    let (body, complete) = whole(&harness, &id, "hang", async || cancel(&harness, &id).await).await;
    assert!(complete && body.starts_with("\n\n"), "{body:?}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["stop_reason"]["stop_reason"], "cancelled");
    assert_eq!(answer["usage"]["message_type"], "usage_statistics");
}

#[actix_web::test]
async fn an_answer_whose_agent_is_deleted_ends_and_one_whose_server_stops_is_broken_off() {
    let harness = lively();
    let id = made(&harness).await;
    let delete = async || {
        harness.call(TestRequest::delete().uri(&format!("/v1/agents/{id}"))).await;
    };
    let (body, complete) = whole(&harness, &id, "hang", delete).await;
    assert!(complete, "{body:?}");
    let stopped = serde_json::from_str::<Value>(&body).unwrap()["stop_reason"]["stop_reason"].clone();
    assert!(stopped == "cancelled" || stopped == "error", "{stopped}");

    let id = made(&harness).await;
    let stop = async || {
        harness.service.shutdown(tokenrail_application::AtStop::Keep, Duration::from_secs(5)).await;
    };
    let (body, complete) = whole(&harness, &id, "hang", stop).await;
    assert!(!complete && body.trim().is_empty(), "nobody takes a part for the whole: {body:?}");
}

#[actix_web::test]
async fn a_message_that_a_client_tries_again_is_said_once() {
    let harness = Harness::new();
    let id = made(&harness).await;
    let send = async |prompt: &str, tries: &'static str| {
        let request = TestRequest::post().uri(&format!("/v1/agents/{id}/messages/async"));
        let request = request.insert_header(("content-type", "application/json"));
        let request = request.insert_header(("x-stainless-retry-count", tries));
        let begun = harness.call(request.set_payload(json!({ "input": prompt }).to_string())).await;
        begun.json()["id"].as_str().unwrap_or_else(|| panic!("{begun:?}")).to_owned()
    };
    let first = send("hang", "0").await;
    assert_eq!([send("hang", "1").await, send("hang", "2").await], [first.clone(), first.clone()]);
    let waiting = send("say a", "0").await;
    assert_ne!(waiting, first);
    assert_eq!(send("say a", "1").await, waiting, "also while it waits");
    assert_eq!(send("hang", "1").await, first, "also when others have come after it");
    assert_ne!(send("hang", "0").await, first, "who says the same again says it twice");
    assert_ne!(send("say b", "1").await, waiting, "the first try was never heard of");
    assert_ne!(send("say a", "x").await, waiting, "what is no number says nothing");
    cancel(&harness, &id).await;

    harness.ended(id.strip_prefix("agent-").unwrap()).await;
    let ended = send("say c", "0").await;
    assert_eq!(text(&frames(&harness.post(&format!("/v1/runs/{ended}/stream"), "{}").await)), "c");
    let window = harness.api.config().retry_window.as_millis() as i64;
    harness.clock.advance_ms(window);
    assert_eq!(send("say c", "1").await, ended, "it has ended just now");
    harness.clock.advance_ms(1);
    assert_ne!(send("say c", "1").await, ended, "that is long ago");
}

#[actix_web::test]
async fn a_cursor_beyond_the_newest_event_of_a_run_is_refused() {
    let harness = Harness::new();
    let id = made(&harness).await;
    say(&harness, &id, &json!({"input": "say x"})).await;
    let first = format!("run-{}-1", id.strip_prefix("agent-").unwrap());
    say(&harness, &id, &json!({"input": "say y"})).await;
    let stream = async |run: &str, after: u64| {
        let body = json!({ "starting_after": after }).to_string();
        harness.post(&format!("/v1/runs/{run}/stream"), &body).await
    };
    let refused = |answer: &Answer, head: u64| {
        let detail = format!("the cursor is ahead of the latest event ({head}); start again from 0");
        assert_eq!((answer.status.as_u16(), answer.json()), (409, json!({ "detail": detail })));
        assert_eq!(answer.header("x-should-retry"), "false", "a 409 is tried again otherwise");
    };
    assert_eq!(frames(&stream(&first, 4).await), [Value::Null; 0], "all of it is known");
    refused(&stream(&first, 5).await, 4);
    let running = begin(&harness, &id, "hang").await;
    let conversation = format!("/v1/conversations/{}/stream", id.replace("agent-", "conv-"));
    let ahead = harness.post(&conversation, r#"{"starting_after":9999}"#).await;
    assert_eq!(ahead.status, 409, "{ahead:?}");
    assert_eq!(stream(&running, 9999).await.status, 409);
    cancel(&harness, &id).await;
}

#[actix_web::test]
async fn what_a_run_has_cost_so_far_is_told_at_once() {
    let harness = Harness::new();
    let id = made(&harness).await;
    let (running, waiting) = running_and_waiting(&harness, &id).await;
    for run in [&running, &waiting] {
        let usage = harness.get(&format!("/v1/runs/{run}/usage")).await.json();
        assert_eq!((&usage["total_tokens"], &usage["step_count"]), (&json!(0), &json!(0)));
        assert_eq!(usage["run_ids"], json!([run]));
    }
    cancel(&harness, &id).await;
    say(&harness, &id, &json!({"input": "say a"})).await;
    let ended = format!("run-{}-3", id.strip_prefix("agent-").unwrap());
    let usage = harness.get(&format!("/v1/runs/{ended}/usage")).await.json();
    assert_eq!(usage["step_count"], 1, "{usage}");
}

#[actix_web::test]
async fn a_run_says_of_its_end_what_its_stream_has_said() {
    let harness = Harness::new();
    let id = made(&harness).await;
    let (running, waiting) = running_and_waiting(&harness, &id).await;
    for (run, status) in [(&running, "running"), (&waiting, "created")] {
        let run = shown(&harness, run).await;
        assert!(run["status"] == status || run["status"] == "created", "{run}");
        assert_eq!((&run["stop_reason"], &run["completed_at"]), (&Value::Null, &Value::Null));
    }
    cancel(&harness, &id).await;
    let completed = begin(&harness, &id, "say a").await;
    for (run, status) in [(running, "cancelled"), (waiting, "cancelled"), (completed, "completed")] {
        let stream = frames(&harness.post(&format!("/v1/runs/{run}/stream"), "{}").await);
        let stop = stream.iter().find(|frame| frame["message_type"] == "stop_reason").unwrap();
        let shown = shown(&harness, &run).await;
        assert_eq!((&shown["stop_reason"], &shown["status"]), (&stop["stop_reason"], &json!(status)));
        assert_eq!(shown["completed_at"], "2026-11-21T22:10:00.000Z");
    }
}

async fn listed(harness: &Harness, query: &str) -> Vec<String> {
    let answer = harness.get(&format!("/v1/runs/?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {answer:?}");
    let runs = answer.json();
    runs.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

#[actix_web::test]
async fn the_runs_of_all_agents_are_listed_and_sorted_out() {
    let harness = Harness::new();
    let (one, two) = (made(&harness).await, made(&harness).await);
    let ended = begin(&harness, &one, "say a").await;
    harness.post(&format!("/v1/runs/{ended}/stream"), "{}").await;
    harness.clock.advance_ms(1);
    let cancelled = begin(&harness, &two, "hang").await;
    cancel(&harness, &two).await;
    harness.post(&format!("/v1/runs/{cancelled}/stream"), "{}").await;
    harness.clock.advance_ms(1);
    let runs = begin(&harness, &one, "hang").await;
    // The agent's first output is saved when the run has this status.
    let mut status = Value::Null;
    while status != "running" {
        status = shown(&harness, &runs).await["status"].take();
    }
    harness.clock.advance_ms(1);
    let waits = begin(&harness, &one, "say b").await;
    let all = [&waits, &runs, &cancelled, &ended];
    let conversation = one.replace("agent-", "conv-");
    let cases = [
        (String::new(), vec![0, 1, 2, 3]),
        ("order=asc".to_owned(), vec![3, 2, 1, 0]),
        ("ascending=true".to_owned(), vec![3, 2, 1, 0]),
        ("limit=2".to_owned(), vec![0, 1]),
        (format!("limit=2&after={runs}&order_by=created_at"), vec![2, 3]),
        (format!("limit=1&before={cancelled}"), vec![1]),
        (format!("order=asc&limit=1&before={cancelled}"), vec![3]),
        (format!("after={waits}&before={ended}"), vec![1, 2]),
        (format!("after={ended}"), vec![]),
        (format!("after=&agent_id={one}"), vec![0, 1, 3]),
        (format!("agent_ids={one}&agent_ids={two}"), vec![0, 1, 2, 3]),
        (format!("conversation_id={conversation}"), vec![0, 1, 3]),
        (format!("conversation_id=default&agent_id={two}"), vec![2]),
        ("active=true".to_owned(), vec![0, 1]),
        ("active=false".to_owned(), vec![0, 1, 2, 3]),
        ("background=true".to_owned(), vec![0, 1, 2, 3]),
        ("background=false".to_owned(), vec![]),
        ("statuses=created".to_owned(), vec![0]),
        ("statuses=running&statuses=completed".to_owned(), vec![1, 3]),
        ("statuses=failed".to_owned(), vec![]),
        ("stop_reason=cancelled&limit=1".to_owned(), vec![2]),
        ("stop_reason=end_turn&statuses=cancelled".to_owned(), vec![]),
    ];
    for (query, expected) in cases {
        let expected: Vec<_> = expected.into_iter().map(|at: usize| all[at].clone()).collect();
        assert_eq!(listed(&harness, &query).await, expected, "{query}");
    }
    for (query, detail) in [
        ("after=run-x", "after: no such run"),
        ("statuses=gone", "statuses: must be one of: created, running, completed, failed, cancelled"),
        ("active=1", "active: must be true or false"),
        ("order_by=cost", "order_by: must be created_at"),
    ] {
        let answer = harness.get(&format!("/v1/runs?{query}")).await;
        assert_eq!((answer.status.as_u16(), answer.json()), (422, json!({ "detail": detail })), "{query}");
    }
    assert_eq!(harness.get("/v1/runs?agent_id=agent-x").await.status, 404);
    cancel(&harness, &one).await;
    harness.call(TestRequest::delete().uri(&format!("/v1/agents/{two}"))).await;
    assert!(!listed(&harness, "").await.contains(&cancelled), "its agent is out of the lists");
}
