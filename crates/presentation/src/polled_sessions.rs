//! Sessions that live longer than one request: those of Socket.IO clients that poll. A task owns the session; the
//! requests of the client reach it here, on whichever web worker they arrive. Sessions are in the memory of one server.
//!
//! A session produces only what a request takes, so a client that does not poll costs no memory for output.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// How many bodies of a client wait until its session reads them. Each may be as long as a message of a WebSocket.
const BODIES_WAITING: usize = 4;
/// How many requests to a session may wait. There is one poll at a time, and one socket that takes over.
const ASKED_WAITING: usize = 4;

/// The sessions of one server. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct PolledSessions(Arc<Mutex<HashMap<String, Arc<PolledSession>>>>);

/// The requests' end of one session.
pub(crate) struct PolledSession {
    asked: mpsc::Sender<PolledRequest>,
    bodies: mpsc::Sender<Bytes>,
    polling: AtomicBool,
    posting: AtomicBool,
    upgrading: Upgrading,
    /// A WebSocket has taken the session over.
    has_socket: AtomicBool,
}

/// The session's end.
pub(crate) struct PolledInbox {
    pub(crate) asked: mpsc::Receiver<PolledRequest>,
    pub(crate) bodies: mpsc::Receiver<Bytes>,
    pub(crate) upgrading: Upgrading,
    pub(crate) listed: Listed,
}

/// Whether a WebSocket probes a session, or has taken it over. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Upgrading(Arc<AtomicBool>);

