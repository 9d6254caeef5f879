//! A session over a WebSocket: from the beginning, or after the client has polled.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{FutureExt as _, LocalBoxFuture, OptionFuture};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::engine::{PROBED, Packet};
use super::heart::Heart;
use super::incoming::pass_on;
use super::session::{Session, SessionOutput};
use crate::api::Api;
use crate::frames::{self, CHUNK_BYTES};
use crate::polled_sessions::{Output, PolledFault, PolledSession};
use crate::waits::passed;
use crate::websocket::{Broken, Message, Messages, because_of, close_code, close_reply};

/// A session that has its own WebSocket.
pub(super) struct Direct {
    session: Session,
    heart: Rc<Heart>,
    /// Frames that the session has given.
    rest: Bytes,
    /// Whole frames that are being sent. Nothing can come between their bytes.
    part: Bytes,
}

impl Direct {
    /// `opening`: the first packet.
    pub(super) fn new(session: Session, opening: Bytes) -> Self {
        Self { heart: session.heart(), session, rest: Bytes::new(), part: opening }
    }

    /// The next bytes for the client. `None` if the connection must be closed.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        if self.part.is_empty() {
            if self.rest.is_empty() {
                self.rest = match self.session.next().await? {
                    SessionOutput::Frames(frames) => frames,
                    SessionOutput::Close(code, reason) => frames::close(code, reason),
                };
            } else if self.heart.is_due() {
                return Some(self.heart.ping());
            }
            self.part = self.rest.split_to(frames::length_within(&self.rest, CHUNK_BYTES));
        }
        self.heart.taken();
        Some(self.part.split_to(self.part.len().min(CHUNK_BYTES)))
    }
}

/// The WebSocket of a client that has polled. The session stays with its task.
pub(super) struct Upgrade {
    polled: Arc<PolledSession>,
    messages: Messages,
    stage: Stage,
    closing: CancellationToken,
    body_timeout: Duration,
    /// A packet on its way to the session. The next one is read after it.
    posting: Option<LocalBoxFuture<'static, Result<(), PolledFault>>>,
    /// Output on its way from the session.
    page: Option<LocalBoxFuture<'static, Option<Output>>>,
    out: VecDeque<Bytes>,
    closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Until the client has asked whether the WebSocket works.
    New {
        due: Instant,
    },
    /// Until the client has stopped polling.
    Probed {
        due: Instant,
    },
    Open,
}

enum Wake {
    Closing,
    Late,
    Message(Result<Message, Broken>),
    Posted(Result<(), PolledFault>),
    Page(Option<Output>),
}

impl Upgrade {
    pub(super) fn new(api: &Api, polled: Arc<PolledSession>, messages: Messages) -> Self {
        Self {
            polled,
            messages,
            stage: Stage::New { due: Instant::now() + api.config().handshake_timeout },
            closing: api.service().closing(),
            body_timeout: api.config().body_timeout,
            posting: None,
            page: None,
            out: VecDeque::new(),
            closed: false,
        }
    }

