//! A proxy agent and a small HTTP server that answers with recorded bytes.

use std::time::Duration;

use tokenrail_domain::{AgentError, ErrorClass, SessionId};
use tokenrail_ports::testing::runner_contract::rest;
use tokenrail_ports::testing::samples::turn_order;
use tokenrail_ports::{
    Adoption, ExitStatus, IAgentRun, IAgentRunner, Line, OutputLine, RunEnd, RunOutput, RunnerError,
    TurnOrder,
};
use tokenrail_runner::{ProxyConfig, ProxyLimits, ProxyRunner};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n";

/// A server for one request. `Then` says what it does with the connection afterwards.
struct Upstream {
    url: String,
    request: oneshot::Receiver<String>,
    _server: JoinSet<()>,
}

enum Then {
    Close,
    /// Sends nothing more, and reports when the client has disconnected.
    Hang(oneshot::Sender<()>),
}

impl Upstream {
    async fn new(head: &str, body: &[u8], then: Then) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (told, request) = oneshot::channel();
        let answer = [head.as_bytes(), b"\r\n", body].concat();
        let mut server = JoinSet::new();
        server.spawn(async move {
            let (mut client, _) = listener.accept().await.unwrap();
            told.send(read_request(&mut client).await).unwrap();
            client.write_all(&answer).await.unwrap();
            if let Then::Hang(gone) = then {
                let read = client.read(&mut [0; 1]).await;
                assert!(matches!(read, Ok(0) | Err(_)));
                let _ = gone.send(());
            }
        });
        Self { url, request, _server: server }
    }

    /// Answers with these events, which are the last bytes of the connection.
    async fn events(body: &[u8]) -> Self {
        let head = format!("{OK}content-length: {}\r\n", body.len());
        Self::new(&head, body, Then::Close).await
    }

    fn runner(&self) -> ProxyRunner {
        runner(&self.url, ProxyLimits::default())
    }

    async fn start(&self) -> Box<dyn IAgentRun> {
        self.runner().start(&order()).await.unwrap()
    }
}

async fn read_request(client: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        client.read_buf(&mut request).await.unwrap();
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() == length.parse::<usize>().unwrap() {
                return text.into_owned();
            }
        }
    }
}

fn runner(url: &str, limits: ProxyLimits) -> ProxyRunner {
    // Any test may be the first one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ProxyRunner::new(ProxyConfig { url: url.to_owned(), limits }).unwrap()
}

fn order() -> TurnOrder {
    turn_order("Check \"the\" notes\n")
}

/// The data of the recording's `message` events, parsed in the simplest way.
fn recorded(recording: &str) -> Vec<String> {
    let recording = recording.replace("\r\n", "\n");
    let (whole, _) = recording.rsplit_once("\n\n").unwrap();
    let messages = whole.split("\n\n").filter(|event| event.contains("event: message"));
    messages.map(|event| event.split_once("data: ").unwrap().1.to_owned()).collect()
}

async fn check(recording: &str, lines: usize) -> RunEnd {
    let upstream = Upstream::events(recording.as_bytes()).await;
    let (read, end) = rest(&mut upstream.start().await).await;
    let mut offset = 0;
    for (line, text) in read.iter().zip(recorded(recording)) {
        offset += text.len() as u64 + 1;
        assert_eq!(*line, OutputLine { line: Line::Whole(text.into()), end_offset: offset });
    }
    assert_eq!((read.len(), recorded(recording).len()), (lines, lines));
    end
}

#[tokio::test]
async fn recorded_answers_are_read_whatever_their_line_ends_ids_and_keep_alives() {
    for (recording, lines) in [
        (include_str!("fixtures/proxy-sse/tools.sse"), 135),
        (include_str!("fixtures/proxy-sse/tools_crlf.sse"), 135),
        (include_str!("fixtures/proxy-sse/thinking_ids_keepalive.sse"), 56),
    ] {
        assert_eq!(check(recording, lines).await, RunEnd::default());
    }
}

#[tokio::test]
async fn an_agent_that_fails_behind_the_proxy_is_told() {
    let end = check(include_str!("fixtures/proxy-sse/error_exit.sse"), 5).await;
    assert_eq!(end.status, ExitStatus::Code(1));
    let error = end.error.unwrap();
    assert_eq!((error.class, error.code.as_deref()), (ErrorClass::Process, Some("upstream_error")));
    assert_eq!(error.text, "the agent behind the proxied service ended with code 1");
}

#[tokio::test]
async fn a_connection_that_breaks_is_told_and_keeps_what_came() {
    let recording = include_str!("fixtures/proxy-sse/client_abort.sse");
    let dropped = |end: RunEnd| {
        let error = end.error.unwrap();
        let expected = (ErrorClass::Network, Some("upstream_dropped"), true);
        assert_eq!((error.class, error.code.as_deref(), error.recoverable), expected);
    };
    dropped(check(recording, 32).await);
    let head = format!("{OK}content-length: {}\r\n", recording.len() + 1);
    let upstream = Upstream::new(&head, recording.as_bytes(), Then::Close).await;
    let (lines, end) = rest(&mut upstream.start().await).await;
    assert_eq!(lines.len(), 32);
    dropped(end);
}

