//! `tokenrail mcp`: the Model Context Protocol over standard input and output, for clients that start their servers as
//! programs. Each line is a message. It is forwarded to the running server, whose responses are printed as lines.

mod responses;

use std::collections::HashMap;
use std::io::{self, BufRead, Read as _, Write as _};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use reqwest::Response;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use self::responses::{NoResponse, lost, pass_on};
use super::client::Client;
use super::client::forward::{Lost, Message, readable_parts};
use super::own_run::own_run;
use super::{Exit, Failure};
use crate::config::Config;

/// The longest line that is read. The server accepts no message of this length.
const LINE_BYTES: u64 = 16 << 20;
/// How much of a longer line is discarded at once.
const DISCARD_BYTES: u64 = 64 << 10;
/// How many lines may wait, in each direction.
const LINES_MAX: usize = 64;
/// How many requests may be underway. A further line waits.
const CALLS_MAX: usize = 256;
/// How many subscriptions may be open. A further one is refused, because they last until the client ends them.
const SUBSCRIPTIONS_MAX: usize = 32;
/// How long a message waits for a server while none listens, as during a restart.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
const CONNECT_PAUSE: Duration = Duration::from_millis(500);
/// How long a request may take in all: longer than any wait of a tool.
const CALL_TIMEOUT: Duration = Duration::from_mins(2);
const TOO_LATE: &str =
    "the server did not respond in time; before you repeat the call, check whether it took effect";

/// JSON-RPC's numbers of an error of a server, and of a message that is not JSON.
const SERVER_ERROR: i32 = -32000;
const SUBSCRIPTIONS_FULL: &str = "too many subscriptions are open; cancel one of them first";
const PARSE_ERROR: i32 = -32700;
const CANCELLED: &str = "notifications/cancelled";

pub(crate) async fn mcp(config: Config) -> Result<Exit, Failure> {
    let bridge = Arc::new(Bridge { config, run: own_run() });
    bridge.reach(Instant::now() + CONNECT_WAIT).await?;
    let mut lines = read_lines()?;
    let (out, printed) = print_lines()?;
    let mut underway = Underway::default();
    while let Some(line) = underway.next_line(&mut lines).await {
        let line = match line {
            Ok(line) => line,
            Err(unreadable) => {
                let error = json!({ "code": PARSE_ERROR, "message": unreadable });
                let _ = out.send(refusal(&Value::Null, &error)).await;
                continue;
            }
        };
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| readable_parts(&line));
        if message.get("method").is_some_and(|method| method == CANCELLED) {
            underway.cancel(&message);
            continue;
        }
        // What is no message has a response without an id. A notification has none.
        let id = if message.is_object() { message.get("id").cloned() } else { Some(Value::Null) };
        let message = Message::new(line, &message);
        if message.lasts && SUBSCRIPTIONS_MAX <= underway.subscriptions() {
            let error = json!({ "code": SERVER_ERROR, "message": SUBSCRIPTIONS_FULL });
            if let Some(id) = id {
                let _ = out.send(refusal(&id, &error)).await;
            }
            continue;
        }
        underway.begin(Arc::clone(&bridge), message, id, out.clone());
    }
    underway.end().await;
    drop(out);
    printed.await.map_or(Ok(Exit::Closed), |written| Ok(written.map(|()| Exit::Completed)?))
}

/// The requests that have no response yet.
#[derive(Default)]
struct Underway {
    calls: JoinSet<()>,
    subscriptions: JoinSet<()>,
    /// Each with whether it is a subscription.
    by_id: HashMap<String, (AbortHandle, bool)>,
}

impl Underway {
    /// The next line, once there is room for a further request.
    async fn next_line(&mut self, lines: &mut mpsc::Receiver<ReadLine>) -> Option<ReadLine> {
        let Self { calls, subscriptions, .. } = self;
        loop {
            tokio::select! {
                Some(_) = calls.join_next(), if !calls.is_empty() => {}
                Some(_) = subscriptions.join_next(), if !subscriptions.is_empty() => {}
                line = lines.recv(), if calls.len() < CALLS_MAX => return line,
            }
        }
    }

    fn begin(&mut self, bridge: Arc<Bridge>, message: Message, id: Option<Value>, out: mpsc::Sender<String>) {
        let tasks = if message.lasts { &mut self.subscriptions } else { &mut self.calls };
        let (name, lasts) = (id.as_ref().map(Value::to_string), message.lasts);
        let handle = tasks.spawn(async move { bridge.answer(&message, id, &out).await });
        self.by_id.retain(|_, (handle, _)| !handle.is_finished());
        if let Some(name) = name {
            self.by_id.insert(name, (handle, lasts));
        }
    }

