//! REST requests that succeed.

use actix_web::test::TestRequest;
use serde_json::json;

use super::harness::{HOST, Harness};

#[actix_web::test]
async fn a_launched_agent_can_be_read_until_its_end() {
    let harness = Harness::new();
    let body = r#"{"type":"script","prompt":"say a b","model":"opus","cwd":"/home","sessionId":"s-1","name":"Ada",
        "metadata":{"n":1.50},"options":{"effort":"high"},"cancelOnDisconnect":false,"unknown":1}"#;
    let launched = harness.post("/api/agents", body).await;
    assert_eq!(launched.status, 201);
    let agent = launched.json();
    let id = agent["id"].as_str().unwrap();
    assert_eq!(launched.header("location"), format!("/api/agents/{id}"));
    assert_eq!(agent["agentId"], agent["id"]);
    assert_eq!(agent["status"], "initializing");
    assert_eq!(agent["createdAt"], "2026-11-21T22:10:00.000Z");
    assert_eq!((&agent["type"], &agent["name"]), (&json!("script"), &json!("Ada")));
    assert_eq!((&agent["model"], &agent["cwd"]), (&json!("opus"), &json!("/home")));
    assert_eq!(agent["sessionId"], "s-1");
    assert!(launched.text.contains(r#""metadata":{"n":1.50}"#), "as it came");
    assert!(!agent.as_object().unwrap().contains_key("endedAt"), "absent beats null");

    harness.ended(id).await;
    let state = harness.get(&format!("/api/agents/{id}/status")).await.json();
    assert_eq!(state, json!({"agentId": id, "status": "completed"}));

    let messages = harness.get(&format!("/api/agents/{id}/messages?raw=true")).await;
    assert_eq!((messages.header("tokenrail-up-to"), messages.header("tokenrail-head")), ("5", "5"));
    let messages = messages.json();
    let said: Vec<_> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|m| (m["sequenceNumber"].as_u64().unwrap(), m["content"].as_str().unwrap()))
        .collect();
    assert_eq!(said, [(1, "say a b"), (4, "ab"), (5, "done")], "the deltas are folded into their message");
    assert_eq!(messages[1]["firstSequence"], 2);
    assert_eq!(messages[1]["raw"], ".");

    let events = harness.get(&format!("/api/agents/{id}/events?since=1&limit=2")).await;
    assert_eq!((events.header("tokenrail-up-to"), events.header("tokenrail-head")), ("3", "5"));
    let events = events.json();
    assert_eq!((&events[0]["content"], &events[1]["content"]), (&json!("a"), &json!("b")));
    assert_eq!(events[0]["metadata"]["messageId"], messages[1]["id"], "a delta knows its message");
    assert!(events[0].get("raw").is_none(), "only where it is asked for");
}

#[actix_web::test]
async fn the_newest_messages_can_be_asked_for_by_themselves() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a b").await;
    // Events 1 to 5: the prompt, two deltas, their message, the result.
    for (query, since, numbers) in [
        ("last=1", "4", vec![5]),
        ("last=2", "3", vec![4, 5]),
        ("last=4", "1", vec![4, 5]),
        ("last=5", "0", vec![1, 4, 5]),
        ("last=99999999999999999999", "0", vec![1, 4, 5]),
        ("last=4&since=4", "4", vec![5]),
        ("last=2&limit=1", "3", vec![4]),
    ] {
        let page = harness.get(&format!("/api/agents/{id}/messages?{query}")).await;
        assert_eq!((page.header("tokenrail-since"), page.header("tokenrail-head")), (since, "5"), "{query}");
        let page = page.json();
        let found: Vec<_> =
            page.as_array().unwrap().iter().map(|m| m["sequenceNumber"].as_u64().unwrap()).collect();
        assert_eq!(found, numbers, "{query}");
    }
}

#[actix_web::test]
async fn agents_are_listed_page_by_page() {
    let harness = Harness::new();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.insert(0, harness.launch("say a").await);
    }
    for id in &ids {
        harness.ended(id).await;
    }
    let listed = |answer: &super::harness::Answer| -> Vec<String> {
        answer.json().as_array().unwrap().iter().map(|a| a["id"].as_str().unwrap().to_owned()).collect()
    };
    let first = harness.get("/api/agents?limit=2&status=completed,failed&type=script").await;
    assert_eq!(listed(&first), ids[..2], "newest first");
    let link = first.header("link");
    let next = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap();
    let last = harness.get(next).await;
    assert_eq!(listed(&last), ids[2..]);
    assert_eq!(last.header("link"), "", "there is no more");
    assert_eq!(listed(&harness.get("/api/agents?type=other").await), [""; 0]);
    assert_eq!(listed(&harness.get("/api/agents/active").await), [""; 0]);
}

