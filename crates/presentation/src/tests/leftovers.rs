//! The rest of a request after its response, and requests over HTTP/1.0, with a real server.

use std::time::Duration;

use actix_web::rt::task::JoinHandle;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::client::{Served, serve, serve_with};
use super::harness::{HOST, Harness, TOKEN};
use crate::{ListenLimits, SocketLimits};

const PATIENCE: Duration = Duration::from_secs(20);

/// How a body is sent: its header, a piece of it, and its end.
#[derive(Debug, Clone, Copy)]
enum Coding {
    Chunked,
    Length,
}

impl Coding {
    fn header(self, length: usize) -> String {
        match self {
            Self::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
            Self::Length => format!("Content-Length: {length}\r\n"),
        }
    }

    fn piece(self, text: &str) -> String {
        match self {
            Self::Chunked => format!("{:x}\r\n{text}\r\n", text.len()),
            Self::Length => text.to_owned(),
        }
    }

    fn end(self) -> &'static str {
        match self {
            Self::Chunked => "0\r\n\r\n",
            Self::Length => "",
        }
    }
}

fn with_connections(connections: usize) -> ListenLimits {
    let head_timeout = Duration::from_secs(1);
    ListenLimits { workers: 1, connections, head_timeout, ..ListenLimits::default() }
}

async fn connect(served: &Served) -> TcpStream {
    TcpStream::connect(("127.0.0.1", served.port)).await.unwrap()
}

/// Reads the head of a response, and its body if it has a length.
async fn answer(socket: &mut TcpStream) -> String {
    let read = async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        socket.read_exact(&mut body).await.unwrap();
        head
    };
    tokio::time::timeout(PATIENCE, read).await.expect("it is answered")
}

/// Checks that another client is served.
async fn is_served(served: &Served) {
    let mut socket = connect(served).await;
    let ask = format!("GET /healthz HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n");
    socket.write_all(ask.as_bytes()).await.unwrap();
    assert!(answer(&mut socket).await.starts_with("http/1.1 200 "));
}

