//! What becomes of a body that is not read to its end: nobody may keep a connection by it.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::HttpMessage as _;
use actix_web::body::{BodySize, MessageBody};
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use bytes::Bytes;
use futures_util::stream::Stream;
use futures_util::{FutureExt as _, StreamExt as _};
use pin_project_lite::pin_project;

use crate::socket::Watch;

/// The body of a request, as far as it has come: its handler reads it, and the guard sees whether it has ended.
pub(super) struct Incoming(Option<Rc<Shared>>);

struct Shared {
    payload: RefCell<Payload>,
    ended: Cell<bool>,
}

impl Incoming {
    /// Looks on at the body of a request, if it has one.
    pub(super) fn of(request: &mut ServiceRequest) -> Self {
        let payload = match request.take_payload() {
            Payload::None => return Self(None),
            payload => payload,
        };
        let shared = Rc::new(Shared { payload: RefCell::new(payload), ended: Cell::new(false) });
        request.set_payload(Payload::Stream { payload: Box::pin(Reader(Rc::clone(&shared))) });
        Self(Some(shared))
    }

    /// Throws away what has come already: a small body that nobody wanted does not cost the connection.
    pub(super) async fn skip(&self) {
        let Some(shared) = &self.0 else { return };
        if shared.ended.get() {
            return;
        }
        // What came together with the head is handed over only when this waits.
        tokio::task::yield_now().await;
        let mut reader = Reader(Rc::clone(shared));
        while let Some(Some(Ok(_))) = reader.next().now_or_never() {}
    }

    fn has_ended(&self) -> bool {
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

/// The connection of a request that is being answered; none where nobody watches it.
pub(super) struct Answering {
    watch: Option<Rc<Watch>>,
    incoming: Incoming,
}

impl Answering {
    pub(super) fn new(watch: Option<Rc<Watch>>, incoming: Incoming) -> Self {
        Self { watch, incoming }
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
    /// The body of an answer. It holds on to the request's body: the library closes the connection behind an answer
    /// whose request somebody still reads, and otherwise waits for the rest of it as long as it takes.
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