impl Upgrading {
    /// Returns false if it was so already.
    pub(crate) fn begin(&self) -> bool {
        self.0.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn fail(&self) {
        self.0.store(false, Ordering::Release);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Keeps the session in the list until it is dropped.
pub(crate) struct Listed {
    id: String,
    all: PolledSessions,
}

/// What a request wants of a session.
pub(crate) enum PolledRequest {
    /// The next packets, as many as one response may have.
    Poll(oneshot::Sender<Output>),
    /// The next packets, for a WebSocket that has taken the session over.
    Page(oneshot::Sender<Output>),
    /// A WebSocket is about to take over. The waiting poll ends, so that the client can change over.
    Probe,
    /// The client has answered a ping.
    Pong,
    /// The client reads a long packet that it has got.
    Alive,
    /// The client leaves.
    Leave,
    /// The client has broken the protocol.
    End,
}

/// What a session gives.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// WebSocket frames.
    pub(crate) frames: Bytes,
    /// The session is over, and this is the close code of a WebSocket with its reason.
    pub(crate) close: Option<(u16, &'static str)>,
}

/// Why a request cannot be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolledFault {
    /// The session is over.
    Gone,
    /// The client has another request of the same kind in progress, or a WebSocket has taken over.
    Overlap,
    /// The session has not read the earlier bodies in time.
    TooSlow,
}

impl PolledSessions {
    /// Lists a new session.
    pub(crate) fn open(&self, id: &str) -> PolledInbox {
        let (asked, asked_here) = mpsc::channel(ASKED_WAITING);
        let (bodies, bodies_here) = mpsc::channel(BODIES_WAITING);
        let upgrading = Upgrading::default();
        let session = PolledSession {
            asked,
            bodies,
            polling: AtomicBool::new(false),
            posting: AtomicBool::new(false),
            upgrading: upgrading.clone(),
            has_socket: AtomicBool::new(false),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), Arc::new(session));
        let listed = Listed { id: id.to_owned(), all: self.clone() };
        PolledInbox { asked: asked_here, bodies: bodies_here, upgrading, listed }
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<PolledSession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl PolledSession {
    /// Waits for the next packets of the session.
    ///
    /// # Errors
    /// [`PolledFault`] if the session is over, or the client must not poll now. In the second case, the session ends.
    pub(crate) async fn poll(&self) -> Result<Output, PolledFault> {
        let Some(_alone) = Alone::take(&self.polling) else { return Err(self.overlap().await) };
        self.ask(PolledRequest::Poll).await.ok_or(PolledFault::Gone)
    }

    /// Passes a body of packets to the session.
    ///
    /// # Errors
    /// [`PolledFault`] if the session is over, or does not take the body in time, or the client has another such
    /// request. In these cases, the session ends.
    pub(crate) async fn post(&self, body: Bytes, limit: Duration) -> Result<(), PolledFault> {
        let Some(_alone) = Alone::take(&self.posting) else { return Err(self.overlap().await) };
        if let Ok(sent) = timeout(limit, self.bodies.send(body)).await {
            return sent.map_err(|_| PolledFault::Gone);
        }
        self.end().await;
        Err(PolledFault::TooSlow)
    }

    /// Reserves the session for a WebSocket. `None` if another one has it, or the client floods it with requests.
    pub(crate) fn probe(&self) -> Option<()> {
        if !self.upgrading.begin() {
            return None;
        }
        if self.asked.try_send(PolledRequest::Probe).is_err() {
            self.upgrading.fail();
            return None;
        }
        Some(())
    }

    /// The WebSocket has ended without taking over.
    pub(crate) fn probe_failed(&self) {
        self.upgrading.fail();
    }

    /// Whether a WebSocket has taken the session over.
    pub(crate) fn has_socket(&self) -> bool {
        self.has_socket.load(Ordering::Acquire)
    }

    /// Waits for what the session has, for the WebSocket that has taken over. `None` if the session is over.
    pub(crate) async fn page(&self) -> Option<Output> {
        self.has_socket.store(true, Ordering::Release);
        self.ask(PolledRequest::Page).await
    }

    /// Tells the session of the answer to a ping, which waits behind no body.
    ///
    /// # Errors
    /// [`PolledFault::Gone`].
    pub(crate) async fn pong(&self) -> Result<(), PolledFault> {
        self.asked.send(PolledRequest::Pong).await.map_err(|_| PolledFault::Gone)
    }

    /// Ends the session at its client's request. A request that waits gets the end.
    ///
    /// # Errors
    /// [`PolledFault::Gone`].
    pub(crate) async fn leave(&self) -> Result<(), PolledFault> {
        self.asked.send(PolledRequest::Leave).await.map_err(|_| PolledFault::Gone)
    }

    /// Tells the session that its client is reading.
    pub(crate) fn alive(&self) {
        let _ = self.asked.try_send(PolledRequest::Alive);
    }

    /// Ends the session.
    pub(crate) async fn end(&self) {
        // The session may be over.
        let _ = self.asked.send(PolledRequest::End).await;
    }

    /// Ends the session, at the latest when it has been idle.
    pub(crate) fn end_soon(&self) {
        let _ = self.asked.try_send(PolledRequest::End);
    }

    async fn overlap(&self) -> PolledFault {
        self.end().await;
        PolledFault::Overlap
    }

    async fn ask(&self, asked: impl FnOnce(oneshot::Sender<Output>) -> PolledRequest) -> Option<Output> {
        let (reply, mut output) = oneshot::channel();
        self.asked.send(asked(reply)).await.ok()?;
        tokio::select! {
            biased;
            output = &mut output => output.ok(),
            // A request that was sent at the very moment of the end may stay in the channel for as long as this
            // session has a sender.
            () = self.asked.closed() => output.try_recv().ok(),
        }
    }
}

/// A request that is the only one of its kind.
struct Alone<'a>(&'a AtomicBool);

impl<'a> Alone<'a> {
    fn take(flag: &'a AtomicBool) -> Option<Self> {
        let taken = flag.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire).is_ok();
        taken.then_some(Self(flag))
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_poll_ends_if_the_session_ends_before_it_takes_the_poll() {
        let sessions = PolledSessions::default();
        let mut inbox = sessions.open("a");
        let session = sessions.get("a").unwrap();
        // The poll is sent first.
        let poll = timeout(Duration::from_hours(1), session.poll());
        let (polled, ()) = tokio::join!(biased; poll, async { inbox.asked.close() });
        assert_eq!(polled.expect("it ends").map(|_| ()), Err(PolledFault::Gone));
        assert_eq!(inbox.asked.len(), 1);
    }

    #[tokio::test]
    async fn a_socket_that_came_while_the_session_was_flooded_may_come_again() {
        let sessions = PolledSessions::default();
        let mut inbox = sessions.open("a");
        let session = sessions.get("a").unwrap();
        while session.asked.try_send(PolledRequest::Alive).is_ok() {}
        assert!(session.probe().is_none() && !inbox.upgrading.is_on(), "its polls are served as before");
        while inbox.asked.try_recv().is_ok() {}
        assert!(session.probe().is_some() && inbox.upgrading.is_on());
        assert!(session.probe().is_none(), "another socket has it");
    }
}