    /// How many subscriptions are open. One that was cancelled does not count, even if its task has not ended yet.
    fn subscriptions(&self) -> usize {
        self.by_id.values().filter(|(handle, lasts)| *lasts && !handle.is_finished()).count()
    }

    /// Stops waiting for a response. What the request has done stays done.
    fn cancel(&mut self, notice: &Value) {
        let id = notice.pointer("/params/requestId").map(Value::to_string);
        if let Some((handle, _)) = id.and_then(|id| self.by_id.remove(&id)) {
            handle.abort();
        }
    }

    /// The client sends no more, but it may still read the responses to its calls. Its subscriptions have no end of
    /// their own.
    async fn end(mut self) {
        self.subscriptions.shutdown().await;
        while self.calls.join_next().await.is_some() {}
    }
}

struct Bridge {
    config: Config,
    /// The run of the agent that has started this program, if an agent has.
    run: Option<String>,
}

impl Bridge {
    /// Forwards a message, and prints what the server answers. An error is the response to the request, if it is one.
    async fn answer(&self, message: &Message, id: Option<Value>, out: &mpsc::Sender<String>) {
        let answered = async { pass_on(self.forward(message).await?, out).await };
        let answered = if message.lasts {
            answered.await
        } else {
            let answered = timeout(CALL_TIMEOUT, answered).await;
            answered.unwrap_or_else(|_| Err(lost(TOO_LATE)))
        };
        let Some(id) = id else { return };
        let error = match answered {
            Ok(has_response) if has_response => return,
            Ok(_) => json!({ "code": SERVER_ERROR, "message": "the server sent no response" }),
            Err(NoResponse::Refused(error)) => error,
            Err(NoResponse::Failed(failure)) => {
                json!({ "code": SERVER_ERROR, "message": failure.to_string() })
            }
        };
        let _ = out.send(refusal(&id, &error)).await;
    }

    /// Finds the server. One that is started again may have another address, and another token.
    async fn reach(&self, until: Instant) -> Result<Client, Failure> {
        loop {
            match Client::reach(&self.config).await {
                Err(failure) if failure.exit == Exit::Unreachable && Instant::now() < until => {
                    sleep(CONNECT_PAUSE).await;
                }
                reached => return reached,
            }
        }
    }

    async fn forward(&self, message: &Message) -> Result<Response, Failure> {
        let until = Instant::now() + CONNECT_WAIT;
        loop {
            match self.reach(until).await?.forward(message, self.run.as_deref()).await {
                Err(Lost::NotConnected(_)) if Instant::now() < until => sleep(CONNECT_PAUSE).await,
                forwarded => return Ok(forwarded?),
            }
        }
    }
}

/// An error as a response.
fn refusal(id: &Value, error: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
}

/// A line, or why it cannot be read.
type ReadLine = Result<String, String>;

/// The lines of standard input, read by a thread of their own.
fn read_lines() -> io::Result<mpsc::Receiver<ReadLine>> {
    let (sender, receiver) = mpsc::channel(LINES_MAX);
    thread::Builder::new().name("mcp input".to_owned()).spawn(move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(line)) = read_line(&mut input) {
            let is_blank = line.as_ref().is_ok_and(|line| line.trim().is_empty());
            if !is_blank && sender.blocking_send(line).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

/// The next line. `None` at the end. Of a line that is too long, nothing is kept.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<ReadLine>> {
    let mut line = Vec::new();
    if input.take(LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if LINE_BYTES <= line.len() as u64 && !line.ends_with(b"\n") {
        line = Vec::new();
        while 0 < input.take(DISCARD_BYTES).read_until(b'\n', &mut line)? && !line.ends_with(b"\n") {
            line.clear();
        }
        return Ok(Some(Err(format!("a message must be at most {LINE_BYTES} bytes"))));
    }
    Ok(Some(String::from_utf8(line).map_err(|_| "a message must be UTF-8".to_owned())))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_cannot_be_read_is_told_and_the_next_one_is_read() {
        let long = usize::try_from(LINE_BYTES).unwrap() + 100_000;
        let input = [b"one\n\xff\n".as_slice(), &vec![b'x'; long], b"\ntwo"].concat();
        let mut input = io::Cursor::new(input);
        let mut lines = std::iter::from_fn(|| read_line(&mut input).unwrap());
        assert_eq!(lines.next(), Some(Ok("one\n".to_owned())));
        assert!(lines.next().unwrap().unwrap_err().contains("UTF-8"));
        assert!(lines.next().unwrap().unwrap_err().contains("bytes"));
        assert_eq!(lines.next(), Some(Ok("two".to_owned())));
        assert_eq!(lines.next(), None);
    }
}
