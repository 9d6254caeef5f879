//! Sends back what comes, by the same reading, frames and close codes as `/ws`: for tests of conformance, which need
//! somebody who answers. It is there only where [`PresentationConfig::test_routes`] says so.
//!
//! [`PresentationConfig::test_routes`]: crate::PresentationConfig::test_routes

use actix_web::body::{BodyStream, BoxBody, MessageBody};
use actix_web::{HttpRequest, HttpResponse, web};
use actix_ws::{AggregatedMessage, AggregatedMessageStream};
use bytes::Bytes;
use futures_util::stream;
use tokio_util::sync::CancellationToken;

use crate::api::{Api, StreamPlace};
use crate::error::Problem;
use crate::frames;
use crate::ws::close::{self, close_code};
use crate::ws::{Handshake, handshake, whole};

/// The largest message of the conformance cases, in bytes. `/ws` itself may be told to take less.
const MESSAGE_BYTES: usize = 64 << 10;

struct Echo {
    messages: AggregatedMessageStream,
    closing: CancellationToken,
    closed: bool,
    _place: StreamPlace,
    /// As that of a connection: when it is dropped, the stream of messages ends.
    _handshake: BoxBody,
}

pub(crate) async fn open(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let Handshake { response, messages, place } = handshake(&api, &request, payload)?;
    let messages = whole(messages, api.config().ws_message_bytes.max(MESSAGE_BYTES));
    let closing = api.service().closing();
    Ok(response.map_body(|_, body| {
        let echo = Echo { messages, closing, closed: false, _place: place, _handshake: body };
        let frames = stream::unfold(Box::new(echo), |mut echo| async move {
            let bytes = echo.next().await?;
            Some((Ok::<_, actix_web::Error>(bytes), echo))
        });
        BodyStream::new(Box::pin(frames)).boxed()
    }))
}

impl Echo {
    /// The next frame for the client; none when the connection is to be closed.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.closed {
            let message = tokio::select! {
                biased;
                () = self.closing.cancelled() => {
                    return Some(self.close(frames::close(close_code::SHUTTING_DOWN, "shutting down")));
                }
                message = self.messages.recv() => message?,
            };
            match message {
                Ok(AggregatedMessage::Text(text)) => return Some(frames::text(text.as_bytes())),
                Ok(AggregatedMessage::Binary(bytes)) => return Some(frames::binary(&bytes)),
                Ok(AggregatedMessage::Ping(payload)) => return Some(frames::pong(&payload)),
                Ok(AggregatedMessage::Pong(_)) => {}
                Ok(AggregatedMessage::Close(reason)) => return Some(self.close(close::answer(reason))),
                Err(error) => {
                    let (code, reason) = close::because_of(&error)?;
                    return Some(self.close(frames::close(code, reason)));
                }
            }
        }
        None
    }

    /// The last frame.
    fn close(&mut self, frame: Bytes) -> Bytes {
        self.closed = true;
        frame
    }
}
