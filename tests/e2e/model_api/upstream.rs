//! What no API should send: an upstream that sends the bytes of a test, and reports when its connection ends.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use super::{APIS, KEY, KEY_VARIABLE, deltas, server_for, start_with_key, turn};
use crate::harness::{PATIENCE, TestServer, processes_of_agent, text_of};
use crate::long_lines::long_text;

/// The head of a streamed response.
pub(super) const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// The event of a stream with this text.
pub(super) fn delta(api: &str, text: &str) -> Value {
    match api {
        "anthropic" => {
            let delta = json!({ "type": "text_delta", "text": text });
            json!({ "type": "content_block_delta", "index": 0, "delta": delta })
        }
        "openai-chat" => {
            json!({ "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }] })
        }
        _ => json!({ "type": "response.output_text.delta", "output_index": 0, "delta": text }),
    }
}

/// The events that end a response.
fn end(api: &str) -> &'static str {
    match api {
        "anthropic" => "data: {\"type\":\"message_stop\"}\n\n",
        "openai-chat" => {
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
        }
        _ => "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n",
    }
}

/// A server that sends bytes, and then reads until the other side has disconnected.
pub(super) struct Upstream {
    pub(super) url: String,
    /// The number of connections, and how many of them the other side has ended.
    seen: watch::Receiver<(usize, usize)>,
    /// For each permit, the next bytes are sent.
    pub(super) more: Arc<Semaphore>,
}

impl Upstream {
    /// Sends `first` to every client, and each of `then` when the test adds a permit. Then it waits or closes.
    pub(super) async fn start(first: Vec<u8>, then: Vec<Vec<u8>>, waits: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, seen) = watch::channel((0, 0));
        let more = Arc::new(Semaphore::new(0));
        let allowed = Arc::clone(&more);
        Handle::current().spawn(async move {
            loop {
                let Ok((socket, _)) = listener.accept().await else { return };
                tell.send_modify(|(begun, _)| *begun += 1);
                // The other side may disconnect at any time. This is what the tests check.
                let _ = play(socket, &first, &then, &allowed, waits).await;
                tell.send_modify(|(_, ended)| *ended += 1);
            }
        });
        Self { url, seen, more }
    }

    /// Sends the response and closes the connection.
    async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        Self::start(answer.into(), Vec::new(), false).await
    }

    /// Waits until a request has come.
    pub(super) async fn until_asked(&mut self) {
        self.seen.wait_for(|(begun, _)| *begun == 1).await.unwrap();
    }

    /// Waits until the other side has ended its connection.
    pub(super) async fn until_left(&mut self) {
        let left = self.seen.wait_for(|(_, ended)| *ended == 1);
        tokio::time::timeout(PATIENCE, left).await.expect("the connection is ended").unwrap();
    }

    fn connections(&self) -> usize {
        self.seen.borrow().0
    }
}

async fn play(
    mut socket: TcpStream,
    first: &[u8],
    then: &[Vec<u8>],
    allowed: &Semaphore,
    waits: bool,
) -> std::io::Result<()> {
    let mut asked = Vec::new();
    while !asked.ends_with(b"}") {
        let mut chunk = [0; 4096];
        let count = socket.read(&mut chunk).await?;
        if count == 0 {
            return Ok(());
        }
        asked.extend_from_slice(&chunk[..count]);
    }
    socket.write_all(first).await?;
    for bytes in then {
        let mut end = [0];
        tokio::select! {
            permit = allowed.acquire() => permit.expect("open").forget(),
            gone = socket.read(&mut end) => return gone.map(drop),
        }
        socket.write_all(bytes).await?;
    }
    if waits {
        let mut end = [0];
        while 0 < socket.read(&mut end).await? {}
    }
    Ok(())
}

/// The answer must be a failure with this class, code and text.
async fn fails(answer: String, class: &str, code: &str, text: &str) {
    let upstream = Upstream::answering(answer).await;
    let server = server_for(&upstream.url, "");
    let (agent, _) = turn(&server, "openai-chat", "Hi").await;
    let error = &agent["error"];
    assert_eq!((&error["class"], &error["code"]), (&json!(class), &json!(code)), "{agent}");
    assert!(error["message"].as_str().unwrap().contains(text), "{error}");
}

