//! Accepted connections: their socket options, their limits while they serve requests (`watched`), and their life after
//! they have left HTTP (`streaming`; `streams` has all of one web worker).

mod streaming;
mod streams;
mod watched;

use std::time::Duration;

use actix_web::rt::net::TcpStream;
use rustix::net::sockopt::{set_socket_send_buffer_size, set_tcp_user_timeout};

pub(crate) use streaming::{Framing, Streaming, poll_read};
pub(crate) use streams::Streams;
pub(crate) use watched::{Idle, Watch, Watched};

/// How much data the kernel may hold for a client, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketLimits {
    /// A client that accepts no bytes for this long is disconnected.
    pub send_timeout: Duration,
    /// Size of the kernel's send buffer for one client, in bytes.
    pub send_buffer_bytes: usize,
}

impl Default for SocketLimits {
    fn default() -> Self {
        Self { send_timeout: Duration::from_secs(20), send_buffer_bytes: 128 << 10 }
    }
}

/// Sets the socket options of an accepted connection. If that fails, it logs a warning.
pub fn set_limits(stream: &TcpStream, limits: SocketLimits) {
    let timeout_ms = u32::try_from(limits.send_timeout.as_millis()).unwrap_or(u32::MAX);
    let set = set_tcp_user_timeout(stream, timeout_ms)
        .and_then(|()| set_socket_send_buffer_size(stream, limits.send_buffer_bytes));
    let set = set.map_err(std::io::Error::from).and_then(|()| stream.set_nodelay(true));
    if let Err(error) = set {
        tracing::warn!(error = &error as &dyn std::error::Error, "cannot set a connection's limits");
    }
}