/// Sends a piece now and then until the connection has ended.
async fn drip(mut socket: TcpStream, piece: String) {
    let (mut reading, mut writing) = socket.split();
    let mut rest = Vec::new();
    let ended = reading.read_to_end(&mut rest);
    let dripping = async {
        while writing.write_all(piece.as_bytes()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        _ = ended => {}
        () = dripping => {}
    }
}

/// The request line and headers of a request, without the empty line after them.
fn request(line: &str, headers: &[&str]) -> String {
    headers.iter().fold(format!("{line} HTTP/1.1\r\n"), |head, header| head + header + "\r\n")
}

#[actix_web::test]
async fn whoever_never_ends_a_body_that_was_answered_keeps_nobody_out() {
    let harness = Harness::with(|config, _| {
        config.body_timeout = Duration::from_millis(50);
        config.request_bytes = 64;
        config.open_paths.push("/openapi.json".to_owned());
    });
    let (host, json) = (format!("Host: {HOST}"), "Content-Type: application/json");
    let token = format!("Authorization: Bearer {TOKEN}");
    let large = "x".repeat(100);
    let cases: [(u16, &str, &[&str], &str); 14] = [
        (401, "GET /api/agents", &[&host], "x"),
        (401, "POST /api/agents", &[&host], "x"),
        (401, "POST /api/agents/import", &[&host], "x"),
        (401, "GET /ws", &[&host], "x"),
        (200, "GET /healthz", &[&host], "x"),
        (200, "GET /readyz", &[&host], "x"),
        (200, "GET /problems/not_found", &[&host], "x"),
        (200, "GET /openapi.json", &[&host], "x"),
        (421, "GET /healthz", &["Host: evil.example"], "x"),
        (404, "POST /nowhere", &[&host, &token], "x"),
        (405, "PUT /api/agents", &[&host, &token], "x"),
        (408, "POST /api/agents", &[&host, &token, json], "x"),
        (413, "POST /api/tickets", &[&host, &token, json], &large),
        (415, "POST /api/agents", &[&host, &token, "Content-Type: text/html"], "x"),
    ];
    let served = serve_with(&harness, with_connections(2 * cases.len()));
    let mut dripping = Vec::new();
    for (status, line, headers, piece) in cases {
        for coding in [Coding::Chunked, Coding::Length] {
            // A length above the limit would be refused at once.
            let length = if status == 408 { 60 } else { 100_000 };
            let (header, piece) = (coding.header(length), coding.piece(piece));
            let mut socket = connect(&served).await;
            socket
                .write_all(format!("{}{header}\r\n{piece}", request(line, headers)).as_bytes())
                .await
                .unwrap();
            let answer = answer(&mut socket).await;
            assert!(answer.starts_with(&format!("http/1.1 {status} ")), "{line} {coding:?}: {answer}");
            assert!(answer.contains("connection: close\r\n"), "{line} {coding:?}: {answer}");
            let drip = actix_web::rt::spawn(drip(socket, coding.piece("x")));
            dripping.push((format!("{line} {coding:?}"), drip));
        }
    }
    is_served(&served).await;
    all_end(dripping).await;
    served.handle.stop(false).await;
}

async fn all_end(dripping: Vec<(String, JoinHandle<()>)>) {
    for (what, dripping) in dripping {
        let ended = tokio::time::timeout(PATIENCE, dripping).await;
        ended.unwrap_or_else(|_| panic!("{what} is not closed")).unwrap();
    }
}

#[actix_web::test]
async fn whoever_never_ends_the_head_of_a_later_request_keeps_nobody_out() {
    let ask = format!("GET /healthz HTTP/1.1\r\nHost: {HOST}\r\n\r\n");
    let cases = [ask.clone(), format!("{ask}G"), format!("{ask}GET /healthz HTTP/1.1\r\nX: ")];
    let served = serve_with(&Harness::new(), with_connections(cases.len()));
    let mut dripping = Vec::new();
    for begun in cases {
        let mut socket = connect(&served).await;
        socket.write_all(begun.as_bytes()).await.unwrap();
        assert!(answer(&mut socket).await.starts_with("http/1.1 200 "));
        dripping.push((begun, actix_web::rt::spawn(drip(socket, "x".to_owned()))));
    }
    is_served(&served).await;
    all_end(dripping).await;
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_small_body_that_nobody_reads_does_not_cost_the_connection() {
    let served = serve(&Harness::new());
    let host = format!("Host: {HOST}");
    let mut socket = connect(&served).await;
    for coding in [Coding::Chunked, Coding::Length] {
        for (status, line) in [(401, "POST /api/agents"), (200, "GET /healthz"), (405, "POST /healthz")] {
            let body = "x".repeat(1000);
            let (header, piece) = (coding.header(body.len()), coding.piece(&body));
            let whole = format!("{}{header}\r\n{piece}{}", request(line, &[&host]), coding.end());
            socket.write_all(whole.as_bytes()).await.unwrap();
            let answer = answer(&mut socket).await;
            assert!(!answer.contains("connection: close"), "{line} {coding:?}: {answer}");
            let status = if status == 405 { 401 } else { status };
            assert!(answer.starts_with(&format!("http/1.1 {status} ")), "{line} {coding:?}: {answer}");
        }
    }
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn an_answer_is_read_although_much_of_the_body_is_still_to_come() {
    let served = serve_with(&Harness::new(), ListenLimits { unread_body_bytes: 1000, ..with_connections(1) });
    let mut socket = connect(&served).await;
    let head = request("POST /api/agents", &[&format!("Host: {HOST}"), "Content-Length: 100000000"]);
    let (mut reading, mut writing) = socket.split();
    let sending = async {
        writing.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
        let chunk = vec![b'x'; 64 << 10];
        while writing.write_all(&chunk).await.is_ok() {}
    };
    let hearing = async {
        let mut heard = [0; 13];
        reading.read_exact(&mut heard).await.unwrap();
        heard
    };
    let ((), heard) =
        tokio::time::timeout(PATIENCE, futures_util::future::join(sending, hearing)).await.unwrap();
    assert_eq!(&heard, b"HTTP/1.1 401 ");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn an_answer_that_is_taken_byte_for_byte_keeps_nobody_out() {
    let harness = Harness::with(|config, _| config.open_paths.push("/openapi.json".to_owned()));
    let sockets = SocketLimits { send_buffer_bytes: 4 << 10, ..SocketLimits::default() };
    let flush_timeout = Duration::from_millis(200);
    let served = serve_with(&harness, ListenLimits { flush_timeout, sockets, ..with_connections(1) });
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut socket = socket.connect(([127, 0, 0, 1], served.port).into()).await.unwrap();
    let ask = format!("GET /openapi.json HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n");
    socket.write_all(ask.as_bytes()).await.unwrap();
    let slowly = actix_web::rt::spawn(async move {
        let mut some = [0; 100];
        let mut taken = 0;
        while let Ok(bytes @ 1..) = socket.read(&mut some).await {
            taken += bytes;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        taken
    });
    is_served(&served).await;
    let all = harness.get("/openapi.json").await.text.len();
    let taken = tokio::time::timeout(3 * PATIENCE, slowly).await.expect("it ends").unwrap();
    assert!(taken < all, "{taken} of {all} bytes");
    served.handle.stop(false).await;
}

/// The response to a request over HTTP/1.0, up to the end of the connection: head and body.
async fn one_zero(served: &Served, target: &str, headers: &[&str]) -> (String, String) {
    let mut socket = connect(served).await;
    let ask = format!("GET {target} HTTP/1.0\r\nHost: {HOST}\r\nAuthorization: Bearer {TOKEN}\r\n");
    let ask = headers.iter().fold(ask, |head, header| head + header + "\r\n") + "\r\n";
    socket.write_all(ask.as_bytes()).await.unwrap();
    let mut answered = String::new();
    tokio::time::timeout(PATIENCE, socket.read_to_string(&mut answered)).await.expect("it ends").unwrap();
    let (head, body) = answered.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

#[actix_web::test]
async fn http_1_0_gets_no_chunks() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a b c").await;
    let served = serve(&harness);
    let agent = format!("/api/agents/{id}");
    for rest in ["", "/messages", "/events", "/turns", "/turns/1", "/export"] {
        for keep in [&[][..], &["Connection: keep-alive"]] {
            let target = format!("{agent}{rest}");
            let (whole, stream) = (harness.get(&target).await.text, rest == "/turns/1" || rest == "/export");
            if stream || keep.is_empty() {
                let (head, body) = one_zero(&served, &target, keep).await;
                assert!(head.starts_with("http/1.0 200 ") && !head.contains("transfer-encoding"), "{head}");
                assert_eq!(head.contains("content-length"), !stream, "{head}");
                assert!(!head.contains("keep-alive"), "{head}");
                assert_eq!(body, whole, "{rest}");
            }
        }
    }
    let (head, body) = one_zero(&served, &format!("{agent}/events"), &["Accept: text/event-stream"]).await;
    assert!(head.contains("text/event-stream") && !head.contains("transfer-encoding"), "{head}");
    let first = body.lines().find(|line| !line.is_empty());
    assert!(first.is_some_and(|line| line == "retry: 1000") && body.contains("\nevent: result\n"), "{body}");
    let upgrade = [
        "Connection: upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==",
    ];
    for path in ["/ws", "/api/chat"] {
        let (head, _) = one_zero(&served, path, &upgrade).await;
        assert!(head.starts_with("http/1.0 426 "), "{head}");
    }
    served.handle.stop(false).await;
}
