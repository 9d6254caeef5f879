//! Where the packets of a client come from.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::engine::{PONG, is_binary, is_goodbye, take_packet};
use crate::polled_sessions::{PolledFault, PolledSession};
use crate::websocket::{Broken, Message, Messages};

/// Where the packets of a client come from.
pub(super) enum Incoming {
    /// From its WebSocket.
    Socket(Box<Messages>),
    /// From its requests: whole bodies, of which the first one may be partly read.
    Bodies { rest: Bytes, bodies: mpsc::Receiver<Bytes> },
}

/// Passes a body to a session that has a task of its own. A session reads its bodies only when it can give more. The
/// answers to pings and the client's goodbye must not wait for that.
pub(super) async fn pass_on(polled: &PolledSession, body: Bytes, limit: Duration) -> Result<(), PolledFault> {
    if body == PONG {
        polled.pong().await
    } else if is_goodbye(&body) {
        polled.leave().await
    } else {
        polled.post(body, limit).await
    }
}

impl Incoming {
    pub(super) fn bodies(bodies: mpsc::Receiver<Bytes>) -> Self {
        Self::Bodies { rest: Bytes::new(), bodies }
    }

    /// The next packet, or control frame. May be dropped at any await.
    pub(super) async fn next(&mut self) -> Result<Message, Broken> {
        match self {
            Self::Socket(messages) => messages.next().await,
            Self::Bodies { rest, bodies } => loop {
                if let Some(packet) = take_packet(rest) {
                    let is_binary = is_binary(&packet);
                    return Ok(if is_binary { Message::Binary(packet) } else { Message::Text(packet) });
                }
                *rest = bodies.recv().await.ok_or(Broken::Gone)?;
            },
        }
    }

    /// The previous packet was handled.
    pub(super) fn clear(&mut self) {
        if let Self::Socket(messages) = self {
            messages.clear();
        }
    }

    pub(super) fn is_socket(&self) -> bool {
        matches!(self, Self::Socket(_))
    }
}
