//! A connection that has left HTTP: it writes one stream (a WebSocket or an event stream) until the stream ends, and is
//! then closed.
//!
//! actix's dispatcher keeps two buffers of 8 KiB and the state of requests for the life of its connection, and copies
//! all output. A follower waits most of the time, so it keeps only its socket and its stream, and writes from bytes
//! that all followers share.

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

/// The client has the flush timeout for each of these steps of a response, in bytes.
pub(super) const STEP_BYTES: u64 = 64 << 10;
/// When this many bytes wait, they are written before the stream is polled for more.
const GATHER_BYTES: usize = 256 << 10;
/// The same limit as a number of pieces. Each piece is a slice in one write to the socket.
const GATHER_PIECES: usize = 64;
/// How many bytes of unwanted input are read at once.
const DISCARD_BYTES: usize = 1 << 10;

/// How a stream is framed on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// The body contains WebSocket frames, and its owner reads the client's messages.
    Upgraded,
    /// Chunks of HTTP/1.1.
    Chunked,
    /// The end of the connection ends the stream.
    UntilClose,
}

/// What a stream has taken from its body.
enum Gathered {
    /// As much as is written at once. The body may have more.
    Full,
    /// All that the body has now.
    ForNow,
    /// All that it will ever have.
    Last,
}

/// A connection that streams.
pub(crate) struct Streaming {
    socket: Rc<TcpStream>,
    framing: Framing,
    body: BoxBody,
    out: Out,
    /// How long the client may take for each [`STEP_BYTES`] that are unsent when the body ends.
    flush: Duration,
    /// How many more bytes the client may send that are read only to discard them.
    unwanted_bytes: usize,
}

impl Streaming {
    /// Writes `head`, and then `body`. If nothing reads the client's bytes, a client that sends more than
    /// `unwanted_bytes` is disconnected.
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

    /// Streams until the body ends or the client disconnects.
    ///
    /// # Errors
    /// The body failed, or the client has disconnected or has not received the rest in time.
    pub(crate) async fn run(mut self: Box<Self>) -> io::Result<()> {
        // The head and the beginning of the body go out together. An `EventSource` that is cut off between them would
        // not know where to resume.
        let begun = poll_fn(|cx| Poll::Ready(self.gather(cx))).await?;
        if !matches!(begun, Gathered::Last) {
            poll_fn(|cx| self.poll_stream(cx)).await?;
        }
        let steps = u32::try_from(1 + self.out.bytes as u64 / STEP_BYTES).unwrap_or(u32::MAX);
        timeout(self.flush.saturating_mul(steps), poll_fn(|cx| self.poll_write(cx))).await??;
        // Closing a socket with unread input discards what the client has not read yet. So discard the input first.
        poll_fn(|cx| Poll::Ready(_ = self.poll_discard(cx))).await;
        Ok(())
    }

    /// Streams until the body has ended. Some of its bytes may be unsent then.
    fn poll_stream(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_write(cx))?;
            match self.gather(cx)? {
                Gathered::Full => {}
                Gathered::Last => return Poll::Ready(Ok(())),
                Gathered::ForNow => {
                    ready!(self.poll_write(cx))?;
                    // The body wakes this task when it has more, so it need not be polled again after the write.
                    if self.framing == Framing::Upgraded {
                        return Poll::Pending;
                    }
                    ready!(self.poll_discard(cx))?;
                    return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
                }
            }
        }
    }

    /// Takes from the body what it has. The body of a native WebSocket is made in `vocabularies/native/ws.rs`.
    fn gather(&mut self, cx: &mut Context<'_>) -> io::Result<Gathered> {
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
                    return Ok(Gathered::Last);
                }
                Poll::Pending => return Ok(Gathered::ForNow),
            }
        }
        Ok(Gathered::Full)
    }

    fn say(&mut self, bytes: Bytes) {
        match self.framing {
            // An empty chunk would end the body.
            _ if bytes.is_empty() => {}
            Framing::Chunked => {
                self.out.push(format!("{:x}\r\n", bytes.len()).into());
                self.out.push(bytes);
                self.out.push(Bytes::from_static(b"\r\n"));
            }
            Framing::Upgraded | Framing::UntilClose => self.out.push(bytes),
        }
    }

    /// Writes everything that was gathered. Ready when it is written.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            ready!(self.socket.poll_write_ready(cx))?;
            self.out.write_to(&self.socket)?;
        }
        // Free the memory of many pieces while the connection is idle.
        self.out = Out::default();
        Poll::Ready(Ok(()))
    }

    /// Discards input. Ready when the client has disconnected or has sent too much.
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

/// Reads available input. Returns 0 at its end.
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

/// Bytes that wait to be written.
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

    /// Writes as much as the socket accepts at once.
    fn write_to(&mut self, socket: &TcpStream) -> io::Result<()> {
        let written = match self.pieces.front() {
            // The usual case: one batch, for a follower that keeps up.
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
