//! S03, S08: who has access.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{TestServer, fake_config};
use crate::raw::{self, HANDSHAKE};
use crate::routes;

/// A server that does not limit failed logins, because these tests make dozens of them.
fn patient_server() -> TestServer {
    TestServer::start_with(&(fake_config() + "[limits]\nfailed_logins_per_minute = 100000\n"))
}

/// The problem without the parts that differ between requests.
fn same_part(body: &str) -> Value {
    let mut problem: Value = serde_json::from_str(body).unwrap_or_default();
    problem["requestId"].take();
    problem
}

async fn refused(server: &TestServer, request: String, what: &str) -> Value {
    refused_as(server, request, "unauthenticated", what).await
}

async fn refused_as(server: &TestServer, request: String, code: &str, what: &str) -> Value {
    let answer = raw::send(server, request).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (401, code), "{what}");
    assert!(answer.header("www-authenticate").is_some(), "{what}");
    same_part(&answer.body)
}

#[tokio::test]
async fn s03_no_route_is_served_without_the_token() {
    let server = TestServer::start();
    let host = server.authority();
    let (mut bodies, mut of_openai, mut of_mcp) = (Vec::new(), Vec::new(), Vec::new());
    for (method, path) in routes::all(&server).await {
        let text = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        if routes::OPEN.contains(&path.as_str()) {
            assert_eq!(raw::send(&server, text).await.unwrap().status, 200, "{path}");
        } else if path == "/socket.io/" {
            // A Socket.IO client shows the token in its first packet. `socket_io` tests that nothing comes before.
            let answer = raw::send(&server, text).await.unwrap();
            assert_eq!((answer.status, answer.body.contains("\"code\":0")), (400, true), "{}", answer.body);
        } else if path.starts_with("/problems/") {
            assert_eq!(raw::send(&server, text).await.unwrap().status, 404, "no such code, and no secret");
        } else if path.starts_with("/openai/") {
            let what = format!("{method} {path}");
            of_openai.push(refused_as(&server, text, "invalid_api_key", &what).await);
        } else if path == "/mcp" {
            of_mcp.push(refused(&server, text, "MCP").await);
        } else {
            bodies.push(refused(&server, text, &format!("{method} {path}")).await);
        }
    }
    let unknown = format!("GET /nowhere HTTP/1.1\r\nHost: {host}\r\n\r\n");
    bodies.push(refused(&server, unknown, "what is not there").await);
    let upgrade = format!("GET /ws HTTP/1.1\r\nHost: {host}\r\n{}\r\n\r\n", HANDSHAKE.join("\r\n"));
    bodies.push(refused(&server, upgrade, "the WebSocket").await);
    for bodies in [&mut bodies, &mut of_openai, &mut of_mcp] {
        bodies.dedup();
        assert_eq!(bodies.len(), 1, "the same words for everybody: {bodies:?}");
    }
}

#[tokio::test]
async fn s03_what_only_looks_like_the_token_is_refused_in_the_same_words() {
    let server = patient_server();
    let token = server.token().to_owned();
    let wrong = "0".repeat(token.len());
    let flipped: String = token.chars().map(|digit| if digit == 'a' { 'b' } else { digit }).rev().collect();
    let lines = [
        String::new(),
        "Authorization:".to_owned(),
        "Authorization: Bearer".to_owned(),
        "Authorization: Bearer ".to_owned(),
        format!("Authorization: Bearer {wrong}"),
        format!("Authorization: Bearer {flipped}"),
        format!("Authorization: Bearer {}", &token[..63]),
        format!("Authorization: Bearer {token}0"),
        format!("Authorization: Bearer {token},{token}"),
        format!("Authorization: Bearer {}", token.to_uppercase() + "A"),
        format!("Authorization: Basic {token}"),
        format!("Authorization: Token {token}"),
        format!("Authorization: {token}"),
        format!("Authorization: Bearer {wrong}\r\nAuthorization: Bearer {token}"),
        format!("Authorization: Bearer {token}\r\nAuthorization: Bearer {wrong}"),
        format!("Proxy-Authorization: Bearer {token}"),
        format!("Cookie: token={token}; Authorization=Bearer {token}"),
        format!("X-Api-Key: {wrong}"),
        format!("X-Api-Key: Bearer {token}"),
        format!("X-Api-Key: {token}\r\nX-Api-Key: {token}"),
        format!("X-Api-Key: {token}\r\nAuthorization: Bearer {wrong}"),
        format!("Sec-WebSocket-Protocol: tokenrail.v1, bearer.{token}"),
    ];
    let mut bodies = Vec::new();
    for line in &lines {
        let line = if line.is_empty() { String::new() } else { format!("{line}\r\n") };
        let text = format!("GET /api/agents HTTP/1.1\r\nHost: {}\r\n{line}\r\n", server.authority());
        bodies.push(refused(&server, text, &line).await);
    }
    for query in [format!("token={token}"), format!("access_token={token}"), format!("ticket={token}")] {
        let text = format!("GET /api/agents?{query} HTTP/1.1\r\nHost: {}\r\n\r\n", server.authority());
        bodies.push(refused(&server, text, &query).await);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "which of them it was is not told: {bodies:?}");
    assert!(!bodies[0].to_string().contains(&token[..8]), "and nothing of it is repeated");
}

