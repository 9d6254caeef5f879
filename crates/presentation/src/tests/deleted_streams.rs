//! What clients of Durable Streams get if the agent is deleted or purged while they read.

use std::pin::Pin;
use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody as _};
use actix_web::dev::Service as _;
use actix_web::test::{TestRequest, init_service};
use futures_util::future::poll_fn;
use serde_json::{Value, json};
use tokio::join;
use tokio::time::timeout;

use super::harness::{HOST, Harness, TOKEN};
use crate::app;

const PATIENCE: Duration = Duration::from_secs(30);

/// An event stream that is read as slowly as a test wants.
struct Reader(BoxBody);

impl Reader {
    async fn open(harness: &Harness, id: &str, offset: &str) -> Self {
        let app = init_service(app(harness.api.clone())).await;
        let uri = format!("/v1/stream/agents/{id}/events?live=sse&offset={offset}");
        let request = TestRequest::get().uri(&uri).insert_header(("host", HOST));
        let request = request.insert_header(("authorization", format!("Bearer {TOKEN}"))).to_request();
        let response = app.call(request).await.unwrap();
        assert_eq!(response.status(), 200);
        Self(response.map_into_boxed_body().into_body())
    }

    /// The next piece; `None` at the end.
    async fn piece(&mut self) -> Option<String> {
        let piece = timeout(PATIENCE, poll_fn(|context| Pin::new(&mut self.0).poll_next(context))).await;
        piece.unwrap().map(|piece| String::from_utf8(piece.unwrap().to_vec()).unwrap())
    }

    /// The numbers of the messages up to the next `control`, and that one. `None` at the end.
    async fn page(&mut self) -> Option<(Vec<u64>, Value)> {
        let mut read = String::new();
        loop {
            read += &self.piece().await?;
            let Some((data, control)) = read.split_once("event: control\ndata: ") else { continue };
            if control.ends_with("\n\n") {
                let data = data.trim_start_matches(":\n\n").strip_prefix("event: data\ndata: ");
                let messages: Vec<Value> =
                    data.map_or_else(Vec::new, |data| serde_json::from_str(data).unwrap());
                let numbers = messages.iter().map(|message| message["sequenceNumber"].as_u64().unwrap());
                return Some((numbers.collect(), serde_json::from_str(control).unwrap()));
            }
        }
    }

    /// The numbers of all messages, and the last `control`.
    async fn rest(mut self) -> (Vec<u64>, Value) {
        let mut all = (Vec::new(), Value::Null);
        while let Some((numbers, control)) = self.page().await {
            all = ([all.0, numbers].concat(), control);
        }
        all
    }
}

/// How many events the agent of [`ended`] has.
const EVENTS: u64 = 12;

/// An agent with three turns that has ended, and a server with pages that are as short as possible.
async fn ended() -> (Harness, String) {
    let harness = Harness::with(|_, limits| {
        (limits.reading.history_events, limits.reading.tail_bytes) = (1, 1);
    });
    let id = harness.launch_to_end("say a").await;
    for content in ["say b", "say c"] {
        let body = json!({"content": content}).to_string();
        harness.post(&format!("/api/agents/{id}/messages"), &body).await;
        harness.ended(&id).await;
    }
    (harness, id)
}

/// A reader of this agent that has its first page, and the number of the last event in it.
async fn behind(harness: &Harness, id: &str) -> (Reader, u64) {
    let mut reader = Reader::open(harness, id, "-1").await;
    let (numbers, control) = reader.page().await.unwrap();
    let last = *numbers.last().unwrap();
    assert!(last < EVENTS, "{numbers:?}");
    assert_eq!((control.get("upToDate"), control.get("streamClosed")), (None, None));
    (reader, last)
}

async fn delete(harness: &Harness, id: &str, query: &str) {
    let answer = harness.call(TestRequest::delete().uri(&format!("/api/agents/{id}{query}"))).await;
    assert_eq!(answer.status, 204, "{answer:?}");
}

fn offset(number: u64) -> String {
    format!("{number:020}")
}

fn closed(at: u64) -> Value {
    json!({"streamNextOffset": offset(at), "upToDate": true, "streamClosed": true})
}

#[actix_web::test]
async fn a_reader_that_is_behind_a_deletion_gets_the_rest_and_then_the_end() {
    let (harness, id) = ended().await;
    let (reader, last) = behind(&harness, &id).await;
    delete(&harness, &id, "").await;
    assert_eq!(reader.rest().await, ((last + 1..=EVENTS).collect(), closed(EVENTS)));
}

#[actix_web::test]
async fn a_reader_that_is_behind_a_purge_is_never_told_that_it_has_everything() {
    let (harness, id) = ended().await;
    let (mut reader, last) = behind(&harness, &id).await;
    delete(&harness, &id, "?purge=true").await;
    assert_eq!(reader.page().await, None, "it ends without a word");
    let again = harness.get(&format!("/v1/stream/agents/{id}/events?live=sse&offset={}", offset(last))).await;
    assert_eq!((again.status.as_u16(), again.problem()), (404, "not_found".into()), "and is told then");
}

#[actix_web::test]
async fn a_reader_that_has_everything_is_told_of_a_purge_as_of_the_end() {
    let (harness, id) = ended().await;
    let mut reader = Reader::open(&harness, &id, "now").await;
    assert_eq!(reader.page().await.unwrap().1["upToDate"], true);
    let poll = format!("/v1/stream/agents/{id}/events?live=long-poll&offset=now");
    let (polled, ()) = join!(harness.get(&poll), delete(&harness, &id, "?purge=true"));
    assert_eq!(reader.rest().await, (Vec::new(), closed(EVENTS)));
    assert_eq!((polled.status.as_u16(), polled.header("stream-closed")), (204, "true"), "{polled:?}");
    assert_eq!(polled.header("stream-next-offset"), offset(EVENTS));
}
