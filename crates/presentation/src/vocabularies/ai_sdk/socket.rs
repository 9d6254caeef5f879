//! AI SDK chats over a WebSocket. One connection carries many requests, and each request has its own response.
//!
//! As with `/ws`, the body of the upgraded response is a stream of frames. The stream is polled only if the socket can
//! take more bytes. A slow client therefore delays no other client and needs no queue.

mod requests;

use std::collections::VecDeque;

use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures_util::stream;
use tokio::time::{Instant, Interval};
use tokio_util::sync::CancellationToken;

use super::chat::{self, Answer};
use super::fold::SdkVersion;
use super::stream::ChatStream;
use super::writer::ChunkWriter;
use crate::api::{Api, StreamPlace};
use crate::error::{Code, Problem};
use crate::frames::{self, CHUNK_BYTES};
use crate::query::Query;
use crate::vocabularies::ai_sdk::dto::{ChatFrame, ChatReply, ChatRequest, chat_frame};
use crate::vocabularies::prompts::large_body::parsed;
use crate::waits::{every, passed};
use crate::websocket::{
    Broken, Handshake, Message, Messages, because_of, close_code, handshake, with_frames,
};
use requests::{Requests, Waited};

/// Use AI SDK chats over a WebSocket
#[utoipa::path(get, path = "/api/chat", tag = "ai-sdk",
    params(("v" = Option<String>, Query, description = "The AI SDK version: 5, 6 or 7, or a release such as 7.0.149"),
        ("ticket" = Option<String>, Query, description = "A ticket, instead of the Authorization header")),
    responses((status = 101, description = "The frames are described in the protocol reference")))]
pub(crate) async fn chat_socket(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let version = SdkVersion::from_name(Query::of(&request)?.get("v"))?;
    // A WebSocket message may be as large as a body over HTTP, because it contains the whole conversation.
    let Handshake { response, messages, place } =
        handshake(&api, &request, payload, api.config().chat_bytes)?;
    let connection = Connection::new(Api::clone(&api), messages, version, place);
    let frames = stream::unfold(Box::new(connection), |mut connection| async move {
        let bytes = connection.next().await?;
        Some((bytes, connection))
    });
    Ok(with_frames(&api, response, frames))
}

struct Connection {
    api: Api,
    version: SdkVersion,
    messages: Messages,
    requests: Requests,
    closing: CancellationToken,
    ping: Interval,
    /// When the connection is closed, unless the client answers the ping.
    pong_due: Option<Instant>,
    /// Bytes to send. It is filled only when it is empty, with the output of one [`Wake`].
    out: VecDeque<Bytes>,
    closed: bool,
    _place: StreamPlace,
}

/// Why the connection woke up.
enum Wake {
    Closing,
    Message(Result<Message, Broken>),
    NoPong,
    Ping,
    Told(Box<Waited>),
}

impl Connection {
    fn new(api: Api, messages: Messages, version: SdkVersion, place: StreamPlace) -> Self {
        let config = api.config();
        Self {
            version,
            messages,
            requests: Requests::default(),
            closing: api.service().closing(),
            ping: every(config.ping),
            pong_due: None,
            out: VecDeque::new(),
            closed: false,
            api,
            _place: place,
        }
    }

