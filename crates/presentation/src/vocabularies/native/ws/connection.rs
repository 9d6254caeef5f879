//! One WebSocket connection: it reads the client's messages, and produces frames.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use tokenrail_application::{
    KeptLifecycleEvent, LifecycleEventsMissed, LifecycleReader, PermissionAnswer, RenderingKey, StreamEnd,
};
use tokenrail_domain::{AgentId, Timestamp};
use tokio::time::{Instant, Interval};
use tokio_util::sync::CancellationToken;

use crate::api::{Api, StreamPlace};
use crate::error::{Code, FieldProblem, Problem};
use crate::frames::{self, FrameWriter};
use crate::vocabularies::native::dto::client::{ClientFrame, Subscribe, client_frame};
use crate::vocabularies::native::dto::frames::{
    ErrorFrame, Heads, PermissionFrame, Subscribed, Unsubscribed,
};
use crate::vocabularies::native::ws::answers::{Answered, AnswersInFlight};
use crate::vocabularies::native::ws::envelope::{deleted_frame, envelope, lifecycle_frame};
use crate::vocabularies::native::ws::follow::{Followed, follow};
use crate::vocabularies::native::ws::message_status::message_status;
use crate::vocabularies::native::ws::outbox::Outbox;
use crate::vocabularies::native::ws::subscriptions::{Subscriptions, Update};
use crate::vocabularies::native::ws::wishes::Wishes;
use crate::waits::{every, passed};
use crate::websocket::{Broken, Message, Messages};
use crate::websocket::{because_of, close_code, close_reply};

pub(crate) struct Connection {
    api: Api,
    messages: Messages,
    subscriptions: Subscriptions,
    /// Answers to permission requests that are on their way to agents.
    answers: AnswersInFlight,
    lifecycle: LifecycleReader,
    closing: CancellationToken,
    heartbeat: Interval,
    ping: Interval,
    /// When the connection is closed unless the client answers the ping.
    pong_due: Option<Instant>,
    /// Whether the bytes that are being sent contain events.
    giving: bool,
    wishes: Wishes,
    out: Outbox,
    closed: bool,
    _place: StreamPlace,
}

/// Why the connection has woken up.
enum Wake {
    Closing,
    Message(Result<Message, Broken>),
    NoPong,
    Ping,
    Heartbeat,
    OutDue,
    Lifecycle(Option<Result<Arc<KeptLifecycleEvent>, LifecycleEventsMissed>>),
    Update(Update),
    Answered(Answered),
}

impl Connection {
    pub(crate) fn new(api: Api, messages: Messages, wishes: Wishes, place: StreamPlace) -> Self {
        let config = api.config();
        Self {
            messages,
            subscriptions: Subscriptions::default(),
            answers: AnswersInFlight::default(),
            lifecycle: api.service().lifecycle_events(),
            closing: api.service().closing(),
            heartbeat: every(config.heartbeat),
            ping: every(config.ping),
            pong_due: None,
            giving: false,
            wishes,
            out: Outbox::new(wishes.batch, wishes.throttle, config.ws_batch_bytes),
            closed: false,
            api,
            _place: place,
        }
    }

