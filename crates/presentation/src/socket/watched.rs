//! Limits on clients that keep a connection without using it.
//!
//! actix limits only the time for the head of the first request, and reads the rest of an unread body for any length of
//! time. So a client that sends a byte now and then could keep a connection forever, even without a token.

use std::cell::{Cell, RefCell};
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::rt::net::TcpStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::streaming::{STEP_BYTES, Streaming};

/// Limits on a client that keeps a connection without using it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Idle {
    /// From a response to the next request.
    pub(crate) keep_alive: Duration,
    /// From the first byte of the next request to the end of its head.
    pub(crate) head: Duration,
    /// How many bytes of a request body are read after the response.
    pub(crate) unread_body_bytes: usize,
    /// How long the client may take for each [`STEP_BYTES`] of a response whose length is known, and of the unsent rest
    /// of any other.
    pub(crate) flush: Duration,
}

/// The state of a connection, shared by its socket and by the guard of its requests.
pub(crate) struct Watch {
    idle: Idle,
    phase: Cell<Phase>,
    flush: Cell<Flush>,
    link: RefCell<Link>,
}

/// The owner of the socket.
enum Link {
    /// actix's HTTP dispatcher.
    Http(TcpStream),
    /// The connection only streams from now on. To the dispatcher, the socket appears closed.
    Left(Option<Box<Streaming>>),
}

/// How long the client may take to receive the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flush {
    /// The length of the response is unknown. The socket's own limit disconnects a client that receives nothing.
    Open,
    /// The response is complete. The next write shows how much of it is unsent, and sets the deadline.
    Last,
    Due(Instant),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A request is being processed. This includes the time before the first request, which actix limits.
    Request,
    /// The connection waits for the next request, or for the rest of its head if `begun`.
    Between { due: Instant, begun: bool },
    /// The response was complete before the request's body was. At most this many more bytes are read. actix discards
    /// them, and closes the connection soon.
    UnreadBody { bytes: usize },
}

impl Watch {
    pub(crate) fn new(idle: Idle, socket: TcpStream) -> Self {
        let link = RefCell::new(Link::Http(socket));
        Self { idle, phase: Cell::new(Phase::Request), flush: Cell::new(Flush::Open), link }
    }

    pub(crate) fn idle(&self) -> Idle {
        self.idle
    }

    /// Whether the socket was taken from the HTTP dispatcher.
    pub(crate) fn has_left(&self) -> bool {
        matches!(*self.link.borrow(), Link::Left(_))
    }

    /// Takes the socket from the HTTP dispatcher. `None` if it was taken before.
    pub(crate) fn leave(&self) -> Option<Rc<TcpStream>> {
        match self.link.replace(Link::Left(None)) {
            Link::Http(socket) => Some(Rc::new(socket)),
            left @ Link::Left(_) => {
                self.link.replace(left);
                None
            }
        }
    }

    /// Sets what the connection does after the dispatcher has ended.
    pub(crate) fn then(&self, streaming: Streaming) {
        self.link.replace(Link::Left(Some(Box::new(streaming))));
    }

    /// What the connection does after the dispatcher has ended. `None` if it has only served requests.
    pub(crate) fn take_streaming(&self) -> Option<Box<Streaming>> {
        match &mut *self.link.borrow_mut() {
            Link::Http(_) => None,
            Link::Left(streaming) => streaming.take(),
        }
    }

    /// A request has arrived.
    pub(crate) fn request(&self) {
        self.phase.set(Phase::Request);
        self.flush.set(Flush::Open);
    }

    /// The response is complete. `whole` says whether the request's body was read to its end.
    pub(crate) fn answered(&self, whole: bool) {
        self.phase.set(if whole {
            Phase::Between { due: Instant::now() + self.idle.keep_alive, begun: false }
        } else {
            Phase::UnreadBody { bytes: self.idle.unread_body_bytes }
        });
        if self.flush.get() == Flush::Open {
            self.flush.set(Flush::Last);
        }
    }

