//! The limits of one request and of one peer.

use std::time::Duration;

use actix_web::http::Method;
use actix_web::test::TestRequest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::client::serve;
use super::harness::{Answer, HOST, Harness, TOKEN};

const FAR: &str = "192.0.2.1:1";
const ELSEWHERE: &str = "192.0.2.2:1";
const HERE: &str = "127.0.0.1:1";

async fn login(harness: &Harness, peer: &str, token: &str) -> Answer {
    let request = TestRequest::get().uri("/api/agents").insert_header(("host", HOST));
    let request = request.insert_header(("authorization", format!("Bearer {token}")));
    harness.call_raw(request.peer_addr(peer.parse().unwrap())).await
}

#[actix_web::test]
async fn failed_logins_are_bounded_and_a_good_token_always_passes() {
    let harness = Harness::new();
    for peer in [FAR, HERE] {
        for _ in 0..10 {
            assert_eq!(login(&harness, peer, "wrong").await.problem(), "unauthenticated");
        }
        let limited = login(&harness, peer, "wrong").await;
        assert_eq!(limited.problem(), "rate_limited");
        let wait: u64 = limited.header("retry-after").parse().unwrap();
        assert!((1..=6).contains(&wait), "{wait}");
        assert_eq!(login(&harness, peer, TOKEN).await.status, 200, "others may share the address");
    }
    assert_eq!(login(&harness, ELSEWHERE, "wrong").await.problem(), "unauthenticated", "not concerned");
    let shows_nothing = TestRequest::get().uri("/api/agents").insert_header(("host", HOST));
    let shows_nothing = shows_nothing.peer_addr(FAR.parse().unwrap());
    assert_eq!(harness.call_raw(shows_nothing).await.problem(), "unauthenticated", "that is no login");
}

#[actix_web::test]
async fn guessed_tickets_and_subprotocols_are_failed_logins_too() {
    let harness = Harness::with(|config, _| config.failed_logins_per_minute = 2);
    let socket = |query: &str, offer: &'static str| {
        let request = TestRequest::get().uri(&format!("/ws{query}")).insert_header(("host", HOST));
        harness.call_raw(request.insert_header(("sec-websocket-protocol", offer)))
    };
    assert_eq!(socket("?ticket=x", "tokenrail.v1").await.problem(), "unauthenticated");
    assert_eq!(socket("", "tokenrail.v1, bearer.x").await.problem(), "unauthenticated");
    assert_eq!(socket("?ticket=x", "tokenrail.v1").await.problem(), "rate_limited");
    assert_eq!(socket("", "tokenrail.v1, bearer.x").await.problem(), "rate_limited");
}

#[actix_web::test]
async fn a_far_peer_has_only_so_many_streams() {
    let harness = Harness::with(|config, _| config.streams_per_peer = 0);
    let id = harness.launch("hang").await;
    let stream = |peer: &str| {
        let request = TestRequest::get().uri(&format!("/api/agents/{id}/events"));
        harness.call(request.insert_header(("accept", "text/event-stream")).peer_addr(peer.parse().unwrap()))
    };
    let refused = stream(FAR).await;
    assert_eq!((refused.problem(), refused.header("retry-after")), ("capacity_exhausted".to_owned(), "1"));
    harness.service.cancel(id.parse().unwrap()).await.unwrap();
    assert!(stream(HERE).await.status.is_success(), "this machine has no limit of its own");
}

#[actix_web::test]
async fn the_head_of_a_request_has_a_size() {
    let harness = Harness::with(|config, _| (config.header_bytes, config.headers) = (1000, 5));
    let padded = |bytes: usize| {
        harness.call(TestRequest::get().uri("/api/agents").insert_header(("x-padding", "x".repeat(bytes))))
    };
    assert_eq!(padded(800).await.status, 200);
    assert_eq!(padded(1000).await.problem(), "headers_too_large");
    let long = format!("/api/agents?x={}", "x".repeat(1000));
    assert_eq!(harness.get(&long).await.problem(), "headers_too_large");
    let many = (0..5).fold(TestRequest::get().uri("/healthz"), |request, n| {
        request.insert_header((format!("x-{n}"), "1"))
    });
    assert_eq!(harness.call(many).await.problem(), "headers_too_large");
}

/// Sends bytes to a real server, and reads until the server closes the connection.
async fn exchange(harness: &Harness, said: &str) -> String {
    let served = serve(harness);
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    socket.write_all(said.as_bytes()).await.unwrap();
    let mut heard = String::new();
    let read = socket.read_to_string(&mut heard);
    tokio::time::timeout(Duration::from_secs(20), read).await.expect("the server answers").unwrap();
    served.handle.stop(false).await;
    heard
}

#[actix_web::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let harness = Harness::with(|config, _| config.body_timeout = Duration::from_millis(50));
    let head = format!("POST /api/agents HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {TOKEN}\r\n");
    let body = "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    let heard = exchange(&harness, &format!("{head}{body}")).await;
    let problem: serde_json::Value = serde_json::from_str(heard.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!((&heard[..13], &problem["code"]), ("HTTP/1.1 408 ", &"request_timeout".into()));
}

#[actix_web::test]
async fn whatever_can_be_read_can_be_asked_for_its_headers_alone() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    let agent = format!("/api/agents/{id}");
    let head = |uri: &str| harness.call(TestRequest::default().method(Method::HEAD).uri(uri));
    for uri in ["/healthz", "/readyz", "/metrics", "/openapi.json", "/problems/not_found", "/api/agents"] {
        assert_eq!(head(uri).await.status, 200, "{uri}");
    }
    for rest in ["", "/status", "/messages", "/events"] {
        assert_eq!(head(&format!("{agent}{rest}")).await.status, 200, "{rest}");
    }
    assert_eq!(head(&format!("{agent}/messages")).await.header("tokenrail-head"), "4");
    assert_eq!(head("/api/agents/x").await.status, 404);
    let stream = TestRequest::default().method(Method::HEAD).uri(&format!("{agent}/events"));
    let stream = harness.call(stream.insert_header(("accept", "text/event-stream"))).await;
    assert_eq!((stream.problem(), stream.header("allow")), ("method_not_allowed".to_owned(), "GET"));
    let socket = head("/ws").await;
    assert_eq!((socket.problem(), socket.header("allow")), ("method_not_allowed".to_owned(), "GET"));
}

#[actix_web::test]
async fn an_answer_to_head_has_the_length_and_not_the_body() {
    for (uri, start) in [("/healthz", "HTTP/1.1 200 OK\r\n"), ("/nowhere", "HTTP/1.1 401 ")] {
        let said = format!("HEAD {uri} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n");
        let heard = exchange(&Harness::new(), &said).await;
        assert!(heard.starts_with(start) && heard.ends_with("\r\n\r\n"), "{heard}");
        let length = heard.to_ascii_lowercase();
        let length = length.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        assert!(1 < length.unwrap().parse::<usize>().unwrap(), "{heard}");
    }
}
