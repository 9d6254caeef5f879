//! S29: Tokenrail calls an upstream service only at its configured address, and the service cannot redirect it
//! elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;

use crate::bodies::resident_bytes;
use crate::harness::TestServer;

const MEMORY_BYTES: u64 = 64 << 20;

/// What a hostile service sends after it has read the request.
#[derive(Debug, Clone)]
enum Answer {
    Bytes(Vec<u8>),
    /// This head, and then these bytes without an end.
    Endless(&'static str, &'static [u8]),
    /// This text, and then nothing more.
    Silence(&'static str),
}

async fn serve(listener: TcpListener, answer: Answer, asked: Arc<AtomicUsize>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else { return };
        asked.fetch_add(1, Ordering::Relaxed);
        let answer = answer.clone();
        Handle::current().spawn(async move {
            // Tokenrail may close the connection at any time. This is the intended reaction.
            let _ = play(socket, answer).await;
        });
    }
}

async fn play(mut socket: TcpStream, answer: Answer) -> std::io::Result<()> {
    let mut asked = Vec::new();
    while !asked.ends_with(b"}") {
        let mut chunk = [0; 4096];
        let count = socket.read(&mut chunk).await?;
        asked.extend_from_slice(&chunk[..count]);
    }
    match answer {
        Answer::Bytes(bytes) => socket.write_all(&bytes).await,
        Answer::Endless(head, bytes) => {
            socket.write_all(head.as_bytes()).await?;
            let block = bytes.repeat((64 << 10) / bytes.len());
            loop {
                socket.write_all(&block).await?;
            }
        }
        Answer::Silence(said) => {
            socket.write_all(said.as_bytes()).await?;
            // Until the other side closes the connection.
            socket.read_u8().await.map(drop)
        }
    }
}

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

async fn upstream(answer: Answer) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    Handle::current().spawn(serve(listener, answer, Arc::clone(&asked)));
    (url, asked)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s29_a_redirect_leads_nowhere() {
    let (inside, asked_inside) =
        upstream(Answer::Bytes(format!("{STREAM}event: complete\n\n").into_bytes())).await;
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent", "300 Choices"]
    {
        for location in [
            inside.as_str(),
            "http://169.254.169.254/latest/meta-data/",
            "/agent/stream",
            "file:///etc/passwd",
        ] {
            let head = format!("HTTP/1.1 {status}\r\nLocation: {location}\r\nRefresh: 0;url={location}\r\n");
            let (url, asked) =
                upstream(Answer::Bytes(format!("{head}Content-Length: 0\r\n\r\n").into_bytes())).await;
            let server =
                TestServer::start_with(&format!("[agents.proxy]\nrunner = \"proxy\"\nurl = \"{url}\"\n"));
            let id = server.launch_as("proxy", "hi").await;
            let agent = server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
            let error = (&agent["status"], &agent["error"]["code"]);
            assert_eq!(
                error,
                (&json!("failed"), &json!("upstream_refused")),
                "{status} to {location}: {agent}"
            );
            assert_eq!(asked.load(Ordering::Relaxed), 1, "{status} to {location}: asked once");
        }
    }
    assert_eq!(asked_inside.load(Ordering::Relaxed), 0, "nobody came to where they led");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s29_answers_that_are_too_much_too_slow_or_packed_end_the_turn() {
    let gzip = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n";
    let cases = [
        ("a line without an end", Answer::Endless(STREAM, b"data: x"), "upstream_protocol"),
        (
            "an event without an end",
            Answer::Endless(STREAM, b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"),
            "upstream_protocol",
        ),
        ("a head without an end", Answer::Endless("HTTP/1.1 200 OK\r\n", b"X-Long: xxxxxxxx\r\n"), ""),
        (
            "an error without an end",
            Answer::Endless("HTTP/1.1 500 No\r\n\r\n", b"xxxxxxxx"),
            "upstream_refused",
        ),
        ("silence", Answer::Silence(STREAM), "idle_timeout"),
        (
            "silence in an event",
            Answer::Silence("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: x"),
            "idle_timeout",
        ),
        (
            "another type",
            Answer::Bytes(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1\r\n\r\nx".to_vec(),
            ),
            "upstream_protocol",
        ),
        ("something packed", Answer::Endless(gzip, b"\x1f\x8b\x08\0\0\0\0\0\0\0"), "upstream_protocol"),
        ("no HTTP", Answer::Bytes(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()), ""),
    ];
    for (what, answer, code) in cases {
        let (url, _) = upstream(answer).await;
        let config = format!(
            "[agents.proxy]\nrunner = \"proxy\"\nurl = \"{url}\"\n[limits]\nidle_timeout_s = 2\nline_bytes = 1048576\n\
             turn_timeout_s = 20\n"
        );
        let server = TestServer::start_with(&config);
        let before = resident_bytes(server.pid());
        let id = server.launch_as("proxy", "hi").await;
        let agent = server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
        assert_eq!(agent["status"], "failed", "{what}: {agent}");
        assert!(code.is_empty() || agent["error"]["code"] == code, "{what}: {agent}");
        let grown = resident_bytes(server.pid()).saturating_sub(before);
        assert!(grown < MEMORY_BYTES, "{what}: {grown} bytes more");
    }
}