    /// The next bytes for the client. `None` if the connection must be closed.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.out.next() {
                self.taken();
                return Some(bytes);
            }
            self.giving = false;
            if self.closed {
                return None;
            }
            match self.next_wake().await {
                Wake::Closing => self.close_with(close_code::SHUTTING_DOWN, "shutting down"),
                // Boxed: otherwise, the connection would hold the memory of this future for its whole life.
                Wake::Message(message) => Box::pin(self.message(message)).await,
                Wake::NoPong => self.close_with(close_code::NO_PONG, "no pong"),
                Wake::Ping => {
                    self.out.control(frames::ping());
                    // An unanswered ping keeps its deadline.
                    let due = Instant::now() + self.api.config().pong_timeout;
                    self.pong_due.get_or_insert(due);
                }
                Wake::Heartbeat => {
                    let heads = Heads { heads: self.subscriptions.heads() };
                    self.send("heartbeat", heads);
                }
                Wake::OutDue => self.out.let_out(),
                Wake::Lifecycle(event) => self.lifecycle(event),
                Wake::Update(update) => self.handle_update(update),
                Wake::Answered(answered) => self.answered(answered),
            }
        }
    }

    /// Extends the deadline of the pong while the socket accepts bytes of events, because the client may have to read
    /// many of them before the ping. The socket's own limit disconnects a client that accepts no bytes.
    fn taken(&mut self) {
        if let (true, Some(due)) = (self.giving, &mut self.pong_due) {
            *due = Instant::now() + self.api.config().pong_timeout;
        }
    }

    async fn next_wake(&mut self) -> Wake {
        if !self.out.is_full()
            && let Some(update) = self.subscriptions.take_ready().await
        {
            return Wake::Update(update);
        }
        self.subscriptions.note_all_checked();
        let Self {
            messages, subscriptions, lifecycle, closing, heartbeat, ping, pong_due, out, answers, ..
        } = self;
        // If the throttle is full, its text must go out before more events are read.
        let full = out.is_full();
        tokio::select! {
            biased;
            () = closing.cancelled() => Wake::Closing,
            // Before the pong's deadline, because the pong may have arrived while the socket was full.
            message = messages.next() => Wake::Message(message),
            () = passed(*pong_due) => Wake::NoPong,
            _ = ping.tick() => Wake::Ping,
            _ = heartbeat.tick() => Wake::Heartbeat,
            () = passed(out.due()) => Wake::OutDue,
            event = lifecycle.next() => Wake::Lifecycle(event),
            Some(answered) = answers.next() => Wake::Answered(answered),
            update = poll_fn(|cx| subscriptions.poll_next(cx)), if !full => Wake::Update(update),
        }
    }

    async fn message(&mut self, message: Result<Message, Broken>) {
        // Any message shows that the client is alive.
        self.pong_due = None;
        match message {
            Ok(Message::Text(text)) => {
                self.text(&text).await;
                self.messages.clear();
            }
            Ok(Message::Binary(_)) => {
                self.close_with(close_code::NOT_TEXT, "binary messages are not supported; send text");
            }
            Ok(Message::Ping(payload)) => self.out.control(frames::pong(&payload)),
            Ok(Message::Pong) => {}
            Ok(Message::Close(reason)) => self.close(close_reply(reason)),
            Err(broken) => match because_of(broken) {
                Some((code, reason)) => self.close_with(code, reason),
                // The client has disconnected.
                None => self.closed = true,
            },
        }
    }

    async fn text(&mut self, text: &[u8]) {
        match client_frame(text, self.api.config().json_depth) {
            Ok(ClientFrame::Subscribe(wish)) => {
                let agent = wish.agent;
                if let Err(problem) = self.subscribe(wish).await {
                    self.problem(&problem, Some(agent));
                }
            }
            Ok(ClientFrame::Unsubscribe { agent }) => {
                let deleted = self.subscriptions.remove(agent);
                self.unsubscribed(agent, deleted);
            }
            Ok(ClientFrame::MessageStatus(asked)) => {
                match message_status(&self.api, self.subscriptions.agents(), asked).await {
                    Ok(frame) => self.send("message.status", frame.dto()),
                    Err(problem) => self.problem(&problem, asked.agent),
                }
            }
            Ok(ClientFrame::Permission { agent, answer }) => self.answer(agent, answer),
            Ok(ClientFrame::Ping) => self.send("pong", serde_json::Map::new()),
            Err(mistake) => self.problem(&mistake.problem, mistake.agent),
        }
    }

    async fn subscribe(&mut self, wish: Subscribe) -> Result<(), Problem> {
        self.subscriptions.check_room(wish.agent, self.api.config().subscriptions_per_connection)?;
        let Followed { agent, head, follower, teller } = follow(&self.api, &wish, &self.wishes).await?;
        let (agent_id, status) = (agent.id.into(), agent.status.as_str());
        self.send("subscribed", Subscribed { agent_id, head: head.0, status });
        self.subscriptions.insert(follower, teller, agent.deleted_at);
        Ok(())
    }

    fn answer(&mut self, agent: AgentId, answer: PermissionAnswer) {
        if self.api.config().subscriptions_per_connection <= self.answers.len() {
            let problem = Problem::new(
                Code::CapacityExhausted,
                "too many permission answers are in progress on this connection; wait for one of them",
            );
            return self.problem(&problem, Some(agent));
        }
        self.answers.send(&self.api, agent, answer);
    }

    fn answered(&mut self, answered: Answered) {
        let Answered { agent, request_id, came } = answered;
        match came {
            Ok(state) => self.send("permission", PermissionFrame { agent_id: agent.into(), state }),
            Err(problem) => self.problem_with(&problem, Some(agent), Some(request_id)),
        }
    }

    fn handle_update(&mut self, update: Update) {
        match update {
            Update::Page(frames) => {
                self.giving = true;
                self.out.say(frames);
            }
            Update::End { end: StreamEnd::ShuttingDown, .. } => {}
            Update::End { agent, end: StreamEnd::AgentEnded | StreamEnd::AgentDeleted, deleted } => {
                self.unsubscribed(agent, deleted);
            }
            Update::Broken { agent, error, deleted } => {
                self.problem(&error.into(), Some(agent));
                if let Some(at) = deleted {
                    self.deleted(agent, at);
                }
            }
        }
    }

    /// If an agent is deleted while it is followed, `agent:deleted` is the last frame about it.
    fn unsubscribed(&mut self, agent: AgentId, deleted: Option<Timestamp>) {
        self.send("unsubscribed", Unsubscribed { agent_id: agent.into() });
        if let Some(at) = deleted {
            self.deleted(agent, at);
        }
    }

    fn deleted(&mut self, agent: AgentId, at: Timestamp) {
        self.out.push(deleted_frame(agent, at));
    }

    fn lifecycle(&mut self, event: Option<Result<Arc<KeptLifecycleEvent>, LifecycleEventsMissed>>) {
        match event {
            Some(Ok(item)) => {
                if !self.subscriptions.tells_later(&item.event) {
                    let key = RenderingKey::of::<FrameWriter>([0, 0]);
                    self.out.push(item.rendering(key, |event| lifecycle_frame(self.api.service(), event)));
                }
            }
            Some(Err(LifecycleEventsMissed)) => {
                let problem =
                    Problem::new(Code::NewsLagged, "lifecycle events were missed: reload the list of agents");
                self.problem(&problem, None);
            }
            // The lifecycle events end only when the service closes.
            None => self.close_with(close_code::SHUTTING_DOWN, "shutting down"),
        }
    }

    fn problem(&mut self, problem: &Problem, agent: Option<AgentId>) {
        self.problem_with(problem, agent, None);
    }

    fn problem_with(&mut self, problem: &Problem, agent: Option<AgentId>, request_id: Option<String>) {
        let Problem { code, detail, errors, head, retry_after_s: _, allow: _ } = problem;
        let message = errors.first().map_or_else(|| detail.clone(), FieldProblem::sentence);
        let frame = ErrorFrame {
            code: code.as_str(),
            message: &message,
            retryable: code.retryable(),
            agent_id: agent.map(Into::into),
            request_id,
            head: *head,
        };
        self.send("error", frame);
    }

    fn send<P: Serialize>(&mut self, kind: &'static str, payload: P) {
        self.out.push(envelope(kind, payload, self.api.service().now()));
    }

    fn close_with(&mut self, code: u16, reason: &str) {
        self.close(frames::close(code, reason));
    }

    fn close(&mut self, frame: Bytes) {
        self.out.let_all_out();
        self.out.control(frame);
        self.closed = true;
    }
}
