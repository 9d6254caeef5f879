//! What a server answers, as lines for the client.

use futures_util::StreamExt as _;
use reqwest::{Response, StatusCode, header};
use serde_json::Value;
use tokenrail_runner::SseDecoder;
use tokio::sync::mpsc;

use crate::cli::{Exit, Failure};

/// The longest message of an event stream.
const EVENT_BYTES: usize = 16 << 20;

/// Why there is no response. The client gets this as an error.
pub(super) enum NoResponse {
    Failed(Failure),
    /// The server's own error.
    Refused(Value),
}

impl<E: Into<Failure>> From<E> for NoResponse {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

pub(super) fn lost(why: &'static str) -> NoResponse {
    NoResponse::Failed(Failure::new(Exit::Failed, why))
}

/// Prints the messages of a response: one, those of an event stream, or none. Returns whether the response to the
/// request was among them.
pub(super) async fn pass_on(response: Response, out: &mpsc::Sender<String>) -> Result<bool, NoResponse> {
    let status = response.status();
    if status == StatusCode::ACCEPTED {
        return Ok(false);
    }
    if !status.is_success() {
        return Err(refused(status, &response.text().await?));
    }
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        print(&response.text().await?, out).await?;
        return Ok(true);
    }
    let (mut body, mut decoder, mut events) =
        (response.bytes_stream(), SseDecoder::new(EVENT_BYTES), Vec::new());
    while let Some(chunk) = body.next().await {
        decoder.feed(&chunk?, &mut events)?;
        for event in events.drain(..) {
            let text = String::from_utf8_lossy(&event.data);
            let message: Value = serde_json::from_str(&text).unwrap_or_default();
            print(&text, out).await?;
            if message.get("method").is_none() {
                // Whatever happens to the rest of the stream, a request has one response.
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The server's own words, if there are any.
fn refused(status: StatusCode, body: &str) -> NoResponse {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    if let Some(error) = body.get("error").filter(|error| error.get("code").is_some_and(Value::is_i64)) {
        return NoResponse::Refused(error.clone());
    }
    let words = body.get("detail").and_then(Value::as_str);
    let text = words.map_or_else(|| format!("the server responded with the status {status}"), str::to_owned);
    NoResponse::Failed(Failure::new(Exit::Failed, text))
}

async fn print(message: &str, out: &mpsc::Sender<String>) -> Result<(), Failure> {
    // In JSON, a line break can only be where a space may be.
    let line = message.replace(['\n', '\r'], " ");
    out.send(line)
        .await
        .map_err(|_| Failure::new(Exit::Closed, "the program that reads the output has exited"))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// What a request gets from a server that breaks its response off after these events.
    async fn cut_after(events: &'static str) -> (Result<bool, NoResponse>, Vec<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while !lines.next().unwrap().unwrap().is_empty() {}
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            write!(stream, "{head}{:x}\r\n{events}\r\n", events.len()).unwrap();
        });
        crate::install_crypto();
        let response =
            reqwest::Client::builder().no_proxy().build().unwrap().get(address).send().await.unwrap();
        let (out, mut printed) = mpsc::channel(8);
        let passed = pass_on(response, &out).await;
        server.join().unwrap();
        (passed, std::iter::from_fn(|| printed.try_recv().ok()).collect())
    }

    #[tokio::test]
    async fn a_stream_that_breaks_fails_only_without_its_response() {
        let notice = "data: {\"method\":\"notifications/progress\"}\n\n";
        let (passed, printed) = cut_after(notice).await;
        assert!(matches!(passed, Err(NoResponse::Failed(_))), "its client gets an error");
        assert_eq!(printed, [r#"{"method":"notifications/progress"}"#]);
        let (passed, printed) = cut_after("data: {\"id\":1,\"result\":{}}\n\n").await;
        assert!(matches!(passed, Ok(true)), "its client gets no second response");
        assert_eq!(printed, [r#"{"id":1,"result":{}}"#]);
    }
}
