//! S33: sessions of browsers. What their cookie opens, and what it never does.

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::harness::{TestServer, fake_config};
use crate::raw::{self, HANDSHAKE};
use crate::routes::UNKNOWN;

const CSRF: (&str, &str) = ("tokenrail-csrf", "1");

fn own(server: &TestServer) -> String {
    format!("http://{}", server.authority())
}

/// A request without the token.
fn bare(server: &TestServer, method: Method, path: &str) -> RequestBuilder {
    server.http.request(method, own(server) + path)
}

async fn log_in(server: &TestServer, code: &Value) -> Response {
    let request = bare(server, Method::POST, "/api/session").header("origin", own(server));
    request.json(&json!({ "code": code })).send().await.unwrap()
}

async fn code(server: &TestServer) -> Value {
    let made = server.request(Method::POST, "/api/session/codes").send().await.unwrap();
    assert_eq!(made.status(), 201);
    made.json::<Value>().await.unwrap()["code"].take()
}

/// The whole `Set-Cookie` of a new session.
async fn started(server: &TestServer) -> String {
    let answer = log_in(server, &code(server).await).await;
    assert_eq!(answer.status(), 204);
    answer.headers()["set-cookie"].to_str().unwrap().to_owned()
}

async fn session(server: &TestServer) -> String {
    started(server).await.split(';').next().unwrap().to_owned()
}

/// The status of a read with this cookie.
async fn read(server: &TestServer, cookie: &str) -> u16 {
    let request = bare(server, Method::GET, "/api/agents").header("cookie", cookie);
    request.send().await.unwrap().status().as_u16()
}

/// Tries to cancel an agent that does not exist. 404 means that the server would have done it.
async fn change(server: &TestServer, cookie: &str, headers: &[(&str, &str)]) -> u16 {
    let mut request =
        bare(server, Method::POST, &format!("/api/agents/{UNKNOWN}/cancel")).header("cookie", cookie);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn s33_the_cookie_is_unreadable_for_scripts_and_holds_no_token() {
    let server = TestServer::start();
    let cookie = started(&server).await;
    assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000"), "{cookie}");
    assert!(!cookie.contains(server.token()), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(read(&server, cookie).await, 200);
    let host = server.authority();
    let upgrade = format!(
        "GET /ws HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: {cookie}\r\n{}\r\n\r\n",
        HANDSHAKE.join("\r\n")
    );
    assert_eq!(raw::send(&server, upgrade).await.unwrap().status, 101);
}

#[tokio::test]
async fn s33_a_login_code_works_once() {
    let mut server = TestServer::start();
    let used = code(&server).await;
    assert_eq!(log_in(&server, &used).await.status(), 204);
    assert_eq!(log_in(&server, &used).await.status(), 401);
    let before = code(&server).await;
    server.kill_and_start_again();
    assert_eq!(log_in(&server, &before).await.status(), 401, "a restart forgets the unused codes");
    let guess = json!("0".repeat(64));
    assert_eq!(log_in(&server, &guess).await.status(), 401);
}

#[tokio::test]
async fn s33_pages_of_other_origins_change_nothing_with_the_cookie() {
    let config = format!("[server]\nallowed_origins = [\"https://app.example\"]\n{}", fake_config());
    let server = TestServer::start_with(&config);
    let (cookie, own) = (session(&server).await, own(&server));
    let own = ("origin", &*own);
    assert_eq!(change(&server, &cookie, &[own, CSRF]).await, 404, "the page itself can");
    assert_eq!(change(&server, &cookie, &[own]).await, 403, "a form sends no such header");
    assert_eq!(change(&server, &cookie, &[CSRF]).await, 403);
    for site in ["cross-site", "same-site"] {
        assert_eq!(change(&server, &cookie, &[("sec-fetch-site", site), CSRF]).await, 403, "{site}");
    }
    let host = server.authority();
    for other in
        ["https://app.example", "http://evil.example", "http://localhost:3000", "http://127.0.0.1:1", "null"]
    {
        assert_eq!(change(&server, &cookie, &[("origin", other), CSRF]).await, 403, "{other}");
        let upgrade = format!(
            "GET /ws HTTP/1.1\r\nHost: {host}\r\nOrigin: {other}\r\nCookie: {cookie}\r\n{}\r\n\r\n",
            HANDSHAKE.join("\r\n")
        );
        assert_eq!(raw::send(&server, upgrade).await.unwrap().status, 403, "{other}");
    }
    let nobody =
        format!("GET /ws HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n{}\r\n\r\n", HANDSHAKE.join("\r\n"));
    assert_eq!(raw::send(&server, nobody).await.unwrap().status, 403, "a WebSocket needs an Origin");
}

#[tokio::test]
async fn s33_forged_sessions_and_those_of_other_servers_open_nothing() {
    let server = TestServer::start();
    let cookie = session(&server).await;
    let (name, value) = cookie.split_once('=').unwrap();
    let other = session(&TestServer::start()).await;
    let forged = [
        format!("{name}={}", server.token()),
        format!("{name}={}", "0".repeat(value.len())),
        // A later time of issue, with the old signature.
        format!("{name}=00000fffffffffff{}", &value[16..]),
        format!("{name}={}", &value[..value.len() - 2]),
        format!("{name}={value}00"),
        format!("{name}={}", other.split_once('=').unwrap().1),
        format!("other={value}"),
        name.to_owned(),
    ];
    for forged in forged {
        assert_eq!(read(&server, &forged).await, 401, "{forged}");
    }
    assert_eq!(read(&server, &cookie).await, 200);
}

#[tokio::test]
async fn s33_a_session_survives_a_restart_but_neither_its_time_nor_a_new_token() {
    let mut server = TestServer::start_with(&(fake_config() + "[limits]\nsession_s = 3600\n"));
    let cookie = session(&server).await;
    server.kill_and_start_again();
    assert_eq!(read(&server, &cookie).await, 200);
    // A shorter time also holds for sessions that exist.
    server.config = server.config.replace("3600", "1");
    server.kill_and_start_again();
    while read(&server, &cookie).await == 200 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(read(&server, &cookie).await, 401);

    server.config = server.config.replace("session_s = 1", "session_s = 3600");
    let old = server.token().to_owned();
    let rotated = server.command(&["token", "rotate"]).output().unwrap();
    assert!(String::from_utf8_lossy(&rotated.stderr).contains("restart"), "{rotated:?}");
    server.kill_and_start_again();
    let new = String::from_utf8(rotated.stdout).unwrap();
    assert!(server.token() == new.trim() && new.trim() != old);
    assert_eq!(read(&server, &cookie).await, 401, "the token was rotated");
    let with_old = bare(&server, Method::GET, "/api/agents").bearer_auth(old).send().await.unwrap();
    assert_eq!(with_old.status(), 401);
}