    /// Returns the next bytes for the client. `None` if the connection is to be closed.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.pop() {
                return Some(bytes);
            }
            if self.closed {
                return None;
            }
            match self.wake().await {
                Wake::Closing => self.close(close_code::SHUTTING_DOWN, "shutting down"),
                // Boxed: otherwise, the connection would hold the memory of this future for its whole life.
                Wake::Message(message) => Box::pin(self.message(message)).await,
                // A pong cannot overtake a large message that is still arriving, so any received bytes extend the time
                // limit.
                Wake::NoPong if self.messages.was_alive() => {
                    self.pong_due = Some(Instant::now() + self.api.config().pong_timeout);
                }
                Wake::NoPong => self.close(close_code::NO_PONG, "no pong"),
                Wake::Ping => {
                    self.out.push_back(frames::ping());
                    self.messages.was_alive();
                    let due = Instant::now() + self.api.config().pong_timeout;
                    self.pong_due.get_or_insert(due);
                }
                Wake::Told(waited) => self.told(*waited),
            }
        }
    }

    /// Takes the next bytes to send. The socket accepts bytes now, but the client may have to read many others before a
    /// ping. It therefore gets more time for its pong. The socket's own limit closes the connection of a client that
    /// accepts no bytes.
    fn pop(&mut self) -> Option<Bytes> {
        let first = self.out.front_mut()?;
        self.pong_due = self.pong_due.map(|_| Instant::now() + self.api.config().pong_timeout);
        if CHUNK_BYTES < first.len() {
            return Some(first.split_to(CHUNK_BYTES));
        }
        self.out.pop_front()
    }

    async fn wake(&mut self) -> Wake {
        let Self { messages, requests, closing, ping, pong_due, .. } = self;
        tokio::select! {
            biased;
            () = closing.cancelled() => Wake::Closing,
            message = messages.next() => Wake::Message(message),
            () = passed(*pong_due) => Wake::NoPong,
            _ = ping.tick() => Wake::Ping,
            waited = requests.next() => Wake::Told(Box::new(waited)),
        }
    }

    async fn message(&mut self, message: Result<Message, Broken>) {
        // Any message proves that the client is alive.
        self.pong_due = None;
        match message {
            Ok(Message::Text(text)) => {
                self.text(text).await;
                self.messages.clear();
            }
            Ok(Message::Binary(_)) => {
                self.close(close_code::NOT_TEXT, "binary messages are not supported; send text");
            }
            Ok(Message::Ping(payload)) => self.out.push_back(frames::pong(&payload)),
            Ok(Message::Pong) => {}
            Ok(Message::Close(_)) => self.close(close_code::NORMAL, ""),
            Err(broken) => match because_of(broken) {
                Some((code, reason)) => self.close(code, reason),
                // The connection is gone, so no close frame can be sent.
                None => self.closed = true,
            },
        }
    }

    async fn text(&mut self, text: Bytes) {
        let message_bytes = self.api.config().request_bytes;
        let Some(frame) = parsed(&self.api, text, move |text| chat_frame(text, message_bytes)).await else {
            return self.close(close_code::SHUTTING_DOWN, "shutting down");
        };
        match frame {
            Ok(ChatFrame::Send { request, chat }) => {
                let begun = self.send(&request, *chat).await;
                self.begun(&request, begun);
            }
            Ok(ChatFrame::Resume { request, chat, last_sequence }) => {
                let begun = self.resume(&request, &chat, last_sequence).await;
                self.begun(&request, begun);
            }
            Ok(ChatFrame::Abort { request }) => self.abort(&request).await,
            Err(refused) => match &refused.request {
                Some(request) => self.problem(request, &refused.problem),
                // A reply must name its request. A frame without a request id therefore gets no reply.
                None => self.close(close_code::INVALID_FRAME, "invalid frame"),
            },
        }
    }

    fn begun(&mut self, request: &str, begun: Result<(), Problem>) {
        if let Err(problem) = begun {
            self.problem(request, &problem);
        }
    }

    async fn send(&mut self, request: &str, wish: ChatRequest) -> Result<(), Problem> {
        self.admit(request)?;
        let answer = chat::say(&self.api, wish, self.version).await?;
        self.tell(request, &answer, 0).await
    }

    async fn resume(&mut self, request: &str, id: &str, last: Option<u64>) -> Result<(), Problem> {
        self.admit(request)?;
        let answer = match chat::find(&self.api, id).await? {
            Some(found) => chat::answer(&self.api, found, last.is_some()).await?,
            None => None,
        };
        let Some(mut answer) = answer else {
            self.reply(&ChatReply::NoActive { request_id: request });
            return Ok(());
        };
        if self.version != SdkVersion::Any {
            answer.version = self.version;
        }
        self.reply(&ChatReply::Start { request_id: request });
        let from = last.map_or(0, |last| last.saturating_add(1));
        self.tell(request, &answer, from).await
    }

    /// Checks that the request has an id of its own, and that the connection has room for one more request.
    fn admit(&self, request: &str) -> Result<(), Problem> {
        if self.requests.contains(request) {
            return Err(Problem::field("requestId", "the id is already used by a request in progress"));
        }
        if self.api.config().subscriptions_per_connection <= self.requests.len() {
            return Err(Problem::new(
                Code::CapacityExhausted,
                "this connection already has limits.subscriptions_per_connection requests in progress; wait \
                 for one, or open another connection",
            ));
        }
        Ok(())
    }

    async fn tell(&mut self, request: &str, answer: &Answer, from: u64) -> Result<(), Problem> {
        let out = ChunkWriter::frames(request.to_owned(), from);
        let stream = ChatStream::open(&self.api, answer, out).await?;
        self.requests.wait(request.to_owned(), answer.turn.agent.turn(answer.turn.number), stream);
        Ok(())
    }

    /// Cancels the turn of a request, as the protocol's `abort` requires. A connection that ends cancels nothing.
    async fn abort(&mut self, request: &str) {
        let Some(turn) = self.requests.remove(request) else { return };
        if let Err(refusal) = self.api.service().cancel_turn(turn.agent, turn.number).await {
            self.problem(request, &refusal.into());
        }
    }

    fn told(&mut self, Waited { request, turn, stream, next }: Waited) {
        match next {
            Ok(Some(bytes)) => {
                self.out.push_back(bytes);
                self.requests.wait(request, turn, stream);
            }
            Ok(None) => {
                self.requests.remove(&request);
                self.reply(&ChatReply::End { request_id: &request });
            }
            Err(why) => {
                self.requests.remove(&request);
                self.reply(&ChatReply::Error { request_id: &request, error_text: why });
            }
        }
    }

    fn problem(&mut self, request: &str, problem: &Problem) {
        let text = problem.sentence();
        self.reply(&ChatReply::Error { request_id: request, error_text: &text });
    }

    fn reply(&mut self, reply: &ChatReply<'_>) {
        self.out.push_back(frames::json(reply));
    }

    fn close(&mut self, code: u16, reason: &str) {
        self.out.push_back(frames::close(code, reason));
        self.closed = true;
    }
}
