//! Tickets and login codes on several servers: each is accepted once, by any of them.

use reqwest::header::{ACCEPT, CONNECTION, HeaderMap, HeaderValue, ORIGIN, SET_COOKIE, UPGRADE};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokenrail_test_postgres::{Database, Flush, Server, database};

use super::config;
use super::nodes::node_with;
use crate::harness::TestServer;

/// A server that these tests may show more wrong credentials than others may.
fn node(database: &Database, name: &str) -> TestServer {
    node_with(format!("{}[limits]\nfailed_logins_per_minute = 1000\n", config(database)), name)
}

/// Shows a server a ticket for a WebSocket, without the token.
async fn open_socket(server: &TestServer, ticket: &str) -> StatusCode {
    let url = format!("http://{}/ws?ticket={ticket}", server.authority());
    let headers = [
        (CONNECTION, "Upgrade"),
        (UPGRADE, "websocket"),
        ("sec-websocket-version".parse().unwrap(), "13"),
        ("sec-websocket-key".parse().unwrap(), "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let headers: HeaderMap =
        headers.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect();
    server.http.get(url).headers(headers).send().await.unwrap().status()
}

async fn ticket(server: &TestServer, body: &Value) -> String {
    let (status, made) = server.post("/api/tickets", body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made["ticket"].as_str().unwrap().to_owned()
}

async fn log_in(server: &TestServer, code: &str) -> (StatusCode, Option<String>) {
    let url = format!("http://{}/api/session", server.authority());
    let origin = format!("http://{}", server.authority());
    let request = server.http.post(url).header(ORIGIN, origin).json(&json!({ "code": code }));
    let answer = request.send().await.unwrap();
    let cookie = answer.headers().get(SET_COOKIE).map(|cookie| cookie.to_str().unwrap().to_owned());
    (answer.status(), cookie)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_of_one_server_opens_one_socket_at_another() {
    let database = database();
    let (first, second) = (node(&database, "first"), node(&database, "second"));
    let made = ticket(&first, &json!({ "path": "/ws" })).await;
    assert_eq!(open_socket(&second, &made).await, StatusCode::SWITCHING_PROTOCOLS);
    for server in [&first, &second] {
        assert_eq!(open_socket(server, &made).await, StatusCode::UNAUTHORIZED, "it is used");
    }
    for _ in 0..20 {
        let made = ticket(&first, &json!({})).await;
        let opened = tokio::join!(open_socket(&first, &made), open_socket(&second, &made));
        let mut opened = [opened.0.as_u16(), opened.1.as_u16()];
        opened.sort_unstable();
        assert_eq!(opened, [101, 401], "one of two that are shown it at the same moment accepts it");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_source_goes_on_at_another_server_when_its_own_dies() {
    let database = database();
    let (mut home, first, second) =
        (node(&database, "home"), node(&database, "first"), node(&database, "second"));
    let id = home.launch_to_completion(&json!({ "deltas": 20 })).await;
    let path = format!("/api/agents/{id}/events");
    let made = ticket(&home, &json!({ "path": path })).await;
    let read = async |server: &TestServer, last: Option<u64>| {
        let url = format!("http://{}{path}?ticket={made}", server.authority());
        let mut request = server.http.get(url).header(ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last.to_string());
        }
        let answer = request.send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    let (status, whole) = read(&first, None).await;
    assert_eq!(status, StatusCode::OK, "{whole}");
    home.kill_9();
    for server in [&second, &first] {
        let (status, rest) = read(server, Some(5)).await;
        assert_eq!(status, StatusCode::OK, "{rest}");
        let has = |number: u64| rest.contains(&format!("\"sequenceNumber\":{number},"));
        assert!(has(6) && !has(5), "{rest}");
        assert_eq!(read(server, None).await.0, StatusCode::UNAUTHORIZED, "it does not open another stream");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_code_of_one_server_starts_one_session_at_another() {
    let database = database();
    let (mut first, second) = (node(&database, "first"), node(&database, "second"));
    for _ in 0..20 {
        let (status, made) = first.post("/api/session/codes", &json!({})).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        let code = made["code"].as_str().unwrap();
        let ((one, _), (other, _)) = tokio::join!(log_in(&first, code), log_in(&second, code));
        let mut statuses = [one.as_u16(), other.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 401], "one of two that are shown it at the same moment accepts it");
        assert_eq!(log_in(&second, code).await.0, StatusCode::UNAUTHORIZED, "it is used");
    }
    let output = first.command(&["open", "--print"]).output().unwrap();
    let link = String::from_utf8(output.stdout).unwrap();
    let code = link.trim().split_once("#code=").unwrap_or_else(|| panic!("{link}")).1;
    assert!(first.stop().success());
    let (status, cookie) = log_in(&second, code).await;
    assert!(status == StatusCode::NO_CONTENT && cookie.is_some(), "{status}: it outlives its server");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_database_is_away_a_ticket_is_not_wrong_but_cannot_be_checked() {
    let postgres = Server::start(Flush::Off);
    let database = postgres.database();
    let server = node(&database, "only");
    let made = ticket(&server, &json!({})).await;
    postgres.stop();
    assert_eq!(open_socket(&server, &made).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(open_socket(&server, "0123456789abcdef").await, StatusCode::UNAUTHORIZED, "a guess");
    let answer = server.request(Method::POST, "/api/tickets").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
}