#[actix_web::test]
async fn a_running_agent_is_active_until_it_is_cancelled() {
    let harness = Harness::new();
    let id = harness.launch("hang").await;
    let active = harness.get("/api/agents/active").await.json();
    assert_eq!(active[0]["id"], id);

    let cancel = format!("/api/agents/{id}/cancel");
    let first = harness.call(TestRequest::post().uri(&cancel)).await;
    harness.ended(&id).await;
    let again = harness.call(TestRequest::post().uri(&cancel)).await;
    assert_eq!((first.status.as_u16(), &first.text), (202, &again.text), "the same answer again");
    assert_eq!(first.status, again.status);
    assert_eq!(harness.get(&format!("/api/agents/{id}")).await.json()["status"], "cancelled");
}

#[actix_web::test]
async fn an_ended_agent_takes_another_message() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    let sent = harness.post(&format!("/api/agents/{id}/messages"), r#"{"content":"say b"}"#).await;
    assert_eq!((sent.status.as_u16(), sent.json()), (202, json!({"turn": 2, "queued": 1})));
    harness.ended(&id).await;
    let messages = harness.get(&format!("/api/agents/{id}/messages")).await.json();
    assert_eq!(messages.as_array().unwrap().last().unwrap()["metadata"]["turn"], 2);
}

#[actix_web::test]
async fn a_deleted_agent_is_out_of_the_lists_and_can_be_read() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    let uri = format!("/api/agents/{id}");
    assert_eq!(harness.call(TestRequest::delete().uri(&uri)).await.status, 204);
    assert_eq!(harness.call(TestRequest::delete().uri(&uri)).await.status, 204, "again");
    assert_eq!(harness.get("/api/agents").await.json(), json!([]));
    assert_eq!(harness.get("/api/agents?deleted=true").await.json()[0]["id"], id);
    assert!(harness.get(&uri).await.json()["deletedAt"].is_string());
    assert_eq!(harness.call(TestRequest::delete().uri(&format!("{uri}?purge=true"))).await.status, 204);
    assert_eq!(harness.get(&uri).await.problem(), "not_found");
}