/// The lifetime of a ticket, and a little more.
const AGE: Duration = Duration::from_millis(30_500);

async fn ticket(server: &TestServer, body: &Value) -> Value {
    let (status, ticket) = server.post("/api/tickets", body).await;
    assert_eq!(status, 201, "{ticket}");
    ticket
}

/// Requests a WebSocket with a ticket, from a page of the server. Returns the status.
async fn upgrade(server: &TestServer, ticket: &str) -> u16 {
    let host = server.authority();
    let text = format!(
        "GET /ws?ticket={ticket} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n{}\r\n\r\n",
        HANDSHAKE.join("\r\n")
    );
    raw::send(server, text).await.unwrap().status
}

/// Sends a request with a ticket. Returns the status.
async fn asked(server: &TestServer, method: &str, path: &str, ticket: &str, accept: &str) -> u16 {
    let host = server.authority();
    let text = format!(
        "{method} {path}?ticket={ticket} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nAccept: {accept}\r\n\r\n"
    );
    raw::send(server, text).await.unwrap().status
}

fn name(ticket: &Value) -> &str {
    ticket["ticket"].as_str().unwrap()
}

#[tokio::test]
async fn s08_a_ticket_opens_one_stream_once() {
    let server = patient_server();
    let id = server.launch_to_completion(&json!({ "deltas": 1 })).await;
    let events = format!("/api/agents/{id}/events");
    let stream = "text/event-stream";

    let once = ticket(&server, &json!({})).await;
    assert_eq!(upgrade(&server, name(&once)).await, 101);
    assert_eq!(upgrade(&server, name(&once)).await, 401, "used");
    assert_eq!(asked(&server, "GET", &events, name(&once), stream).await, 401, "used");

    let bound = ticket(&server, &json!({ "path": events })).await;
    assert_eq!(upgrade(&server, name(&bound)).await, 401, "it is for another path");
    assert_eq!(asked(&server, "GET", &events, name(&bound), stream).await, 401, "which has used it up");
    let bound = ticket(&server, &json!({ "path": events })).await;
    assert_eq!(asked(&server, "GET", &events, name(&bound), stream).await, 200);

    for (method, path, accept) in [
        ("GET", "/api/agents", "application/json"),
        ("GET", "/api/agents", stream),
        ("GET", events.as_str(), "application/json"),
        ("GET", "/metrics", stream),
        ("POST", "/api/tickets", stream),
        ("DELETE", &format!("/api/agents/{id}"), stream),
    ] {
        let other = ticket(&server, &json!({})).await;
        assert_eq!(asked(&server, method, path, name(&other), accept).await, 401, "{method} {path}");
    }
    let real = ticket(&server, &json!({})).await;
    let real = name(&real);
    for guess in
        ["", "0", &"0".repeat(real.len()), &real[1..], &real.to_uppercase(), &format!("{real}%00"), "%ff"]
    {
        let status = upgrade(&server, guess).await;
        assert!(matches!(status, 400 | 401), "{guess}: {status}");
    }
    assert_eq!(upgrade(&server, real).await, 101, "no guess has used it up");
}

#[tokio::test]
async fn s08_a_ticket_of_a_page_is_good_for_that_page_only() {
    let server = TestServer::start();
    let own = format!("http://{}", server.authority());
    let sibling = own.replace("127.0.0.1", "localhost");
    for (origin, expected) in [(Some(&own), 101), (None, 403), (Some(&sibling), 403)] {
        let asked = server.request(Method::POST, "/api/tickets").header("origin", &own).send().await.unwrap();
        let ticket: Value = asked.json().await.unwrap();
        let origin = origin.map_or_else(String::new, |origin| format!("Origin: {origin}\r\n"));
        let text = format!(
            "GET /ws?ticket={} HTTP/1.1\r\nHost: {}\r\n{origin}{}\r\n\r\n",
            name(&ticket),
            server.authority(),
            HANDSHAKE.join("\r\n")
        );
        assert_eq!(raw::send(&server, text).await.unwrap().status, expected, "{origin}");
    }
}

/// Opens an event stream with a ticket. `last_event_id` is set if the client reconnects. Returns the status.
async fn comes(server: &TestServer, path: &str, ticket: &str, last_event_id: Option<&str>) -> u16 {
    let back = last_event_id.map_or_else(String::new, |id| format!("Last-Event-ID: {id}\r\n"));
    let text = format!(
        "GET {path}?ticket={ticket} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n{back}\r\n",
        server.authority()
    );
    raw::send(server, text).await.unwrap().status
}

