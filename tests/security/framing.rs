//! S24, S25: heads and bodies that are too large, too slow, or that two servers would interpret differently.

use futures_util::future::join_all;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::harness::{PATIENCE, TestServer, fake_config};
use crate::raw::{self, request};

const BODY: &str = "{\"type\":\"fake\",\"prompt\":\"{}\"}";
const JSON: &str = "Content-Type: application/json";

async fn agents(server: &TestServer) -> usize {
    server.get("/api/agents").await.as_array().unwrap().len()
}

/// Sends a launch with these header lines and this body, and expects a refusal. Returns the status and the code.
async fn refused(server: &TestServer, what: &str, lines: &[&str], body: &[u8]) -> (u16, String) {
    let lines: Vec<&str> = [JSON].iter().chain(lines).copied().collect();
    let mut bytes = request(server, "POST", "/api/agents", &lines).into_bytes();
    bytes.extend_from_slice(body);
    let answer = raw::send(server, bytes).await;
    assert_eq!(agents(server).await, 0, "{what}: nothing is launched");
    answer.map_or((0, String::new()), |answer| (answer.status, answer.code()))
}

#[tokio::test]
async fn s24_bodies_over_the_limit_are_not_taken() {
    // The body of a launch may also have images, each with 1 KiB besides its data.
    let server = TestServer::start_with(&(fake_config() + "[limits]\nprompt_images = 1\nimage_bytes = 3\n"));
    let over = (1 << 20) + (1 << 10) + 5;
    let length = format!("Content-Length: {over}");
    let found = refused(&server, "by its length", &[&length], &vec![b' '; over]).await;
    assert_eq!(found, (413, "payload_too_large".to_owned()));
    let huge = "Content-Length: 1099511627776";
    let found = refused(&server, "by the length that it claims", &[huge], b"{").await;
    assert_eq!(found.0, 413, "{found:?}");
    let mut chunks = format!("{over:x}\r\n").into_bytes();
    chunks.resize(chunks.len() + over, b' ');
    let found = refused(&server, "in chunks without an end", &["Transfer-Encoding: chunked"], &chunks).await;
    assert_eq!(found, (413, "payload_too_large".to_owned()));
    let found = refused(&server, "asking first", &[huge, "Expect: 100-continue"], b"").await;
    assert!(matches!(found.0, 413 | 417), "{found:?}");
}