#[tokio::test]
async fn what_is_no_stream_is_told_with_its_beginning() {
    let body = "<html>Bad Gateway 🤷</html>";
    let html = format!("content-type: text/html\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let bad_gateway = format!("HTTP/1.1 502 Bad Gateway\r\n{html}");
    fails(bad_gateway, "overloaded", "upstream_refused", "502 Bad Gateway: <html>Bad Gateway 🤷</html>")
        .await;
    let wrong = format!("HTTP/1.1 200 OK\r\n{html}");
    fails(wrong, "protocol", "upstream_protocol", "content type text/html, not text/event-stream").await;
    let empty = "HTTP/1.1 204 No Content\r\n\r\n".to_owned();
    fails(empty, "protocol", "upstream_protocol", "the response has no content type").await;
}

#[tokio::test]
async fn a_stream_without_an_end_of_its_answer_has_failed() {
    for api in APIS {
        let event = delta(api, "Half");
        let upstream = Upstream::answering(format!("{STREAM}data: {event}\n\n")).await;
        let server = server_for(&upstream.url, "");
        let (agent, events) = turn(&server, api, "Hi").await;
        let error = &agent["error"];
        assert_eq!(
            (&error["class"], &error["code"]),
            (&json!("network"), &json!("upstream_dropped")),
            "{agent}"
        );
        assert_eq!(text_of(&events), "Half", "{api}");
    }
}

#[tokio::test]
async fn a_finished_answer_needs_no_other_end_of_its_stream() {
    let event = r#"{"choices":[{"index":0,"delta":{"content":"All"},"finish_reason":"stop"}]}"#;
    let upstream = Upstream::answering(format!("{STREAM}data: {event}\r\n\r\n")).await;
    let server = server_for(&upstream.url, "");
    let (agent, events) = turn(&server, "openai-chat", "Hi").await;
    assert_eq!((&agent["status"], &*text_of(&events)), (&json!("completed"), "All"), "{agent}");
}

#[tokio::test]
async fn an_event_of_more_than_five_megabytes_is_kept_to_the_last_byte() {
    let long = long_text();
    for api in APIS {
        let answer = format!("{STREAM}data: {}\n\n{}", delta(api, &long), end(api));
        let upstream = Upstream::answering(answer).await;
        let server = server_for(&upstream.url, "");
        let (agent, events) = turn(&server, api, "Hi").await;
        assert_eq!(agent["status"], "completed", "{api}: {agent}");
        // Do not print such long texts.
        assert!(text_of(&events) == long && deltas(&events) == long, "{api}");
    }
}

#[tokio::test]
async fn an_event_beyond_the_limit_ends_the_answer() {
    let event = json!({ "choices": [{ "delta": { "content": "x".repeat(200_000) } }] });
    let upstream = Upstream::answering(format!("{STREAM}data: {event}\n\n")).await;
    let server = server_for(&upstream.url, "[limits]\nline_bytes = 100000\n");
    let (agent, _) = turn(&server, "openai-chat", "Hi").await;
    assert_eq!(agent["error"]["code"], "upstream_protocol", "{agent}");
}

#[tokio::test]
async fn nobody_is_asked_but_the_configured_address() {
    let inside = Upstream::answering(format!("{STREAM}data: [DONE]\n\n")).await;
    let redirect = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: {}/v1/messages\r\ncontent-length: 0\r\n\r\n",
        inside.url
    );
    let upstream = Upstream::answering(redirect).await;
    let mut server = server_for(&upstream.url, "");
    // A proxy from the environment would see the key.
    server.stop();
    let mut command = server.command(&["serve", "--log", "warn"]);
    let proxies = ["http_proxy", "HTTP_PROXY", "ALL_PROXY"].map(|name| (name, inside.url.clone()));
    command.envs(proxies).env(KEY_VARIABLE, KEY);
    server.start_by(command).unwrap();
    for api in APIS {
        let (agent, _) = turn(&server, api, "Hi").await;
        let text = agent["error"]["message"].as_str().unwrap();
        assert!(text.contains("307 Temporary Redirect; redirects are not followed"), "{agent}");
    }
    assert_eq!((upstream.connections(), inside.connections()), (3, 0));
}

#[tokio::test]
async fn an_address_where_nobody_is_fails_at_once() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = server_for(&format!("http://127.0.0.1:{port}"), "");
    let (agent, _) = turn(&server, "anthropic", "Hi").await;
    let error = &agent["error"];
    assert_eq!(
        (&error["class"], &error["code"]),
        (&json!("network"), &json!("upstream_unreachable")),
        "{agent}"
    );
}

#[tokio::test]
async fn the_key_stands_nowhere_also_where_the_upstream_quotes_it() {
    let event = json!({ "choices": [{ "delta": { "content": format!("Your key is {KEY}.") } }] });
    let more = json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] });
    let upstream = Upstream::start(
        format!("{STREAM}data: {event}\n\n").into_bytes(),
        vec![format!("data: {more}\n\n").into_bytes()],
        false,
    )
    .await;
    let mut server = server_for(&upstream.url, "");
    let id = server.launch_as("openai-chat", "Hi").await;
    server.wait_until(&id, |agent| 1 < agent["head"].as_u64().unwrap()).await;
    assert_eq!(files_with(&server, KEY), [""; 0], "while it runs");
    let holding = |file: &str| -> usize {
        let holds =
            |pid: &String| std::fs::read(format!("/proc/{pid}/{file}")).is_ok_and(|bytes| holds(&bytes, KEY));
        processes_of_agent(&id).iter().filter(|pid| holds(pid)).count()
    };
    assert_eq!(holding("cmdline"), 0);
    assert!(holding("environ") <= 1, "the process that asks, and not its supervisor");
    assert!(!files_with(&server, "Your key is *").is_empty(), "this test can find things");
    upstream.more.add_permits(1);
    let (_, events) = super::ended(&server, &id).await;
    assert_eq!(text_of(&events), format!("Your key is {}.", "*".repeat(KEY.len())));
    assert!(!json!(events).to_string().contains(KEY));
    assert!(!server.get("/api/agent-types").await.to_string().contains(KEY));
    server.stop();
    assert_eq!(files_with(&server, KEY), [""; 0], "afterwards");
    start_with_key(&mut server);
}

fn holds(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

/// The files in the server's folders, including its log, that contain a text.
fn files_with(server: &TestServer, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![server.folder.path().to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let file_type = std::fs::symlink_metadata(&path).map(|data| data.file_type());
            if path.is_dir() {
                folders.push(path);
            } else if file_type.is_ok_and(|kind| kind.is_file())
                && std::fs::read(&path).is_ok_and(|bytes| holds(&bytes, text))
            {
                found.push(path.display().to_string());
            }
        }
    }
    found
}
