//! Every problem, and the request that provokes it.

use std::collections::BTreeSet;

use actix_web::http::Method;
use actix_web::test::TestRequest;
use tokenrail_application::Refusal;
use tokenrail_ports::StoreError;

use super::harness::{HOST, Harness};
use crate::error::{Code, Problem};

const PROTOCOL: &str = include_str!("../../../../docs/reference/protocol/problems.md");
const LAUNCH: &str = "/api/agents";
const UNKNOWN: &str = "/api/agents/0195bd2f-0a00-7000-8000-000000000000";

/// The pointers and parameters that a problem names.
fn places(problem: &serde_json::Value) -> Vec<&str> {
    let errors = problem["errors"].as_array().map_or(&[][..], Vec::as_slice);
    errors
        .iter()
        .map(|error| error.get("pointer").or(error.get("parameter")).unwrap().as_str().unwrap())
        .collect()
}

#[actix_web::test]
async fn a_launch_with_wrong_fields_names_each_of_them() {
    let harness = Harness::new();
    let cases: &[(&str, &str, &[&str])] = &[
        ("", "malformed_json", &[]),
        ("{", "malformed_json", &[]),
        ("\u{feff}{}", "malformed_json", &[]),
        (r#"{"prompt":"a","prompt":"b"}"#, "malformed_json", &[]),
        (r#"{"prompt":"a"} x"#, "malformed_json", &[]),
        (r#"{"prompt":"\ud800"}"#, "validation_failed", &["/prompt"]),
        ("[]", "validation_failed", &[""]),
        ("null", "validation_failed", &[""]),
        ("{}", "validation_failed", &["/prompt"]),
        (r#"{"prompt":" \n"}"#, "validation_failed", &["/prompt"]),
        (r#"{"prompt":null}"#, "validation_failed", &["/prompt"]),
        (
            r#"{"prompt":1,"type":[],"model":"-x","cwd":"","sessionId":"a b","name":{}}"#,
            "validation_failed",
            &["/type", "/prompt", "/model", "/cwd", "/sessionId", "/name"],
        ),
        (r#"{"prompt":"a","model":"a b"}"#, "validation_failed", &["/model"]),
        (r#"{"prompt":"a","model":""}"#, "validation_failed", &["/model"]),
        (r#"{"prompt":"a","sessionId":"-p"}"#, "validation_failed", &["/sessionId"]),
        (r#"{"prompt":"a","sessionId":"é"}"#, "validation_failed", &["/sessionId"]),
        (r#"{"prompt":"a","sessionId":"/etc/passwd"}"#, "validation_failed", &["/sessionId"]),
        (r#"{"prompt":"a","sessionId":"a\\b"}"#, "validation_failed", &["/sessionId"]),
        (r#"{"prompt":"a","sessionId":"a..b"}"#, "validation_failed", &["/sessionId"]),
        (r#"{"prompt":"a","sessionId":".a"}"#, "validation_failed", &["/sessionId"]),
        (r#"{"prompt":"a","cwd":"/a\u0000b"}"#, "validation_failed", &["/cwd"]),
        (
            r#"{"prompt":"a","metadata":[],"options":"x","cancelOnDisconnect":"yes"}"#,
            "validation_failed",
            &["/metadata", "/options", "/cancelOnDisconnect"],
        ),
        (r#"{"prompt":"a","metadata":{"a":[1e400]}}"#, "validation_failed", &["/metadata"]),
        (r#"{"prompt":"a","options":{"a":"\udc00"}}"#, "validation_failed", &["/options"]),
        (r#"{"prompt":"a","\ud800":1}"#, "malformed_json", &[]),
        (r#"{"prompt":"a"}"#, "validation_failed", &["/type"]),
        (r#"{"prompt":"a","type":"nope"}"#, "runner_unknown", &["/type"]),
        (r#"{"prompt":"a","type":"script","cwd":"/forbidden/x"}"#, "cwd_not_allowed", &["/cwd"]),
    ];
    for (body, code, expected) in cases {
        let answer = harness.post(LAUNCH, body).await;
        assert_eq!(answer.problem(), *code, "{body}");
        assert_eq!(places(&answer.json()), *expected, "{body}");
    }
    for (field, good, bad) in [("model", 128, 129), ("sessionId", 128, 129), ("name", 200, 201)] {
        let body =
            |length: usize| format!(r#"{{"type":"nope","prompt":"a","{field}":"{}"}}"#, "x".repeat(length));
        assert_eq!(harness.post(LAUNCH, &body(good)).await.problem(), "runner_unknown", "{field}");
        assert_eq!(harness.post(LAUNCH, &body(bad)).await.problem(), "validation_failed", "{field}");
    }
    let nested = |depth: usize| {
        format!(r#"{{"prompt":"","metadata":{}{}}}"#, r#"{"a":"#.repeat(depth) + "1", "}".repeat(depth))
    };
    assert_eq!(harness.post(LAUNCH, &nested(63)).await.problem(), "validation_failed");
    assert_eq!(harness.post(LAUNCH, &nested(64)).await.problem(), "malformed_json");
    assert_eq!(harness.get("/api/agents").await.text, "[]", "nothing was launched");
}

#[actix_web::test]
async fn what_is_json_and_yet_cannot_be_read_everywhere_is_told_as_that() {
    let harness = Harness::new();
    let cases = [
        (r#"{"prompt":"\ud800"}"#, "contains an unpaired surrogate"),
        (r#"{"prompt":"a","metadata":{"a":-1e400}}"#, "contains a number that is too large for a double"),
    ];
    for (body, expected) in cases {
        let problem = harness.post(LAUNCH, body).await.json();
        let detail = problem["errors"][0]["detail"].as_str().unwrap();
        assert!(detail.starts_with(expected), "{detail}");
    }
    let name = harness.post(LAUNCH, r#"{"prompt":"a","\ud800":1}"#).await.json();
    assert_eq!(name["detail"], "a field name contains an unpaired surrogate");
}

#[actix_web::test]
async fn bodies_have_a_type_and_a_size() {
    let harness = Harness::with(|config, _| config.request_bytes = 100);
    let body = r#"{"type":"nope","prompt":"a"}"#;
    let send = |kind: &'static str, body: String| {
        harness.call(TestRequest::post().uri(LAUNCH).insert_header(("content-type", kind)).set_payload(body))
    };
    assert_eq!(send("application/json; charset=utf-8", body.into()).await.problem(), "runner_unknown");
    assert_eq!(send("text/plain", body.into()).await.problem(), "unsupported_media_type");
    assert_eq!(send("application/jsonx", body.into()).await.problem(), "unsupported_media_type");
    let untyped = harness.call(TestRequest::post().uri(LAUNCH).set_payload(body)).await;
    assert_eq!(untyped.problem(), "unsupported_media_type");
    assert_eq!(send("application/json", format!("{body:100}")).await.problem(), "runner_unknown");
    assert_eq!(send("application/json", format!("{body:101}")).await.problem(), "payload_too_large");
}

#[actix_web::test]
async fn bad_parameters_are_named() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    let agent = format!("/api/agents/{id}");
    let cases = [
        (format!("{LAUNCH}?limit=0"), "validation_failed", "limit"),
        (format!("{LAUNCH}?limit=x"), "validation_failed", "limit"),
        (format!("{LAUNCH}?status=gone"), "validation_failed", "status"),
        (format!("{LAUNCH}?before=x"), "validation_failed", "before"),
        (format!("{LAUNCH}?deleted=1"), "validation_failed", "deleted"),
        (format!("{agent}/messages?raw=yes"), "validation_failed", "raw"),
        (format!("{agent}/messages?last=0"), "validation_failed", "last"),
        (format!("{agent}/messages?last=-1"), "validation_failed", "last"),
        (format!("{agent}/messages?last=1&since=5"), "cursor_ahead", ""),
        (format!("{agent}/messages?since=x"), "cursor_malformed", ""),
        (format!("{agent}/messages?since="), "cursor_malformed", ""),
        (format!("{agent}/messages?since=5"), "cursor_ahead", ""),
        (format!("{agent}/events?since=-1"), "cursor_malformed", ""),
        (format!("{agent}/events?since=5"), "cursor_ahead", ""),
        ("/ws?dialect=nope".to_owned(), "dialect_unknown", "dialect"),
        (format!("{agent}/events?dialect=nope"), "dialect_unknown", "dialect"),
        (format!("{agent}/messages?dialect=stream"), "dialect_unknown", "dialect"),
        ("/ws?batch=0".to_owned(), "validation_failed", "batch"),
        ("/ws?batch=1001".to_owned(), "validation_failed", "batch"),
        ("/ws".to_owned(), "upgrade_required", ""),
    ];
    for (uri, code, place) in cases {
        let answer = harness.get(&uri).await;
        assert_eq!(answer.problem(), code, "{uri}");
        assert_eq!(places(&answer.json()).join(","), place, "{uri}");
    }
    assert_eq!(harness.get(&format!("{agent}/messages?since=9999999999")).await.json()["head"], 4);
    let accept = TestRequest::get().uri(&format!("{agent}/events")).insert_header(("accept", "text/html"));
    assert_eq!(harness.call(accept).await.problem(), "not_acceptable");
    let key = TestRequest::post().uri(LAUNCH).insert_header(("idempotency-key", "a b"));
    let key = key
        .insert_header(("content-type", "application/json"))
        .set_payload(r#"{"type":"script","prompt":"a"}"#);
    assert_eq!(places(&harness.call(key).await.json()), ["Idempotency-Key"]);
    assert_eq!(places(&harness.post("/api/tickets", r#"{"path":"/api/agents"}"#).await.json()), ["/path"]);
    assert_eq!(
        places(&harness.post(&format!("{agent}/messages"), r#"{"content":7}"#).await.json()),
        ["/content"]
    );
}

#[actix_web::test]
async fn an_agent_that_is_not_there_is_not_found_everywhere() {
    let harness = Harness::new();
    for agent in
        [UNKNOWN, "/api/agents/x", "/api/agents/%00", "/api/agents/{0195bd2f-0a00-7000-8000-000000000000}"]
    {
        for (method, rest) in [
            (Method::GET, ""),
            (Method::DELETE, ""),
            (Method::GET, "/status"),
            (Method::GET, "/messages"),
            (Method::GET, "/events"),
            (Method::POST, "/cancel"),
        ] {
            let request = TestRequest::with_uri(&format!("{agent}{rest}")).method(method.clone());
            assert_eq!(harness.call(request).await.problem(), "not_found", "{method} {agent}{rest}");
        }
        assert_eq!(
            harness.post(&format!("{agent}/messages"), r#"{"content":"a"}"#).await.problem(),
            "not_found"
        );
    }
    assert_eq!(harness.get("/nowhere").await.problem(), "not_found");
}

#[actix_web::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let harness = Harness::new();
    for (uri, allow) in [
        ("/api/agents", "GET, HEAD, POST"),
        ("/api/agents/active", "GET, HEAD"),
        (UNKNOWN, "GET, HEAD, PATCH, DELETE"),
        ("/api/tickets", "POST"),
        ("/api/session", "POST, DELETE"),
        ("/ws", "GET"),
        ("/api/chat", "GET, POST"),
        ("/api/chat/c1/stream", "GET"),
        ("/api/chat/c1/stop", "POST"),
        ("/healthz", "GET, HEAD"),
    ] {
        let answer = harness.call(TestRequest::default().method(Method::PUT).uri(uri)).await;
        assert_eq!(
            (answer.problem(), answer.header("allow")),
            ("method_not_allowed".to_owned(), allow),
            "{uri}"
        );
    }
}

#[actix_web::test]
async fn too_much_is_told_when_to_come_again() {
    let harness = Harness::with(|config, limits| {
        limits.admission.launches_per_minute = 2;
        config.connections = 0;
        config.tickets = 0;
        limits.admission.queued_turns = 1;
    });
    let id = harness.launch("hang").await;
    let keyed = || {
        let launch = TestRequest::post().uri(LAUNCH).insert_header(("idempotency-key", "k"));
        launch
            .insert_header(("content-type", "application/json"))
            .set_payload(r#"{"type":"script","prompt":"say a"}"#)
    };
    let first = harness.call(keyed()).await;
    let answer = harness.post(LAUNCH, r#"{"type":"script","prompt":"a"}"#).await;
    assert_eq!(answer.problem(), "rate_limited");
    let again = harness.call(keyed()).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (first.status, "true"));
    assert_eq!(again.json()["id"], first.json()["id"], "what only comes again is no launch");
    let wait: u64 = answer.header("retry-after").parse().unwrap();
    assert!((1..=31).contains(&wait), "{wait}");
    let mut codes = BTreeSet::new();
    for _ in 0..3 {
        let sent = harness.post(&format!("/api/agents/{id}/messages"), r#"{"content":"b"}"#).await;
        if sent.status != 202 {
            codes.insert(sent.problem());
        }
    }
    assert_eq!(codes, BTreeSet::from(["queue_full".to_owned()]));
    let stream = TestRequest::get()
        .uri(&format!("/api/agents/{id}/events"))
        .insert_header(("accept", "text/event-stream"));
    let answer = harness.call(stream).await;
    assert_eq!((answer.problem(), answer.header("retry-after")), ("capacity_exhausted".to_owned(), "1"));
    let ticket = harness.call(TestRequest::post().uri("/api/tickets")).await;
    assert_eq!(ticket.problem(), "capacity_exhausted");
}

#[actix_web::test]
async fn a_deleted_agent_takes_no_message() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    harness.call(TestRequest::delete().uri(&format!("/api/agents/{id}"))).await;
    let sent = harness.post(&format!("/api/agents/{id}/messages"), r#"{"content":"b"}"#).await;
    assert_eq!(sent.problem(), "agent_deleted");
}

#[actix_web::test]
async fn a_server_that_cannot_work_says_so() {
    let harness = Harness::new();
    harness.store.set_healthy(false);
    let unready = harness.get("/readyz").await;
    assert_eq!((unready.status.as_u16(), &*unready.problem()), (503, "store_busy"), "{unready:?}");
    harness.service.shutdown(tokenrail_application::AtStop::Keep, std::time::Duration::from_secs(5)).await;
    let answer = harness.post(LAUNCH, r#"{"type":"script","prompt":"a"}"#).await;
    assert_eq!((answer.problem(), answer.header("retry-after")), ("shutting_down".to_owned(), "1"));
}

#[test]
fn every_failure_of_the_store_has_its_own_answer() {
    let cases = [
        (StoreError::Busy, "store_busy", 503, true),
        (StoreError::Unreachable("secret".into()), "store_busy", 503, true),
        (StoreError::Full, "storage_full", 507, true),
        (StoreError::OutcomeUnknown("x".into()), "outcome_unknown", 503, true),
        (StoreError::Corrupt("secret".into()), "store_failed", 500, false),
        (StoreError::Unavailable("secret".into()), "store_failed", 500, false),
    ];
    for (error, code, status, retryable) in cases {
        let problem = Problem::from(Refusal::Store(error));
        let json = String::from_utf8(problem.to_json("r1", "")).unwrap();
        assert!(!json.contains("secret"), "causes go to the log only: {json}");
        let told = (problem.code.as_str(), problem.code.status().as_u16(), problem.code.retryable());
        assert_eq!(told, (code, status, retryable));
    }
}

/// A test in this crate provokes each code, and names it. A new code needs such a test.
#[test]
fn every_code_is_documented_and_provoked() {
    let tests = [
        include_str!("problems.rs"),
        include_str!("guards.rs"),
        include_str!("event_stream.rs"),
        include_str!("agents.rs"),
        include_str!("socket.rs"),
        include_str!("bounds.rs"),
        include_str!("copies.rs"),
        include_str!("permissions.rs"),
        include_str!("changes.rs"),
        include_str!("images.rs"),
        include_str!("nodes.rs"),
    ];
    for code in Code::ALL {
        let (word, status) = (code.as_str(), code.status().as_u16());
        let (retryable, when) = (if code.retryable() { "yes" } else { "no" }, code.when());
        let row = format!("| `{word}` | {status} | {retryable} | {when} |\n");
        assert!(PROTOCOL.contains(&row), "docs/reference/protocol/problems.md must have the row {row}");
        let quoted = format!("\"{word}\"");
        assert!(tests.iter().any(|test| test.contains(&quoted)), "no test provokes {word}");
    }
    let documented = PROTOCOL.lines().filter(|line| {
        line.starts_with("| `")
            && line.contains("` | ")
            && line.split(" | ").nth(1).is_some_and(|status| status.parse::<u16>().is_ok())
    });
    assert_eq!(
        documented.count(),
        Code::ALL.len(),
        "each code stands once in docs/reference/protocol/problems.md"
    );
}

/// The `type` of a problem is a working link. It needs no token, because a missing token is a problem too.
#[actix_web::test]
async fn every_code_has_a_page_that_explains_it() {
    let harness = Harness::new();
    let page = |code: &str| {
        let request = TestRequest::get().uri(&format!("/problems/{code}")).insert_header(("host", HOST));
        harness.call_raw(request)
    };
    for code in Code::ALL {
        let answer = page(code.as_str()).await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("content-type")),
            (200, "text/html; charset=utf-8")
        );
        assert!(
            answer.text.contains(code.title()) && answer.text.contains(code.status().as_str()),
            "{code:?}"
        );
        let sentence = answer.text.replace("<code>", "`").replace("</code>", "`");
        assert!(sentence.contains(code.when()), "{code:?}");
        assert!(!code.when().contains(['<', '>', '&', '"']) && !code.title().contains(['<', '>', '&']));
    }
    assert_eq!(page("nonsense").await.problem(), "not_found");
    assert_eq!(page("").await.problem(), "not_found");
}

#[actix_web::test]
async fn a_query_that_is_no_query_is_refused() {
    let harness = Harness::new();
    // `%FF` is not valid UTF-8. It is decoded leniently, and the value is then not a number.
    assert_eq!(harness.get("/api/agents?limit=%FF").await.problem(), "validation_failed");
    let socket = TestRequest::get().uri("/ws").insert_header(("upgrade", "websocket"));
    let socket =
        socket.insert_header(("connection", "upgrade")).insert_header(("sec-websocket-version", "13"));
    assert_eq!(harness.call(socket.insert_header(("sec-websocket-key", "x"))).await.problem(), "bad_request");
}