#[tokio::test]
async fn s24_heads_over_the_limit_are_not_taken() {
    let server = TestServer::start();
    let many: Vec<String> = (0..200).map(|number| format!("X-{number}: 1")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let long = |bytes: usize| format!("X-Long: {}", "x".repeat(bytes));
    let query = format!("/api/agents?x={}", "x".repeat(300 << 10));
    let cases = [
        ("200 headers", request(&server, "GET", "/api/agents", &many)),
        ("a header of 300 KiB", request(&server, "GET", "/api/agents", &[&long(300 << 10)])),
        ("a header of 40 KiB", request(&server, "GET", "/api/agents", &[&long(40 << 10)])),
        ("a target of 300 KiB", request(&server, "GET", &query, &[])),
    ];
    for (what, bytes) in cases {
        let status = raw::send(&server, bytes).await.map_or(0, |answer| answer.status);
        assert!(matches!(status, 400 | 414 | 431), "{what}: {status}");
    }
    let fine = request(&server, "GET", "/api/agents", &[&long(16 << 10)]);
    assert_eq!(raw::send(&server, fine).await.unwrap().status, 200, "16 KiB are fine");
}

#[tokio::test]
async fn s24_a_head_that_does_not_come_is_not_waited_for() {
    let server = TestServer::start();
    let whole = request(&server, "GET", "/api/agents", &[]);
    let parts = ["", "GET /api/ag", &whole[..whole.len() - 2]].map(async |part| {
        let mut socket = TcpStream::connect(server.authority()).await.unwrap();
        socket.write_all(part.as_bytes()).await.unwrap();
        let said = raw::until_closed(&mut socket, PATIENCE).await.expect("the server closes it");
        let status = raw::parse(&said, true).map_or(0, |answer| answer.status);
        assert!(matches!(status, 0 | 408), "{part:?}: {status}");
    });
    join_all(parts).await;
}

#[tokio::test]
async fn s24_a_body_that_does_not_come_is_not_waited_for() {
    let server = TestServer::start();
    let cases = [
        ("Content-Length: 1000", "{\"prompt\""),
        ("Transfer-Encoding: chunked", "5\r\n{\"pro"),
        ("Content-Length: 1000", ""),
    ];
    let cases = cases.map(async |(line, part)| {
        let mut socket = TcpStream::connect(server.authority()).await.unwrap();
        let head = request(&server, "POST", "/api/agents", &[JSON, line]);
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(part.as_bytes()).await.unwrap();
        let answer = raw::answer(&mut socket).await.expect("an answer");
        assert_eq!((answer.status, answer.code().as_str()), (408, "request_timeout"), "{line}");
    });
    join_all(cases).await;
}

#[tokio::test]
async fn s25_what_two_servers_would_read_differently_is_refused() {
    let server = TestServer::start();
    let smuggled = format!("0\r\n\r\nDELETE /api/agents/x HTTP/1.1\r\nHost: {}\r\n\r\n", server.authority());
    let length = format!("Content-Length: {}", BODY.len());
    let chunk = format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len());
    let cases: [(&str, &[&str], &str); 20] = [
        ("both framings", &["Content-Length: 4", "Transfer-Encoding: chunked"], &smuggled),
        ("both framings, turned round", &["Transfer-Encoding: chunked", &length], &chunk),
        ("two lengths", &[&length, "Content-Length: 4"], BODY),
        ("a list of lengths", &[&format!("{length}, 4")], BODY),
        ("a length with a sign", &[&length.replace(": ", ": +")], BODY),
        ("a negative length", &["Content-Length: -1"], BODY),
        ("a length in hexadecimal", &["Content-Length: 0x1e"], BODY),
        ("a length that overflows", &["Content-Length: 18446744073709551646"], BODY),
        ("a length with words", &[&format!("{length} bytes")], BODY),
        ("an empty length", &["Content-Length:"], BODY),
        ("another coding", &["Transfer-Encoding: xchunked"], &chunk),
        ("a coding twice", &["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], &chunk),
        ("a coding in a list", &["Transfer-Encoding: gzip, chunked"], &chunk),
        ("identity and chunked", &["Transfer-Encoding: identity, chunked"], &chunk),
        ("a space before the colon", &["Transfer-Encoding : chunked"], &chunk),
        ("a folded line", &["X-A: 1\r\n Transfer-Encoding: chunked"], &chunk),
        ("a line that begins with a space", &[" X-A: 1"], BODY),
        ("a name that is no token", &["X(A): 1", &length], BODY),
        ("a NUL in a value", &["X-A: a\0b", &length], BODY),
        ("a line without a colon", &["nonsense", &length], BODY),
    ];
    for (what, lines, body) in cases {
        let (status, code) = refused(&server, what, lines, body.as_bytes()).await;
        assert!(matches!(status, 0 | 400 | 413 | 501), "{what}: {status} {code}");
    }
}

#[tokio::test]
async fn s25_chunks_that_are_no_chunks_are_refused() {
    let server = TestServer::start();
    let size = BODY.len();
    let cases = [
        ("a size that is no number", format!("xyz\r\n{BODY}\r\n0\r\n\r\n")),
        ("a size with a sign", format!("+{size:x}\r\n{BODY}\r\n0\r\n\r\n")),
        ("a size in 0x form", format!("0x{size:x}\r\n{BODY}\r\n0\r\n\r\n")),
        ("a size that overflows", format!("ffffffffffffffff1\r\n{BODY}\r\n0\r\n\r\n")),
        ("a chunk without its end", format!("{size:x}\r\n{BODY}0\r\n\r\n")),
        ("an empty size", format!("\r\n{BODY}\r\n0\r\n\r\n")),
    ];
    for (what, body) in cases {
        let (status, code) = refused(&server, what, &["Transfer-Encoding: chunked"], body.as_bytes()).await;
        assert!(matches!(status, 0 | 400 | 413), "{what}: {status} {code}");
    }
}

#[tokio::test]
async fn s25_heads_that_no_server_should_read_are_refused() {
    let server = TestServer::start();
    let host = format!("Host: {}", server.authority());
    let bearer = raw::bearer(&server);
    let head = |start: &str| format!("{start}\r\n{host}\r\n{bearer}\r\n\r\n");
    let cases = [
        ("two spaces", head("GET  /api/agents HTTP/1.1")),
        ("no version", head("GET /api/agents")),
        ("another version", head("GET /api/agents HTTP/2.0")),
        ("a version of the future", head("GET /api/agents HTTP/1.10")),
        ("a method that is no token", head("G(T /api/agents HTTP/1.1")),
        ("a NUL in the target", head("GET /api/agents\0 HTTP/1.1")),
        ("a target that is no path", head("GET api/agents HTTP/1.1")),
        ("the beginning of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
        ("TLS", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}".to_owned()),
        ("a tunnel", head("CONNECT 127.0.0.1:22 HTTP/1.1")),
    ];
    for (what, bytes) in cases {
        let mut socket = TcpStream::connect(server.authority()).await.unwrap();
        socket.write_all(bytes.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
        let said = raw::until_closed(&mut socket, PATIENCE).await.expect("the server closes it");
        let status = raw::parse(&said, true).map_or(0, |answer| answer.status);
        assert!(matches!(status, 0 | 400..=499 | 501 | 505), "{what}: {status}");
    }
}

#[tokio::test]
async fn s25_a_request_behind_a_refused_one_is_not_read_as_another() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "deltas": 1 })).await;
    let inner = request(&server, "DELETE", &format!("/api/agents/{id}"), &[]);
    // The request is refused for its media type before its body is read. The body must not become the next request.
    let length = format!("Content-Length: {}", inner.len());
    let outer = request(&server, "POST", "/api/agents", &["Content-Type: text/plain", &length]);
    let mut socket = TcpStream::connect(server.authority()).await.unwrap();
    socket.write_all((outer + &inner).as_bytes()).await.unwrap();
    socket.shutdown().await.unwrap();
    let said = raw::until_closed(&mut socket, PATIENCE).await.expect("the server closes it");
    let said = String::from_utf8_lossy(&said).into_owned();
    assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "one answer: {said}");
    assert!(said.starts_with("HTTP/1.1 415"), "{said}");
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["deletedAt"], serde_json::Value::Null);
}