    /// The next bytes for the client. `None` if the connection must be closed.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(first) = self.out.front_mut() {
                if CHUNK_BYTES < first.len() {
                    self.polled.alive();
                    return Some(first.split_to(CHUNK_BYTES));
                }
                return self.out.pop_front();
            }
            if self.closed {
                return None;
            }
            match self.next_wake().await {
                Wake::Closing => self.close(close_code::SHUTTING_DOWN, "shutting down"),
                Wake::Late => self.close(close_code::INVALID_FRAME, "did not upgrade in time"),
                Wake::Message(message) => self.message(message),
                Wake::Posted(posted) => {
                    self.posting = None;
                    self.messages.clear();
                    // The session tells its end itself, with the reason.
                    if posted == Err(PolledFault::TooSlow) {
                        self.close(close_code::TOO_SLOW, "the client did not read in time");
                    }
                }
                Wake::Page(output) => self.output(output),
            }
        }
    }

    async fn next_wake(&mut self) -> Wake {
        let is_open = self.stage == Stage::Open;
        if is_open && self.page.is_none() {
            let polled = Arc::clone(&self.polled);
            self.page = Some(async move { polled.page().await }.boxed_local());
        }
        let due = match self.stage {
            Stage::New { due } | Stage::Probed { due } => Some(due),
            Stage::Open => None,
        };
        let Self { messages, posting, page, closing, .. } = self;
        let is_posting = posting.is_some();
        tokio::select! {
            biased;
            // Once the WebSocket has taken over, the session itself says that the server is shutting down.
            () = closing.cancelled(), if !is_open => Wake::Closing,
            () = passed(due) => Wake::Late,
            Some(posted) = OptionFuture::from(posting.as_mut()) => Wake::Posted(posted),
            message = messages.next(), if !is_posting => Wake::Message(message),
            Some(output) = OptionFuture::from(page.as_mut()) => Wake::Page(output),
        }
    }

    fn message(&mut self, message: Result<Message, Broken>) {
        match message {
            Ok(Message::Text(text)) if self.stage == Stage::Open => self.post(text),
            Ok(Message::Text(text)) => {
                self.upgrade(&text);
                self.messages.clear();
            }
            // The session refuses it in its own words.
            Ok(Message::Binary(_)) if self.stage == Stage::Open => self.post(Bytes::from_static(b"b")),
            Ok(Message::Binary(_)) => self.close(close_code::NOT_TEXT, "send text"),
            Ok(Message::Ping(payload)) => self.out.push_back(frames::pong(&payload)),
            Ok(Message::Pong) => {}
            Ok(Message::Close(reason)) => {
                self.out.push_back(close_reply(reason));
                self.closed = true;
            }
            Err(broken) => match because_of(broken) {
                Some((code, reason)) => self.close(code, reason),
                None => self.closed = true,
            },
        }
    }

    fn upgrade(&mut self, text: &[u8]) {
        match (self.stage, Packet::read(text)) {
            (Stage::New { due }, Ok(Packet::Probe)) => match self.polled.probe() {
                Some(()) => {
                    self.stage = Stage::Probed { due };
                    self.out.push_back(frames::text(PROBED));
                }
                None => self.close(
                    close_code::INVALID_FRAME,
                    "the session has ended, or was already upgraded to a WebSocket",
                ),
            },
            (Stage::Probed { .. }, Ok(Packet::Upgrade)) => self.stage = Stage::Open,
            _ => self.close(close_code::INVALID_FRAME, "not a packet of an upgrade"),
        }
    }

    fn post(&mut self, packet: Bytes) {
        let (polled, limit) = (Arc::clone(&self.polled), self.body_timeout);
        self.posting = Some(async move { pass_on(&polled, packet, limit).await }.boxed_local());
    }

    fn output(&mut self, output: Option<Output>) {
        self.page = None;
        let Some(Output { frames, close }) = output else {
            return self.close(close_code::NORMAL, "");
        };
        if !frames.is_empty() {
            self.out.push_back(frames);
        }
        if let Some((code, reason)) = close {
            self.close(code, reason);
        }
    }

    fn close(&mut self, code: u16, reason: &str) {
        self.out.push_back(frames::close(code, reason));
        self.closed = true;
    }
}

impl Drop for Upgrade {
    fn drop(&mut self) {
        match self.stage {
            Stage::New { .. } => {}
            // The client goes on polling.
            Stage::Probed { .. } => self.polled.probe_failed(),
            Stage::Open => self.polled.end_soon(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use tokio::sync::mpsc;
    use tokio::time::sleep;

    use super::*;
    use crate::tests::harness::Harness;
    use crate::vocabularies::native::socket_io::engine::PING;
    use crate::vocabularies::native::socket_io::incoming::Incoming;
    use crate::vocabularies::native::socket_io::session::{Place, opening};

    #[actix_web::test]
    async fn pings_come_between_the_frames_of_a_page_that_is_being_sent() {
        let period = Duration::from_millis(20);
        let harness = Harness::with(|config, _| config.ping = period);
        let words: Vec<String> = (0..2000).map(|word| word.to_string()).collect();
        let id = harness.launch_to_end(&format!("say {}", words.join(" "))).await;
        let (packets, bodies) = mpsc::channel(1);
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let place = Place::take(&harness.api, peer, true).unwrap();
        let session = Session::new(&harness.api, peer, place, Incoming::bodies(bodies));
        let mut direct = Direct::new(session, opening(&harness.api, "sid", &[]));
        packets.send(format!("40{{\"since\":{{\"{id}\":0}}}}").into()).await.unwrap();
        let mut sent = Vec::new();
        let mut is_over = false;
        while !is_over {
            let chunk = direct.next().await.unwrap();
            is_over = chunk.windows(8).any(|eight| eight == b"\"result\"");
            sent.extend_from_slice(&chunk);
            // A slow client takes longer for each chunk than for a ping.
            if PING.len() + 2 < chunk.len() {
                sleep(2 * period).await;
            }
        }
        let mut silence = vec![0];
        for packet in frames::payloads(&sent) {
            match packet {
                b"2" => silence.push(0),
                other => *silence.last_mut().unwrap() += other.len(),
            }
        }
        assert!(8 * CHUNK_BYTES < sent.len(), "the history is long: {}", sent.len());
        let longest = silence.into_iter().max().unwrap();
        assert!(longest < 2 * CHUNK_BYTES, "a ping comes after each chunk, or the next one: {longest}");
    }
}
