//! Where the packets of a client come from.

use bytes::Bytes;
use tokio::sync::mpsc;

use super::engine::{is_binary, take_packet};
use crate::websocket::{Broken, Message, Messages};

/// Where the packets of a client come from.
pub(super) enum Incoming {
    /// From its WebSocket.
    Socket(Box<Messages>),
    /// From its requests: whole bodies, of which the first one may be partly read.
    Bodies { rest: Bytes, bodies: mpsc::Receiver<Bytes> },
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