    /// The body of the response has `bytes` bytes.
    pub(crate) fn answers(&self, bytes: u64) {
        self.flush.set(Flush::Due(self.flush_by(bytes)));
    }

    fn flush_by(&self, bytes: u64) -> Instant {
        let steps = u32::try_from(1 + bytes / STEP_BYTES).unwrap_or(u32::MAX);
        Instant::now() + self.idle.flush.saturating_mul(steps)
    }

    /// When the client must have received the response, of which `waiting` bytes are unsent. `None` without a deadline.
    fn flush_due(&self, waiting: usize) -> Option<Instant> {
        if self.flush.get() == Flush::Last {
            self.answers(waiting as u64);
        }
        match self.flush.get() {
            Flush::Due(due) => Some(due),
            Flush::Open | Flush::Last => None,
        }
    }

    fn has_read(&self, bytes: usize) {
        match self.phase.get() {
            Phase::Between { begun: false, .. } if 0 < bytes => {
                self.phase.set(Phase::Between { due: Instant::now() + self.idle.head, begun: true });
            }
            Phase::UnreadBody { bytes: left } => {
                self.phase.set(Phase::UnreadBody { bytes: left.saturating_sub(bytes) });
            }
            Phase::Request | Phase::Between { .. } => {}
        }
    }
}

/// The socket of a connection, as the HTTP dispatcher sees it.
pub(crate) struct Watched {
    watch: Rc<Watch>,
    reading: Timer,
    writing: Timer,
}

/// A timer that is created on its first use.
#[derive(Default)]
struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    fn is_over(&mut self, due: Instant, cx: &mut Context<'_>) -> bool {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if timer.deadline() != due {
            timer.as_mut().reset(due);
        }
        timer.as_mut().poll(cx).is_ready()
    }
}

impl Watched {
    pub(crate) fn new(watch: Rc<Watch>) -> Self {
        Self { watch, reading: Timer::default(), writing: Timer::default() }
    }

    pub(crate) fn watch(&self) -> &Rc<Watch> {
        &self.watch
    }

    /// The result of a write, or an error if the write is pending and the client's time is over. `waiting` is the
    /// number of unsent bytes.
    fn written(
        &mut self,
        written: Poll<io::Result<usize>>,
        waiting: usize,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match self.watch.flush_due(waiting) {
            Some(due) if written.is_pending() && self.writing.is_over(due, cx) => Poll::Ready(Err(
                io::Error::new(io::ErrorKind::TimedOut, "the client does not read the response"),
            )),
            _ => written,
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { watch, reading, .. } = &mut *self;
        // The end of the input ends the dispatcher.
        let Link::Http(socket) = &mut *watch.link.borrow_mut() else { return Poll::Ready(Ok(())) };
        // Ending the connection here would discard a response that the client has not read yet.
        if watch.phase.get() == (Phase::UnreadBody { bytes: 0 }) {
            return Poll::Pending;
        }
        let before = into.filled().len();
        let read = Pin::new(socket).poll_read(cx, into);
        match (&read, watch.phase.get()) {
            (Poll::Ready(_), _) => watch.has_read(into.filled().len() - before),
            // The client took too long: report the end of the input.
            (Poll::Pending, Phase::Between { due, .. }) if reading.is_over(due, cx) => {
                return Poll::Ready(Ok(()));
            }
            (Poll::Pending, _) => {}
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = match &mut *self.watch.link.borrow_mut() {
            Link::Http(socket) => Pin::new(socket).poll_write(cx, bytes),
            Link::Left(_) => {
                // Discard the bytes: the stream writes the head of the response itself. The next read shows the
                // dispatcher that the socket is closed.
                cx.waker().wake_by_ref();
                return Poll::Ready(Ok(bytes.len()));
            }
        };
        self.written(written, bytes.len(), cx)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self.watch.link.borrow_mut() {
            Link::Http(socket) => Pin::new(socket).poll_flush(cx),
            Link::Left(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self.watch.link.borrow_mut() {
            Link::Http(socket) => Pin::new(socket).poll_shutdown(cx),
            Link::Left(_) => Poll::Ready(Ok(())),
        }
    }
}
