//! Echoes every message, with the same reader, frames and close codes as `/ws`, for WebSocket conformance tests. The
//! route exists only if [`PresentationConfig::test_routes`] is set.
//!
//! [`PresentationConfig::test_routes`]: crate::PresentationConfig::test_routes

use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures_util::stream;
use tokio_util::sync::CancellationToken;

use crate::api::{Api, StreamPlace};
use crate::error::Problem;
use crate::frames;
use crate::websocket::{Handshake, Message, Messages, handshake, with_frames};
use crate::websocket::{because_of, close_code, close_reply};

/// The largest message of the conformance tests, in bytes. `/ws` itself may have a lower limit.
const MESSAGE_BYTES: usize = 64 << 10;

struct Echo {
    messages: Messages,
    closing: CancellationToken,
    closed: bool,
    _place: StreamPlace,
}

pub(crate) async fn open(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let bytes_max = api.config().ws_message_bytes.max(MESSAGE_BYTES);
    let Handshake { response, messages, place } = handshake(&api, &request, payload, bytes_max)?;
    let echo = Echo { messages, closing: api.service().closing(), closed: false, _place: place };
    let frames = stream::unfold(Box::new(echo), |mut echo| async move {
        let bytes = echo.next().await?;
        Some((bytes, echo))
    });
    Ok(with_frames(&api, response, frames))
}

impl Echo {
    /// The next frame for the client. `None` if the connection must be closed.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.closed {
            let message = tokio::select! {
                biased;
                () = self.closing.cancelled() => {
                    return Some(self.close(frames::close(close_code::SHUTTING_DOWN, "shutting down")));
                }
                message = self.messages.next() => message,
            };
            match message {
                Ok(Message::Text(text)) => return Some(frames::text(&text)),
                Ok(Message::Binary(bytes)) => return Some(frames::binary(&bytes)),
                Ok(Message::Ping(payload)) => return Some(frames::pong(&payload)),
                Ok(Message::Pong) => {}
                Ok(Message::Close(reason)) => return Some(self.close(close_reply(reason))),
                Err(broken) => {
                    let (code, reason) = because_of(broken)?;
                    return Some(self.close(frames::close(code, reason)));
                }
            }
        }
        None
    }

    /// Makes this frame the last one.
    fn close(&mut self, frame: Bytes) -> Bytes {
        self.closed = true;
        frame
    }
}