#[tokio::test]
async fn the_request_carries_prompt_and_session() {
    let upstream = Upstream::events(b"event: complete\ndata: {}\n\n").await;
    let order = TurnOrder { session: SessionId::new("s1").ok(), ..order() };
    let (_, end) = rest(&mut upstream.runner().start(&order).await.unwrap()).await;
    assert_eq!(end, RunEnd::default());
    let request = upstream.request.await.unwrap();
    assert!(request.starts_with("POST /agent/stream HTTP/1.1\r\n"), "{request}");
    assert!(
        request.ends_with("\r\n\r\n{\"prompt\":\"Check \\\"the\\\" notes\\n\",\"session_id\":\"s1\"}"),
        "{request}"
    );
}

async fn refused(head: &str, body: &str) -> AgentError {
    let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n", body.len());
    let upstream = Upstream::new(&head, body.as_bytes(), Then::Close).await;
    let (lines, end) = rest(&mut upstream.start().await).await;
    assert_eq!(lines, []);
    end.error.unwrap()
}

#[tokio::test]
async fn a_refusal_is_told_by_what_can_be_done_about_it() {
    for (status, class) in [
        ("400 Bad Request", ErrorClass::InvalidRequest),
        ("401 Unauthorized", ErrorClass::Authentication),
        ("403 Forbidden", ErrorClass::Authentication),
        ("404 Not Found", ErrorClass::InvalidRequest),
        ("500 Internal Server Error", ErrorClass::Unknown),
        ("503 Service Unavailable", ErrorClass::Overloaded),
        // The runner follows no redirect: the prompt is for the configured upstream only.
        ("307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/", ErrorClass::Protocol),
        ("200 OK\r\ncontent-type: text/html", ErrorClass::Protocol),
    ] {
        assert_eq!(refused(status, "why").await.class, class, "{status}");
    }
    let error = refused("429 Too Many Requests\r\nretry-after: 7", "slow down\n").await;
    assert_eq!(
        (error.class, error.retry_after_ms, error.recoverable),
        (ErrorClass::RateLimit, Some(7000), true)
    );
    assert_eq!(error.text, "the proxied service answered 429 Too Many Requests: slow down");
}

#[tokio::test]
async fn an_upstream_that_is_not_there_cannot_be_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = runner(&url, ProxyLimits::default()).start(&order()).await.err().unwrap();
    assert!(matches!(error, RunnerError::Unreachable(_)), "{error:?}");
}

#[tokio::test]
async fn an_upstream_that_falls_silent_is_given_up() {
    let (gone, _) = oneshot::channel();
    let upstream = Upstream::new(OK, b"data: {}\n\n: keep-alive\n\n", Then::Hang(gone)).await;
    let limits = ProxyLimits { idle_timeout_ms: 30, ..ProxyLimits::default() };
    let mut run = runner(&upstream.url, limits).start(&order()).await.unwrap();
    let (lines, end) = rest(&mut run).await;
    assert_eq!(lines.len(), 1);
    assert_eq!(end.error.unwrap().code.as_deref(), Some("upstream_idle"));
}

#[tokio::test]
async fn a_cancel_hangs_up() {
    let (gone, seen) = oneshot::channel();
    let upstream = Upstream::new(OK, b"data: {}\n\n", Then::Hang(gone)).await;
    let mut run = upstream.start().await;
    assert!(matches!(run.next().await.unwrap(), RunOutput::Lines(_)));
    run.cancel().await.unwrap();
    let seen = tokio::time::timeout(Duration::from_secs(30), seen).await;
    assert_eq!(seen, Ok(Ok(())), "the upstream sees that nobody listens");
    assert_eq!(run.next().await.unwrap(), RunOutput::Ended(RunEnd::default()));
}

#[tokio::test]
async fn what_comes_after_the_end_or_has_an_unknown_name_is_no_output() {
    let upstream = Upstream::events(
        b"data: 1\n\nevent: ping\ndata: 2\n\nevent: complete\ndata: {}\n\ndata: 3\n\nevent: error\ndata: {}\n\n",
    );
    let (lines, end) = rest(&mut upstream.await.start().await).await;
    assert_eq!(lines, [OutputLine { line: Line::Whole("1".into()), end_offset: 2 }]);
    assert_eq!(end, RunEnd::default());
}

#[tokio::test]
async fn an_event_without_an_end_ends_the_run() {
    let upstream = Upstream::events(&[b"data: ".as_slice(), &[b'x'; 5000]].concat()).await;
    let limits = ProxyLimits { event_bytes: 1000, ..ProxyLimits::default() };
    let mut run = runner(&upstream.url, limits).start(&order()).await.unwrap();
    assert_eq!(rest(&mut run).await.1.error.unwrap().code.as_deref(), Some("upstream_protocol"));
}

#[tokio::test]
async fn there_is_nothing_to_take_over_after_a_restart() {
    let adoption = runner("http://127.0.0.1:1", ProxyLimits::default()).adopt(&order(), 5).await.unwrap();
    assert!(matches!(adoption, Adoption::Gone));
}
