//! How requests of chats come in. They bring the whole conversation, so they may be large: so many bytes of them are
//! received at the same time, and what is large is not read where streams wait for their turn.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::error::PayloadError;
use actix_web::{FromRequest as _, HttpRequest, dev, web};
use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt as _};

use crate::api::{Api, ChatRoom};
use crate::error::{Code, Problem};
use crate::query;

/// The head of a short frame of a client.
const FRAME_HEAD_BYTES: usize = 6;

/// Reads a request over HTTP with `parse`.
pub(crate) async fn receive<T: Send + 'static>(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
    parse: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> Result<T, Problem> {
    query::json_or_text(request)?;
    let config = api.config();
    let declared = query::content_length(request);
    // Too much is refused below.
    let length = declared.unwrap_or(config.chat_bytes).min(config.chat_bytes);
    let room = if length <= config.request_bytes { None } else { Some(api.chat_room(length)?) };
    // There is as much time for each part of it as for any other body.
    let parts = declared.map_or(1, |_| length.div_ceil(config.request_bytes.max(1)).max(1));
    let time = config.body_timeout.saturating_mul(u32::try_from(parts).unwrap_or(u32::MAX));
    let body = query::read_within(request, payload, config.chat_bytes, time).await?;
    let parsed = parsed(api, body, parse).await;
    drop(room);
    parsed.ok_or_else(|| Problem::new(Code::ShuttingDown, "come again"))
}

/// What `parse` makes of a request; none where the server is being stopped. A large one would hold up the streams of
/// this thread.
pub(super) async fn parsed<T: Send + 'static>(
    api: &Api,
    bytes: Bytes,
    parse: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> Option<T> {
    if bytes.len() <= api.config().request_bytes {
        return Some(parse(&bytes));
    }
    match tokio::task::spawn_blocking(move || parse(&bytes)).await {
        Ok(parsed) => Some(parsed),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => None,
        },
    }
}

/// What has come over a WebSocket and is no message yet.
pub(super) struct Intake {
    api: Api,
    waiting: Cell<usize>,
    room: RefCell<Option<(ChatRoom, usize)>>,
    is_alive: Cell<bool>,
    is_refused: Cell<bool>,
}

impl Intake {
    /// Looks on at what comes of a WebSocket's payload.
    pub(super) async fn of(
        api: &Api,
        request: &HttpRequest,
        payload: web::Payload,
    ) -> Result<(Rc<Self>, web::Payload), Problem> {
        let intake = Rc::new(Self {
            api: api.clone(),
            waiting: Cell::new(0),
            room: RefCell::new(None),
            is_alive: Cell::new(false),
            is_refused: Cell::new(false),
        });
        let watched = Watched { payload: payload.into_inner(), intake: Rc::clone(&intake) };
        let mut payload: dev::Payload = dev::Payload::Stream { payload: Box::pin(watched) };
        let unread = |_| Problem::new(Code::BadRequest, "the body could not be read");
        let payload = web::Payload::from_request(request, &mut payload).await.map_err(unread)?;
        Ok((intake, payload))
    }

    /// A message is whole: nothing is left of what has come.
    pub(super) fn clear(&self) {
        self.waiting.set(0);
        self.room.take();
    }

    /// A frame that stands between those of a message.
    pub(super) fn pass(&self, payload: &[u8]) {
        self.waiting.set(self.waiting.get().saturating_sub(payload.len() + FRAME_HEAD_BYTES));
    }

    /// Whether anything has come since this was asked.
    pub(super) fn was_alive(&self) -> bool {
        self.is_alive.take()
    }

    /// Whether there was no room for more.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused.get()
    }

    /// Whether more has come than a message may have.
    pub(super) fn is_too_large(&self) -> bool {
        self.api.config().chat_bytes < self.waiting.get()
    }

    fn take(&self, bytes: usize) -> Result<(), PayloadError> {
        self.is_alive.set(true);
        let waiting = self.waiting.get() + bytes;
        self.waiting.set(waiting);
        let step = self.api.config().request_bytes;
        let mut room = self.room.borrow_mut();
        let held = room.as_ref().map_or(0, |(_, held)| *held);
        // So much is there for every connection.
        let missing = waiting.saturating_sub(step + held);
        if missing == 0 {
            return Ok(());
        }
        let more = missing.max(step);
        let Ok(new) = self.api.chat_room(more) else {
            self.is_refused.set(true);
            return Err(PayloadError::Overflow);
        };
        match &mut *room {
            Some((room, held)) => {
                room.grow(new);
                *held += more;
            }
            None => *room = Some((new, more)),
        }
        Ok(())
    }
}

/// A payload whose bytes are counted.
struct Watched {
    payload: dev::Payload,
    intake: Rc<Intake>,
}

impl Stream for Watched {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.payload.poll_next_unpin(cx).map(|next| {
            let bytes = next?;
            Some(bytes.and_then(|bytes| self.intake.take(bytes.len()).map(|()| bytes)))
        })
    }
}