#[actix_web::test]
async fn a_command_with_a_key_happens_once() {
    let harness = Harness::new();
    let launch = |body: &'static str| {
        let request =
            TestRequest::post().uri("/api/agents").insert_header(("content-type", "application/json"));
        harness.call(request.insert_header(("idempotency-key", "k1")).set_payload(body))
    };
    let first = launch(r#"{"type":"script","prompt":"say a"}"#).await;
    let again = launch(r#"{"type":"script","prompt":"say a"}"#).await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (again.status, ""));
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(first.json()["id"], again.json()["id"]);
    assert_eq!(launch(r#"{"type":"script","prompt":"say b"}"#).await.problem(), "idempotency_mismatch");
}

#[actix_web::test]
async fn the_server_tells_about_itself() {
    let harness = Harness::new();
    let types = harness.get("/api/agent-types").await.json();
    assert_eq!(
        types,
        json!([{"type": "script", "runner": "process", "format": "script", "default": false, "available": true,
            "can": {"deltas": true, "resume": false, "interrupt": false, "permissions": false, "images": true},
            "imageLimits": {"images": 8, "bytes": 3_932_160, "totalBytes": 20_971_520},
            "program": "/bin/script", "version": "1.0", "unsetKeys": ["SCRIPT_API_KEY"]}])
    );
    let probe =
        |uri: &'static str| harness.call_raw(TestRequest::get().uri(uri).insert_header(("host", HOST)));
    assert_eq!(probe("/healthz").await.json(), json!({"status": "ok"}));
    assert_eq!(probe("/readyz").await.json(), json!({"status": "ready"}));

    harness.launch_to_end("say a").await;
    let metrics = harness.get("/metrics").await;
    assert!(metrics.header("content-type").starts_with("application/openmetrics-text"));
    for line in
        ["tokenrail_events_saved_total 4", "tokenrail_turns_ended_total 1", "tokenrail_open_streams 0"]
    {
        assert!(metrics.text.contains(line), "{line} in {}", metrics.text);
    }
    let label = r#"tokenrail_http_requests_total{route="/api/agents",method="POST",status="201"} 1"#;
    assert!(metrics.text.contains(label), "{}", metrics.text);
}

#[actix_web::test]
async fn a_ticket_opens_a_stream_once() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    let made = harness.call(TestRequest::post().uri("/api/tickets")).await;
    assert_eq!((made.status.as_u16(), &made.json()["expiresAt"]), (201, &json!("2026-11-21T22:10:30.000Z")));
    let ticket = made.json()["ticket"].as_str().unwrap().to_owned();
    let stream = |uri: String| {
        let request = TestRequest::get().uri(&uri).insert_header(("host", HOST));
        harness.call_raw(request.insert_header(("accept", "text/event-stream")))
    };
    let uri = format!("/api/agents/{id}/events?ticket={ticket}");
    assert_eq!(stream(uri.clone()).await.status, 200);
    assert_eq!(stream(uri).await.problem(), "unauthenticated", "it is used up");

    let made = harness.post("/api/tickets", r#"{"path":"/ws"}"#).await.json();
    let uri = format!("/api/agents/{id}/events?ticket={}", made["ticket"].as_str().unwrap());
    assert_eq!(stream(uri).await.problem(), "unauthenticated", "it is for another path");
}

#[actix_web::test]
async fn only_a_client_on_the_same_machine_is_told_the_process() {
    let harness = Harness::new();
    let from = |peer: &str| TestRequest::get().uri("/api/server").peer_addr(peer.parse().unwrap());
    let here = harness.call(from("127.0.0.1:9")).await.json();
    assert_eq!(here, json!({ "pid": std::process::id() }));
    assert_eq!(harness.call(from("192.0.2.7:9")).await.json(), json!({}));
    assert_eq!(harness.call_raw(from("127.0.0.1:9").insert_header(("host", HOST))).await.status, 401);
}

#[actix_web::test]
async fn the_cancel_of_one_turn_lets_the_queued_ones_continue() {
    let harness = Harness::new();
    let id = harness.launch("hang").await;
    let message = format!("/api/agents/{id}/messages");
    assert_eq!(harness.post(&message, r#"{"content":"b"}"#).await.json()["turn"], 2);
    let cancel =
        |turn: &str| harness.call(TestRequest::post().uri(&format!("/api/agents/{id}/cancel?turn={turn}")));
    assert_eq!(cancel("x").await.problem(), "validation_failed");
    for turn in ["1", "1", "9"] {
        assert_eq!(cancel(turn).await.status, 202, "{turn}");
    }
    harness.ended(&id).await;
    let turns = harness.get(&format!("/api/agents/{id}/turns")).await.json();
    assert_eq!((&turns[0]["status"], &turns[1]["status"]), (&json!("cancelled"), &json!("completed")));
    assert_eq!(turns[1]["prompt"], "b");
    assert_eq!(turns.as_array().unwrap().len(), 2, "the queued message is neither lost nor doubled");
}

#[actix_web::test]
async fn a_queued_turn_can_be_withdrawn_and_a_running_one_cannot() {
    let harness = Harness::new();
    let id = harness.launch("hang").await;
    let message = format!("/api/agents/{id}/messages");
    assert_eq!(harness.post(&message, r#"{"content":"b"}"#).await.json()["turn"], 2);
    let withdraw =
        |turn: &str| harness.call(TestRequest::delete().uri(&format!("/api/agents/{id}/turns/{turn}")));
    for _ in 0..2 {
        let answer = withdraw("2").await;
        assert_eq!((answer.status.as_u16(), &*answer.text), (204, ""));
    }
    assert_eq!(harness.get(&format!("/api/agents/{id}")).await.json()["queued"], 0);
    let turns = harness.get(&format!("/api/agents/{id}/turns")).await.json();
    assert_eq!((&turns[1]["status"], turns[1].get("outcome")), (&json!("cancelled"), None));
    assert_eq!(withdraw("1").await.problem(), "turn_started");
    for unknown in ["3", "0", "x"] {
        assert_eq!(withdraw(unknown).await.problem(), "not_found", "{unknown}");
    }
}
