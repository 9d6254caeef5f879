//! One client: it reads the client's packets, and produces packets for it. Its transport takes the results of
//! [`Session::next`].

mod connect;
mod requests;
mod updates;

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use tokenrail_application::{KeptLifecycleEvent, LifecycleEventsMissed, LifecycleReader};
use tokenrail_domain::AgentId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::engine::{self, OPEN};
use super::heart::Heart;
use super::incoming::Incoming;
use super::packet::{Content, NOT_CONNECTED, Packet, ROOT};
use crate::api::Api;
use crate::error::{Code, Problem};
use crate::frames::{self, FrameWriter};
use crate::vocabularies::native::dto::frames::ErrorFrame;
use crate::vocabularies::native::dto::socket_io::{NotConnectedDto, OpenDto};
use crate::vocabularies::native::transport::Packets;
use crate::vocabularies::native::ws::subscriptions::{Subscriptions, Update};
use crate::waits::passed;
use crate::websocket::{Broken, Message, because_of, close_code, close_reply};

pub(super) use connect::{Place, new_id};
use updates::next_lifecycle_event;

const NO_BINARY: &str = "binary data is not supported; send JSON";

/// What a session gives to its transport.
#[derive(Debug)]
pub(super) enum SessionOutput {
    /// WebSocket frames. A poll takes the packets out of them.
    Frames(Bytes),
    /// The end: the close code of a WebSocket, and its reason.
    Close(u16, &'static str),
}

pub(super) struct Session {
    api: Api,
    peer: IpAddr,
    incoming: Incoming,
    place: Place,
    /// When the client must have connected to the namespace. `None` if it has.
    connect_due: Option<Instant>,
    /// The same, for the task of a session whose client does not poll.
    connected: Rc<Cell<bool>>,
    subscriptions: Subscriptions,
    /// Only clients that have connected get lifecycle events.
    lifecycle: Option<LifecycleReader>,
    closing: CancellationToken,
    heart: Rc<Heart>,
    /// Filled only when it is empty, with the output of one [`Wake`].
    out: VecDeque<SessionOutput>,
    closed: bool,
}

/// Why the session has woken up.
enum Wake {
    Closing,
    Message(Result<Message, Broken>),
    NotConnected,
    NoPong,
    Ping,
    Lifecycle(Option<Result<Arc<KeptLifecycleEvent>, LifecycleEventsMissed>>),
    Update(Update),
}

/// The first packet of a connection, with the id of its session. `upgrades`: the transports that may take over.
pub(super) fn opening(api: &Api, sid: &str, upgrades: &[&'static str]) -> Bytes {
    let config = api.config();
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let open = OpenDto {
        sid,
        upgrades,
        ping_interval: ms(config.ping),
        ping_timeout: ms(config.socket_io_pong_timeout),
        max_payload: config.ws_message_bytes,
    };
    tagged(OPEN, &open)
}

fn tagged<T: Serialize>(tag: &[u8], value: &T) -> Bytes {
    let mut out = FrameWriter::default();
    out.tagged(tag, value);
    out.into_bytes()
}

impl Session {
    pub(super) fn new(api: &Api, peer: IpAddr, place: Place, incoming: Incoming) -> Self {
        let config = api.config();
        Self {
            peer,
            incoming,
            place,
            connect_due: Some(Instant::now() + config.handshake_timeout),
            connected: Rc::default(),
            subscriptions: Subscriptions::default(),
            lifecycle: None,
            closing: api.service().closing(),
            heart: Rc::new(Heart::new(config.ping, config.socket_io_pong_timeout)),
            out: VecDeque::new(),
            closed: false,
            api: api.clone(),
        }
    }

    /// When the client must have connected to the namespace. `None` if it has.
    pub(super) fn connect_due(&self) -> Option<Instant> {
        self.connect_due
    }

    /// Tells whether the client has connected to the namespace, also later.
    pub(super) fn connected(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.connected)
    }

    /// The pings of this session, for its transport.
    pub(super) fn heart(&self) -> Rc<Heart> {
        Rc::clone(&self.heart)
    }

    /// The next output for the client. `None` if the session is over.
    pub(super) async fn next(&mut self) -> Option<SessionOutput> {
        loop {
            if let Some(given) = self.out.pop_front() {
                self.heart.taken();
                return Some(given);
            }
            self.heart.gives_events(false);
            if self.closed {
                return None;
            }
            match self.next_wake().await {
                Wake::Closing => self.close(close_code::SHUTTING_DOWN, "shutting down"),
                // Boxed: otherwise, the session would hold the memory of this future for its whole life.
                Wake::Message(message) => Box::pin(self.message(message)).await,
                Wake::NotConnected => self.close(close_code::INVALID_FRAME, "did not connect in time"),
                Wake::NoPong if self.heart.is_late() => self.close(close_code::NO_PONG, "no pong"),
                // The transport has heard the client while this session waited.
                Wake::NoPong => {}
                Wake::Ping => self.frames(self.heart.ping()),
                Wake::Lifecycle(event) => self.lifecycle(event),
                Wake::Update(update) => self.handle_update(update),
            }
        }
    }

    async fn next_wake(&mut self) -> Wake {
        if let Some(update) = self.subscriptions.take_ready().await {
            return Wake::Update(update);
        }
        self.subscriptions.note_all_checked();
        let Self { incoming, subscriptions, lifecycle, closing, heart, connect_due, .. } = self;
        tokio::select! {
            biased;
            () = closing.cancelled() => Wake::Closing,
            // Before the deadlines, because the packet may have arrived while nothing was taken.
            message = incoming.next() => Wake::Message(message),
            () = passed(*connect_due) => Wake::NotConnected,
            () = passed(heart.pong_due()) => Wake::NoPong,
            () = passed(Some(heart.ping_due())) => Wake::Ping,
            event = next_lifecycle_event(lifecycle) => Wake::Lifecycle(event),
            update = poll_fn(|cx| subscriptions.poll_next(cx)) => Wake::Update(update),
        }
    }

    async fn message(&mut self, message: Result<Message, Broken>) {
        self.heart.heard();
        match message {
            Ok(Message::Text(text)) => {
                self.text(&text).await;
                self.incoming.clear();
            }
            Ok(Message::Binary(_)) => self.refuse_binary(),
            Ok(Message::Ping(payload)) => self.frames(frames::pong(&payload)),
            Ok(Message::Pong) => {}
            Ok(Message::Close(reason)) => {
                self.frames(close_reply(reason));
                self.closed = true;
            }
            Err(broken) => match because_of(broken).filter(|_| self.incoming.is_socket()) {
                Some((code, reason)) => self.close(code, reason),
                // The client has disconnected.
                None => self.closed = true,
            },
        }
    }

    async fn text(&mut self, text: &[u8]) {
        use engine::Packet as Engine;
        match Engine::read(text) {
            Ok(Engine::Message(message)) => self.packet(message).await,
            Ok(Engine::Close) => self.close(close_code::NORMAL, ""),
            // The transport handles upgrades. A pong shows by arriving that the client is alive.
            Ok(Engine::Pong | Engine::Probe | Engine::Upgrade | Engine::Noop) => {}
            Err(engine::NoPacket) => self.close(close_code::INVALID_FRAME, "not an Engine.IO packet"),
        }
    }

    async fn packet(&mut self, text: &str) {
        let Ok(Packet { namespace, content }) = Packet::read(text) else {
            return self.close(close_code::INVALID_FRAME, "not a Socket.IO packet");
        };
        let connected = self.connect_due.is_none();
        match content {
            Content::Connect(_) if namespace != ROOT => {
                let problem = Problem::new(Code::NotFound, "Invalid namespace");
                self.not_connected(namespace, &problem);
            }
            Content::Connect(auth) if !connected => self.connect(auth).await,
            Content::Binary => self.refuse_binary(),
            _ if namespace != ROOT => {}
            Content::Event { ack, name, value } if connected => self.event(ack, &name, value).await,
            Content::Ack if connected => {}
            Content::Disconnect => self.close(close_code::NORMAL, ""),
            Content::Connect(_) => self.close(close_code::INVALID_FRAME, "already connected"),
            Content::Event { .. } | Content::Ack => {
                self.close(close_code::INVALID_FRAME, "connect to the namespace first");
            }
        }
    }

    /// Binary data comes in messages of its own after its packet, so nothing after it can be understood.
    fn refuse_binary(&mut self) {
        if self.connect_due.is_none() {
            self.problem(&Problem::new(Code::UnsupportedMediaType, NO_BINARY), None);
        }
        self.close(close_code::NOT_TEXT, NO_BINARY);
    }

    fn not_connected(&mut self, namespace: &str, problem: &Problem) {
        let message = problem.sentence();
        let data = error_frame(problem, &message, None);
        // The name of a namespace has no characters that have a meaning here.
        let namespace = if namespace == ROOT { String::new() } else { format!("{namespace},") };
        let tag = format!("{NOT_CONNECTED}{namespace}");
        self.frames(tagged(tag.as_bytes(), &NotConnectedDto { message: &message, data }));
    }

    fn problem(&mut self, problem: &Problem, agent: Option<AgentId>) {
        let message = problem.sentence();
        self.emit("error", &error_frame(problem, &message, agent));
    }

    fn emit<P: Serialize>(&mut self, name: &'static str, payload: &P) {
        let mut out = Packets::default();
        out.event(name, payload);
        self.frames(out.into_bytes());
    }

    fn frames(&mut self, frames: Bytes) {
        // The events of a page may all be invisible.
        if !frames.is_empty() {
            self.out.push_back(SessionOutput::Frames(frames));
        }
    }

    fn close(&mut self, code: u16, reason: &'static str) {
        self.out.push_back(SessionOutput::Close(code, reason));
        self.closed = true;
    }
}

fn error_frame<'a>(problem: &Problem, message: &'a str, agent: Option<AgentId>) -> ErrorFrame<'a> {
    let Problem { code, detail: _, errors: _, head, retry_after_s: _, allow: _ } = problem;
    ErrorFrame {
        code: code.as_str(),
        message,
        retryable: code.retryable(),
        agent_id: agent.map(Into::into),
        request_id: None,
        head: *head,
    }
}
