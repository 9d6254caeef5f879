//! An agent behind an HTTP service: its recorded stream, byte for byte, over a real connection.

use std::path::PathBuf;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use tokio::runtime::Handle;

use crate::harness::{TestServer, outline, text_of};

fn recorded(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../crates/runner/tests/runners/fixtures/proxy-sse")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Answers one request with `body` and closes the connection. Returns the request.
async fn serve_once(listener: TcpListener, body: Vec<u8>) -> String {
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut asked = Vec::new();
    while !asked.ends_with(b"}") {
        let mut chunk = [0; 4096];
        let count = socket.read(&mut chunk).await.unwrap();
        asked.extend_from_slice(&chunk[..count]);
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(&body).await.unwrap();
    socket.shutdown().await.unwrap();
    String::from_utf8(asked).unwrap()
}

async fn run(body: Vec<u8>) -> (TestServer, String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let config = format!("[agents.proxy]\nrunner = \"proxy\"\nurl = \"{url}\"\n");
    let server = TestServer::start_with(&config);
    let serving = Handle::current().spawn(serve_once(listener, body));
    let id = server.launch_as("proxy", "Check the notes").await;
    server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
    (server, id, serving.await.unwrap())
}

#[tokio::test]
async fn a_stream_is_read_whatever_its_line_ends() {
    let mut texts = Vec::new();
    for name in ["tools.sse", "tools_crlf.sse"] {
        let (server, id, asked) = run(recorded(name)).await;
        assert!(asked.starts_with("POST /agent/stream ") && asked.contains("\"Check the notes\""), "{asked}");
        assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "completed");
        texts.push(text_of(&server.events(&id).await));
    }
    assert!(texts[0].starts_with("I'll run the command first."), "{texts:?}");
    assert_eq!(texts[0], texts[1]);
}

#[tokio::test]
async fn a_dropped_upstream_ends_the_turn_with_what_came_so_far() {
    let whole = recorded("tools.sse");
    let (server, id, _) = run(whole[..whole.len() / 2].to_vec()).await;
    let agent = server.get(&format!("/api/agents/{id}")).await;
    assert_eq!((&agent["status"], &agent["error"]["class"]), (&"failed".into(), &"network".into()));
    let events = server.events(&id).await;
    assert!(text_of(&events).starts_with("I'll run the command first."));
    assert_eq!(outline(&events).last().unwrap(), "result");
}

#[tokio::test]
async fn nobody_there_is_a_network_error() {
    let config = "[agents.proxy]\nrunner = \"proxy\"\nurl = \"http://127.0.0.1:9\"\n";
    let server = TestServer::start_with(config);
    let id = server.launch_as("proxy", "hi").await;
    server.wait_for_status(&id, "failed").await;
    let agent = server.get(&format!("/api/agents/{id}")).await;
    assert_eq!(agent["error"]["class"], "network", "{agent}");
}