/// The path of the events of a new agent that has completed its turn.
async fn path_of_events(server: &TestServer) -> String {
    let id = server.launch_to_completion(&json!({ "deltas": 1 })).await;
    format!("/api/agents/{id}/events")
}

#[tokio::test]
async fn s08_a_ticket_from_the_log_of_a_proxy_opens_one_stream_for_who_was_there_and_nothing_else() {
    let mut server = patient_server();
    let (events, others) = (path_of_events(&server).await, path_of_events(&server).await);
    let made = ticket(&server, &json!({ "path": events })).await;
    let logged = name(&made).to_owned();
    assert_eq!(comes(&server, &events, &logged, None).await, 200);
    for restarted in [false, true] {
        if restarted {
            server.kill_and_start_again();
        }
        assert_eq!(comes(&server, &events, &logged, Some("1")).await, 200, "restarted: {restarted}");
        assert_eq!(comes(&server, &events, &logged, None).await, 401, "anew; restarted: {restarted}");
        assert_eq!(comes(&server, &others, &logged, Some("1")).await, 401, "another agent");
        assert_eq!(asked(&server, "GET", "/api/agents", &logged, "text/event-stream").await, 401);
        assert_eq!(upgrade(&server, &logged).await, 401);
        let changed = if logged.starts_with('0') { "1" } else { "0" };
        let changed = format!("{changed}{}", &logged[1..]);
        assert_eq!(comes(&server, &events, &changed, Some("1")).await, 401);
    }
    let token = server.data_dir().join("token");
    server.kill_9();
    std::fs::remove_file(token).unwrap();
    server.start_again();
    assert_eq!(comes(&server, &events, &logged, Some("1")).await, 401, "there is a new token");
}

#[tokio::test]
async fn s08_a_ticket_that_has_opened_nothing_opens_nothing_later_either() {
    let mut server = patient_server();
    let (events, others) = (path_of_events(&server).await, path_of_events(&server).await);
    let path = json!({ "path": events });
    let (wrongly_used, unused) = (ticket(&server, &path).await, ticket(&server, &path).await);
    assert_eq!(comes(&server, &others, name(&wrongly_used), None).await, 401, "it is for another path");
    for restarted in [false, true] {
        if restarted {
            server.kill_and_start_again();
            assert_eq!(comes(&server, &events, name(&unused), Some("0")).await, 401, "never used");
        }
        for last_event_id in [Some("0"), Some("1"), None] {
            let status = comes(&server, &events, name(&wrongly_used), last_event_id).await;
            assert_eq!(status, 401, "{last_event_id:?}; restarted: {restarted}");
        }
    }
}

#[tokio::test]
async fn s08_a_ticket_is_good_for_coming_back_for_a_bounded_time() {
    let server = TestServer::start_with(&format!("[limits]\nticket_resume_s = 1\n{}", fake_config()));
    let id = server.launch_to_completion(&json!({ "deltas": 1 })).await;
    let events = format!("/api/agents/{id}/events");
    let made = ticket(&server, &json!({ "path": events })).await;
    assert_eq!(comes(&server, &events, name(&made), None).await, 200);
    // An attempt before that time would succeed, so the test waits for the whole time.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(comes(&server, &events, name(&made), Some("1")).await, 401);
}

#[tokio::test]
async fn s08_tickets_are_for_streams_and_for_no_other_address() {
    let server = TestServer::start();
    for path in
        ["/api/agents", "/metrics", "/ws/../api/agents", "//ws", "/ws?x", "http://evil.test/ws", "/ws ", ""]
    {
        let (status, problem) = server.post("/api/tickets", &json!({ "path": path })).await;
        assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("validation_failed")), "{path}");
    }
}

#[tokio::test]
async fn s08_a_ticket_does_not_outlive_its_time() {
    let server = TestServer::start();
    let id = server.launch(&json!({ "deltas": 1 })).await;
    let events = format!("/api/agents/{id}/events");
    let late = ticket(&server, &json!({})).await;
    let for_events = ticket(&server, &json!({ "path": events })).await;
    // An attempt would use the ticket up, so the test waits for its whole lifetime.
    tokio::time::sleep(AGE).await;
    assert_eq!(upgrade(&server, name(&late)).await, 401);
    for last_event_id in [Some("0"), None] {
        let status = comes(&server, &events, name(&for_events), last_event_id).await;
        assert_eq!(status, 401, "{last_event_id:?}");
    }
}

#[tokio::test]
async fn s03_the_token_of_another_server_is_no_token_here() {
    let (server, other) = (TestServer::start(), TestServer::start());
    assert_ne!(server.token(), other.token());
    let request = server.http.request(Method::GET, format!("http://{}/api/agents", server.authority()));
    assert_eq!(request.bearer_auth(other.token()).send().await.unwrap().status(), 401);
}
