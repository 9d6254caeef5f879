//! A connection that has left HTTP: it writes one stream until that ends, and is closed then.
//!
//! The library's dispatcher holds two buffers of 8 KiB and the state of requests for as long as its connection lives, and
//! copies all that goes out. A follower waits most of its life, so it keeps nothing but its socket and its stream, and
//! writes from bytes that all followers share.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody as _};
use actix_web::rt::net::TcpStream;
use bytes::{Buf as _, Bytes};
use tokio::time::timeout;

/// The client has `flush` for each so many bytes of an answer.
pub(super) const STEP_BYTES: u64 = 64 << 10;
/// Once so much waits, it is written before the stream is asked for more.
const GATHER_BYTES: usize = 64 << 10;
/// As with so many pieces. Each is a slice in one write to the socket.
const GATHER_PIECES: usize = 64;
/// How much is read at once of what nobody wants.
const DISCARD_BYTES: usize = 1 << 10;

/// How a stream stands on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// The body brings frames of its own, and reads what the client says.
    Upgraded,
    /// As chunks of HTTP/1.1.
    Chunked,
    /// Its end is that of the connection.
    UntilClose,
}

/// A connection that streams.
pub(crate) struct Streaming {
    socket: Rc<TcpStream>,
    framing: Framing,
    body: BoxBody,
    out: Out,
    /// How long the client may take for each [`STEP_BYTES`] of what is left at the end.
    flush: Duration,
    /// Bytes that a client may still send to whom nobody listens.
    unwanted_bytes: usize,
}

impl Streaming {
    /// Writes the head of an answer, and then its body. A client that sends more than so many bytes where nobody
    /// listens is cut.
    pub(crate) fn new(
        socket: Rc<TcpStream>,
        head: Bytes,
        framing: Framing,
        body: BoxBody,
        flush: Duration,
        unwanted_bytes: usize,
    ) -> Self {
        let mut out = Out::default();
        out.push(head);
        Self { socket, framing, body, out, flush, unwanted_bytes }
    }

    /// Streams until the body ends or the client goes.
    ///
    /// # Errors
    /// The client has gone, or has not taken the rest in time.
    pub(crate) async fn run(mut self: Box<Self>) -> io::Result<()> {
        while poll_fn(|cx| self.poll_gather(cx)).await? {
            self.write().await?;
        }
        let steps = u32::try_from(1 + self.out.bytes as u64 / STEP_BYTES).unwrap_or(u32::MAX);
        timeout(self.flush.saturating_mul(steps), self.write()).await??;
        // A socket that is closed with something unread throws away what its client has not read yet.
        poll_fn(|cx| Poll::Ready(_ = self.poll_discard(cx))).await;
        Ok(())
    }

    /// Waits until something is to be written; false where it is the last.
    fn poll_gather(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.out.has_room() {
            match Pin::new(&mut self.body).poll_next(cx) {
                Poll::Ready(Some(bytes)) => {
                    let bytes = bytes.map_err(|error| io::Error::other(error.to_string()))?;
                    self.say(bytes);
                }
                Poll::Ready(None) => {
                    if self.framing == Framing::Chunked {
                        self.out.push(Bytes::from_static(b"0\r\n\r\n"));
                    }
                    return Poll::Ready(Ok(false));
                }
                Poll::Pending => break,
            }
        }
        if !self.out.is_empty() {
            return Poll::Ready(Ok(true));
        }
        if self.framing != Framing::Upgraded {
            ready!(self.poll_discard(cx))?;
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Poll::Pending
    }

    fn say(&mut self, bytes: Bytes) {
        match self.framing {
            // A chunk without bytes would be the last one.
            _ if bytes.is_empty() => {}
            Framing::Chunked => {
                self.out.push(format!("{:x}\r\n", bytes.len()).into());
                self.out.push(bytes);
                self.out.push(Bytes::from_static(b"\r\n"));
            }
            Framing::Upgraded | Framing::UntilClose => self.out.push(bytes),
        }
    }

    async fn write(&mut self) -> io::Result<()> {
        while !self.out.is_empty() {
            poll_fn(|cx| self.socket.poll_write_ready(cx)).await?;
            self.out.write_to(&self.socket)?;
        }
        // What many pieces have needed is not kept while nothing happens.
        self.out = Out::default();
        Ok(())
    }

    /// Throws away what comes; ready when the client has gone, or has sent too much.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut thrown_away = [0; DISCARD_BYTES];
        while 0 < self.unwanted_bytes {
            match ready!(poll_read(&self.socket, cx, &mut thrown_away))? {
                0 => break,
                read => self.unwanted_bytes = self.unwanted_bytes.saturating_sub(read),
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Reads what has come; 0 where nothing comes any more.
pub(crate) fn poll_read(
    socket: &TcpStream,
    cx: &mut Context<'_>,
    into: &mut [u8],
) -> Poll<io::Result<usize>> {
    loop {
        ready!(socket.poll_read_ready(cx))?;
        match socket.try_read(into) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return Poll::Ready(read),
        }
    }
}

/// What waits to be written.
#[derive(Default)]
struct Out {
    pieces: VecDeque<Bytes>,
    bytes: usize,
}

impl Out {
    fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn has_room(&self) -> bool {
        self.bytes < GATHER_BYTES && self.pieces.len() < GATHER_PIECES
    }

    fn push(&mut self, piece: Bytes) {
        self.bytes += piece.len();
        self.pieces.push_back(piece);
    }

    /// Writes as much as the socket takes at once.
    fn write_to(&mut self, socket: &TcpStream) -> io::Result<()> {
        let written = match self.pieces.front() {
            // One batch for a follower that keeps up, which is the rule.
            Some(only) if self.pieces.len() == 1 => socket.try_write(only),
            _ => self.write_many_to(socket),
        };
        match written {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                self.advance(written);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn write_many_to(&self, socket: &TcpStream) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); GATHER_PIECES];
        let pieces = self.pieces.iter().zip(&mut slices);
        let count = pieces.map(|(piece, slice)| *slice = IoSlice::new(piece)).count();
        socket.try_write_vectored(&slices[..count])
    }

    fn advance(&mut self, mut written: usize) {
        self.bytes -= written;
        while let Some(first) = self.pieces.front_mut() {
            if written < first.len() {
                first.advance(written);
                return;
            }
            written -= first.len();
            self.pieces.pop_front();
        }
    }
}
