//! `tokenrail mcp`: the Model Context Protocol over standard input and output, for clients that start their servers as
//! programs. Each line is a message. It is forwarded to the running server, whose responses are printed as lines.

use std::collections::HashMap;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::{Response, StatusCode, header};
use serde_json::{Value, json};
use tokenrail_runner::SseDecoder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::client::Client;
use super::client::forward::Lost;
use super::{Exit, Failure};
use crate::config::Config;

/// The longest line that is read. The server accepts no message of this length.
const LINE_BYTES: u64 = 16 << 20;
/// How many lines may wait, in each direction.
const LINES_MAX: usize = 64;
/// How many requests may be underway. A further line waits.
const CALLS_MAX: usize = 64;
/// The longest message of an event stream.
const EVENT_BYTES: usize = 16 << 20;
/// How often a message is sent again while no server listens, as during a restart.
const CONNECT_TRIES: u32 = 20;
const CONNECT_PAUSE: Duration = Duration::from_millis(500);

/// JSON-RPC's number of an error of a server.
const SERVER_ERROR: i32 = -32000;
const CANCELLED: &str = "notifications/cancelled";

pub(crate) async fn mcp(config: Config) -> Result<Exit, Failure> {
    let client = Client::reach(&config).await?;
    let bridge = Arc::new(Bridge { config, client });
    let mut lines = read_lines()?;
    let (out, printed) = print_lines()?;
    let mut calls = JoinSet::new();
    let mut underway = Underway::default();
    while let Some(line) = next_line(&mut lines, &mut calls).await {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        if message.get("method").is_some_and(|method| method == CANCELLED) {
            underway.cancel(&message);
            continue;
        }
        let id = message.get("id").cloned();
        let (bridge, out) = (Arc::clone(&bridge), out.clone());
        let handle = calls.spawn({
            let id = id.clone();
            async move { bridge.answer(line, id, &out).await }
        });
        underway.began(id, handle);
    }
    // The client sends no more, but it may still read.
    while calls.join_next().await.is_some() {}
    drop(out);
    printed.await.map_or(Ok(Exit::Closed), |written| Ok(written.map(|()| Exit::Completed)?))
}

/// The next line, once there is room for a further request.
async fn next_line(lines: &mut mpsc::Receiver<String>, calls: &mut JoinSet<()>) -> Option<String> {
    loop {
        tokio::select! {
            Some(_) = calls.join_next(), if !calls.is_empty() => {}
            line = lines.recv(), if calls.len() < CALLS_MAX => return line,
        }
    }
}

/// The requests that have no response yet.
#[derive(Default)]
struct Underway(HashMap<String, AbortHandle>);

impl Underway {
    fn began(&mut self, id: Option<Value>, handle: AbortHandle) {
        self.0.retain(|_, handle| !handle.is_finished());
        if let Some(id) = id {
            self.0.insert(id.to_string(), handle);
        }
    }

    /// Stops waiting for a response. What the request has done stays done.
    fn cancel(&mut self, notice: &Value) {
        let id = notice.pointer("/params/requestId").map(Value::to_string);
        if let Some(handle) = id.and_then(|id| self.0.remove(&id)) {
            handle.abort();
        }
    }
}

struct Bridge {
    config: Config,
    client: Client,
}

impl Bridge {
    /// Forwards a message, and prints what the server answers. An error is the response to the request, if it is one.
    async fn answer(&self, message: String, id: Option<Value>, out: &mpsc::Sender<String>) {
        let answered = async {
            let response = self.forward(message).await?;
            pass_on(response, out).await
        };
        if let (Err(failure), Some(id)) = (answered.await, id) {
            let error = json!({ "code": SERVER_ERROR, "message": failure.to_string() });
            let _ = out.send(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()).await;
        }
    }

    /// A server that is started again may have another address.
    async fn forward(&self, message: String) -> Result<Response, Failure> {
        let mut client = self.client.clone();
        let mut tries = 1;
        loop {
            match client.forward(message.clone()).await {
                Err(Lost::NotConnected(_)) if tries < CONNECT_TRIES => {
                    tries += 1;
                    sleep(CONNECT_PAUSE).await;
                    client = Client::reach(&self.config).await.unwrap_or(client);
                }
                forwarded => return Ok(forwarded?),
            }
        }
    }
}

/// Prints the messages of a response: one, those of an event stream, or none.
async fn pass_on(response: Response, out: &mpsc::Sender<String>) -> Result<(), Failure> {
    let status = response.status();
    if status == StatusCode::ACCEPTED {
        return Ok(());
    }
    if !status.is_success() {
        return Err(refused(status, &response.text().await?));
    }
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return print(response.text().await?, out).await;
    }
    let (mut body, mut decoder, mut events) =
        (response.bytes_stream(), SseDecoder::new(EVENT_BYTES), Vec::new());
    while let Some(chunk) = body.next().await {
        decoder.feed(&chunk?, &mut events)?;
        for event in events.drain(..) {
            print(String::from_utf8_lossy(&event.data).into_owned(), out).await?;
        }
    }
    Ok(())
}

/// The server's own words, if there are any.
fn refused(status: StatusCode, body: &str) -> Failure {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let words = body.pointer("/error/message").or(body.get("detail")).and_then(Value::as_str);
    let text = words.map_or_else(|| format!("the server answered {status}"), str::to_owned);
    Failure::new(Exit::Failed, text)
}

async fn print(message: String, out: &mpsc::Sender<String>) -> Result<(), Failure> {
    // In JSON, a line break can only be where a space may be.
    let line = message.replace(['\n', '\r'], " ");
    out.send(line).await.map_err(|_| Failure::new(Exit::Closed, "the reader of the output has gone"))
}

/// The lines of standard input, read by a thread of their own.
fn read_lines() -> io::Result<mpsc::Receiver<String>> {
    let (sender, receiver) = mpsc::channel(LINES_MAX);
    thread::Builder::new().name("mcp input".to_owned()).spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = String::new();
            let read = input.by_ref().take(LINE_BYTES).read_line(&mut line);
            let is_last = !matches!(read, Ok(bytes) if 0 < bytes);
            if is_last || !line.trim().is_empty() && sender.blocking_send(line).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

/// Where lines for standard output go, and the end of the thread that prints them.
type Printed = oneshot::Receiver<io::Result<()>>;

fn print_lines() -> io::Result<(mpsc::Sender<String>, Printed)> {
    let (sender, mut receiver) = mpsc::channel::<String>(LINES_MAX);
    let (end, ended) = oneshot::channel();
    thread::Builder::new().name("mcp output".to_owned()).spawn(move || {
        let mut output = io::stdout().lock();
        let mut written = Ok(());
        while let Some(line) = receiver.blocking_recv() {
            written = writeln!(output, "{line}").and_then(|()| output.flush());
            if written.is_err() {
                break;
            }
        }
        let _ = end.send(written);
    })?;
    Ok((sender, ended))
}
