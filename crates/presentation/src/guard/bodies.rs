//! Request bodies that no handler reads to the end: they must not keep a connection open. Also the reader of a
//! WebSocket's bytes (`SocketReader`), and the body of a response (`Outgoing`).

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::HttpMessage as _;
use actix_web::body::{BodySize, MessageBody};
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::rt::net::TcpStream;
use bytes::{Bytes, BytesMut};
use futures_util::stream::Stream;
use futures_util::{FutureExt as _, StreamExt as _};
use pin_project_lite::pin_project;

use crate::socket::{Watch, poll_read};

/// The body of a request. Its handler reads it, and the guard can see whether it has ended.
pub(super) struct Incoming(Option<Rc<Shared>>);

struct Shared {
    payload: RefCell<Payload>,
    ended: Cell<bool>,
}

impl Incoming {
    /// Wraps the body of a request, if it has one, so that the guard can observe it.
    pub(super) fn of(request: &mut ServiceRequest) -> Self {
        let payload = match request.take_payload() {
            Payload::None => return Self(None),
            payload => payload,
        };
        let shared = Rc::new(Shared { payload: RefCell::new(payload), ended: Cell::new(false) });
        request.set_payload(Payload::Stream { payload: Box::pin(Reader(Rc::clone(&shared))) });
        Self(Some(shared))
    }

    /// Discards what has already arrived, so that a small unread body does not cost the connection.
    pub(super) async fn skip(&self) {
        let Some(shared) = &self.0 else { return };
        if shared.ended.get() {
            return;
        }
        // The dispatcher hands over what came with the head only when this task yields.
        tokio::task::yield_now().await;
        let mut reader = Reader(Rc::clone(shared));
        while let Some(Some(Ok(_))) = reader.next().now_or_never() {}
    }

    /// Continues the body on the socket when the connection leaves HTTP: first what has already arrived, then what
    /// the socket receives.
    pub(super) fn go_on_with(&self, socket: Rc<TcpStream>) {
        let Some(shared) = &self.0 else { return };
        let payload = &mut *shared.payload.borrow_mut();
        // The dispatcher ends now. It hands over its input only while little of it is unread, so read all of it.
        let mut early = BytesMut::new();
        while let Some(Some(Ok(bytes))) = payload.next().now_or_never() {
            early.extend_from_slice(&bytes);
        }
        let dispatched = Some(std::mem::replace(payload, Payload::None));
        let reader = SocketReader { early: early.freeze(), dispatched, socket };
        *payload = Payload::Stream { payload: Box::pin(reader) };
    }

    pub(super) fn has_ended(&self) -> bool {
        self.0.as_ref().is_none_or(|shared| shared.ended.get())
    }
}

struct Reader(Rc<Shared>);

impl Stream for Reader {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Shared { payload, ended } = &*self.0;
        if ended.get() {
            return Poll::Ready(None);
        }
        let next = payload.borrow_mut().poll_next_unpin(cx);
        if matches!(next, Poll::Ready(None | Some(Err(_)))) {
            ended.set(true);
        }
        next
    }
}

/// Continues to read where the HTTP dispatcher has ended.
struct SocketReader {
    early: Bytes,
    dispatched: Option<Payload>,
    socket: Rc<TcpStream>,
}

/// Maximum number of bytes that are read from a socket at once.
const READ_BYTES: usize = 8 << 10;

impl Stream for SocketReader {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !self.early.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.early))));
        }
        if let Some(payload) = &mut self.dispatched {
            match ready!(payload.poll_next_unpin(cx)) {
                Some(Ok(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                // The dispatcher's part has ended. An error only means that the dispatcher expected more.
                Some(Err(_)) | None => self.dispatched = None,
            }
        }
        // Most polls find nothing, so create a buffer only if there is input.
        ready!(self.socket.poll_read_ready(cx))?;
        let mut bytes = [0; READ_BYTES];
        Poll::Ready(match ready!(poll_read(&self.socket, cx, &mut bytes)) {
            Ok(0) => None,
            Ok(read) => Some(Ok(Bytes::copy_from_slice(&bytes[..read]))),
            Err(error) => Some(Err(error.into())),
        })
    }
}

/// Notifies the [`Watch`] of a connection when the response is complete. `watch` is `None` if there is none to notify.
pub(super) struct Answering {
    watch: Option<Rc<Watch>>,
    incoming: Incoming,
}

impl Answering {
    pub(super) fn new(watch: Option<Rc<Watch>>, incoming: Incoming) -> Self {
        Self { watch, incoming }
    }

    /// For a connection that no longer serves requests.
    pub(super) fn of_nobody() -> Self {
        Self { watch: None, incoming: Incoming(None) }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.answered(self.incoming.has_ended());
        }
    }
}

pin_project! {
    /// The body of a response. It keeps the request's body alive, because actix closes the connection after the
    /// response if the request's body still has a reader. Otherwise, actix waits for the rest of that body without a
    /// time limit.
    pub(crate) struct Outgoing<B> {
        #[pin]
        body: B,
        answering: Answering,
    }
}

impl<B> Outgoing<B> {
    pub(super) fn new(body: B, answering: Answering) -> Self {
        Self { body, answering }
    }
}

impl<B: MessageBody> MessageBody for Outgoing<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        self.project().body.poll_next(cx)
    }
}
