//! S34: Socket.IO clients open a connection before they show their token. Until then they get nothing, and take no
//! place of a client that has one.

use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::harness::{PATIENCE, TestServer};
use crate::raw;

const POLLING: &str = "/socket.io/?EIO=4&transport=polling";
const WEBSOCKET: &str = "/socket.io/?EIO=4&transport=websocket";
/// The number of clients that may have connected without a token.
const LOBBY: usize = 256;

async fn get(server: &TestServer, path: &str, headers: &str) -> raw::Answer {
    let host = server.authority();
    raw::send(server, format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n")).await.unwrap()
}

async fn post(server: &TestServer, path: &str, body: &str) -> raw::Answer {
    let (host, length) = (server.authority(), body.len());
    let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n");
    raw::send(server, format!("{head}Content-Type: text/plain\r\n\r\n{body}")).await.unwrap()
}

/// Opens a session without a token. Returns its path.
async fn open(server: &TestServer) -> Option<String> {
    let answer = get(server, POLLING, "").await;
    let json: Value = serde_json::from_str(answer.body.strip_prefix('0')?).unwrap();
    Some(format!("{POLLING}&sid={}", json["sid"].as_str().unwrap()))
}

#[tokio::test]
async fn s34_who_has_not_shown_the_token_gets_nothing() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "deltas": 1 })).await;
    let (mut socket, _) = connect_async(format!("ws://{}{WEBSOCKET}", server.authority())).await.unwrap();
    let session = open(&server).await.unwrap();
    server.launch_to_completion(&json!({ "deltas": 1 })).await;
    let subscribe = format!("42[\"subscribe\",{{\"agentId\":\"{id}\",\"since\":0}}]");
    socket.send(Message::text(subscribe.clone())).await.unwrap();
    let mut said = Vec::new();
    while let Some(Ok(message)) = timeout(PATIENCE, socket.next()).await.unwrap() {
        said.push(message);
    }
    assert!(
        matches!(&said[..], [Message::Text(open), Message::Close(_)] if open.starts_with("0{")),
        "{said:?}"
    );
    post(&server, &session, &subscribe).await;
    assert_eq!(get(&server, &session, "").await.body, "1");
}

#[tokio::test]
async fn s34_only_the_token_lets_a_client_in() {
    let server = TestServer::start();
    let token = server.token();
    let session = open(&server).await.unwrap();
    let wrong = [
        String::new(),
        "{}".to_owned(),
        json!({ "token": "" }).to_string(),
        json!({ "token": &token[1..] }).to_string(),
        json!({ "token": format!("{token}0") }).to_string(),
        json!({ "token": token.to_uppercase() + "A" }).to_string(),
        json!({ "token": [token] }).to_string(),
    ];
    for auth in wrong {
        post(&server, &session, &format!("40{auth}")).await;
        let answer = get(&server, &session, "").await.body;
        assert!(answer.starts_with("44{\"message\":"), "{auth}: {answer}");
        assert!(!answer.contains(&token[..8]), "{answer}");
    }
    for header in ["Bearer wrong", "Basic x"] {
        let header = format!("Authorization: {header}\r\n");
        let answer = get(&server, POLLING, &header).await;
        assert_eq!((answer.status, answer.body.contains("\"code\":4")), (401, true), "{}", answer.body);
    }
    let mut last = String::new();
    for _ in 0..20 {
        post(&server, &session, "40{\"token\":\"wrong\"}").await;
        last = get(&server, &session, "").await.body;
    }
    assert!(last.contains("\"code\":\"rate_limited\""), "they are failed logins: {last}");
    let guess = format!("{POLLING}&sid={}", "0".repeat(32));
    assert!(get(&server, &guess, "").await.body.contains("Session ID unknown"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s34_clients_without_a_token_take_no_place_of_others() {
    let server = TestServer::start();
    let started = Instant::now();
    let mut opened = 0;
    while open(&server).await.is_some() {
        opened += 1;
        assert!(opened <= LOBBY || Duration::from_secs(10) < started.elapsed(), "there is a limit");
    }
    assert!(LOBBY <= opened, "{opened}");
    let header = format!("Authorization: Bearer {}\r\n", server.token());
    assert_eq!(get(&server, POLLING, &header).await.status, 200, "who has the token is let in");
    let mut request = format!("ws://{}{WEBSOCKET}", server.authority()).into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {}", server.token()).parse().unwrap());
    let (mut socket, _) = connect_async(request).await.unwrap();
    socket.send(Message::text("40")).await.unwrap();
    socket.next().await.unwrap().unwrap();
    let connected = socket.next().await.unwrap().unwrap();
    assert!(connected.to_text().unwrap().starts_with("40{"), "{connected}");
    while open(&server).await.is_none() {
        assert!(started.elapsed() < PATIENCE, "the lobby is never empty");
        sleep(Duration::from_millis(100)).await;
    }
}
