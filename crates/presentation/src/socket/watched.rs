//! A connection whose client may not keep it for nothing.
//!
//! The library waits for the head of the first request only, and for the rest of a body that nobody reads as long as it
//! takes. So whoever sends a byte now and then would keep a connection for ever, also without a token.

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

/// What a client may send that is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Idle {
    /// From an answer to the next request.
    pub(crate) keep_alive: Duration,
    /// From the first byte of the next request to the end of its head.
    pub(crate) head: Duration,
    /// Bytes that are read of a body after its answer.
    pub(crate) rest_bytes: usize,
    /// How long the client may take for each [`STEP_BYTES`] of an answer whose length is known, and of the rest of any other.
    pub(crate) flush: Duration,
}

/// What a connection is doing: its reader and the guard of its requests share this.
pub(crate) struct Watch {
    idle: Idle,
    phase: Cell<Phase>,
    flush: Cell<Flush>,
    link: RefCell<Link>,
}

/// Who has the socket.
enum Link {
    /// The library's dispatcher of HTTP.
    Http(TcpStream),
    /// The connection streams from now on, and the dispatcher is told that its socket is closed.
    Left(Option<Box<Streaming>>),
}

/// What the client still has to take of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flush {
    /// Nobody knows how much comes: a client that takes nothing of it is cut by the socket.
    Open,
    /// All was written, and how much waits is seen with the next write.
    Last,
    Due(Instant),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A request is being answered. So is the time before the first one, which the library bounds.
    Request,
    /// The next request is waited for, or the rest of its head.
    Between { due: Instant, begun: bool },
    /// The last answer was given before its request had come to its end: so many more bytes are read, and thrown away
    /// by the library, which closes soon.
    Rest { bytes: usize },
}

impl Watch {
    pub(crate) fn new(idle: Idle, socket: TcpStream) -> Self {
        let link = RefCell::new(Link::Http(socket));
        Self { idle, phase: Cell::new(Phase::Request), flush: Cell::new(Flush::Open), link }
    }

    pub(crate) fn idle(&self) -> Idle {
        self.idle
    }

    /// Whether the dispatcher of HTTP has the socket no longer.
    pub(crate) fn has_left(&self) -> bool {
        matches!(*self.link.borrow(), Link::Left(_))
    }

    /// Takes the socket from the dispatcher of HTTP; none where it was taken before.
    pub(crate) fn leave(&self) -> Option<Rc<TcpStream>> {
        match self.link.replace(Link::Left(None)) {
            Link::Http(socket) => Some(Rc::new(socket)),
            left @ Link::Left(_) => {
                self.link.replace(left);
                None
            }
        }
    }

    /// What the connection does when the dispatcher has ended.
    pub(crate) fn then(&self, streaming: Streaming) {
        self.link.replace(Link::Left(Some(Box::new(streaming))));
    }

    /// What the connection does now that the dispatcher has ended; none where it has only answered requests.
    pub(crate) fn streaming(&self) -> Option<Box<Streaming>> {
        match &mut *self.link.borrow_mut() {
            Link::Http(_) => None,
            Link::Left(streaming) => streaming.take(),
        }
    }

    /// A request has come.
    pub(crate) fn request(&self) {
        self.phase.set(Phase::Request);
        self.flush.set(Flush::Open);
    }

    /// It was answered, and whether its body had come to its end.
    pub(crate) fn answered(&self, whole: bool) {
        self.phase.set(if whole {
            Phase::Between { due: Instant::now() + self.idle.keep_alive, begun: false }
        } else {
            Phase::Rest { bytes: self.idle.rest_bytes }
        });
        if self.flush.get() == Flush::Open {
            self.flush.set(Flush::Last);
        }
    }

    /// Its answer has so many bytes.
    pub(crate) fn answers(&self, bytes: u64) {
        self.flush.set(Flush::Due(self.flush_by(bytes)));
    }

    fn flush_by(&self, bytes: u64) -> Instant {
        let steps = u32::try_from(1 + bytes / STEP_BYTES).unwrap_or(u32::MAX);
        Instant::now() + self.idle.flush.saturating_mul(steps)
    }

    /// Until when the client has to take what waits, of which this is the rest.
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
            Phase::Rest { bytes: left } => self.phase.set(Phase::Rest { bytes: left.saturating_sub(bytes) }),
            Phase::Request | Phase::Between { .. } => {}
        }
    }
}

/// The socket of a connection, as the dispatcher of HTTP sees it.
pub(crate) struct Watched {
    watch: Rc<Watch>,
    reading: Timer,
    writing: Timer,
}

/// Made when it is needed first.
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

    /// What came of a write of the rest of what waits.
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
        // The dispatcher ends then.
        let Link::Http(socket) = &mut *watch.link.borrow_mut() else { return Poll::Ready(Ok(())) };
        // To end the connection here would throw away an answer that the client has not read yet.
        if watch.phase.get() == (Phase::Rest { bytes: 0 }) {
            return Poll::Pending;
        }
        let before = into.filled().len();
        let read = Pin::new(socket).poll_read(cx, into);
        match (&read, watch.phase.get()) {
            (Poll::Ready(_), _) => watch.has_read(into.filled().len() - before),
            // No more comes of it.
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
                // The stream has the head of the answer. That the socket is closed is seen at the next reading.
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
