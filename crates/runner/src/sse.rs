//! Server-sent events: bytes in, events out.

use bytes::{Buf, BytesMut};

/// Decodes a stream of server-sent events as the HTML standard defines it: lines end with LF, CR LF or CR, a byte
/// order mark at the beginning is skipped, comments and unknown fields are ignored, and an incomplete event at the end
/// of the stream is dropped.
///
/// Does no I/O. The events do not depend on how the stream is cut into chunks. Data are bytes: the caller checks
/// whether they are UTF-8.
#[derive(Debug)]
pub struct SseDecoder {
    /// The maximum length of an event's data and the current line together.
    event_bytes: usize,
    line: BytesMut,
    /// The previous line ended with a CR. An LF right after it belongs to it.
    after_cr: bool,
    /// The first line has not ended yet. It may begin with a byte order mark.
    at_start: bool,
    /// The name and the data of the current event. The data is `None` until a data field comes, even an empty one.
    name: String,
    data: Option<Vec<u8>>,
    /// The last id in the stream, and the last id of an event that is complete. After a break, the server must send an
    /// incomplete event again.
    id: Option<String>,
    last_id: Option<String>,
    retry_ms: Option<u64>,
    /// Set if the current event is longer than `event_bytes`.
    overflow: bool,
}

/// The error text for a response that is not a stream of events.
pub(crate) fn no_stream(media_type: Option<&str>) -> String {
    match media_type {
        Some(media_type) => format!("the response has the content type {media_type}, not text/event-stream"),
        None => "the response has no content type; text/event-stream is required".to_owned(),
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// The event's name. Empty if the stream contains none, which means `message`.
    pub name: String,
    /// The data lines, joined by `\n`.
    pub data: Vec<u8>,
    /// The last id in the stream, from this event or an earlier one.
    pub id: Option<String>,
}

/// The stream cannot be decoded any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than {event_bytes} bytes")]
pub struct SseOverflow {
    pub event_bytes: usize,
}

const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

impl SseDecoder {
    /// A decoder that rejects an event if its data and the current line together have more than `event_bytes` bytes.
    pub fn new(event_bytes: usize) -> Self {
        Self {
            event_bytes,
            line: BytesMut::new(),
            after_cr: false,
            at_start: true,
            name: String::new(),
            data: None,
            id: None,
            last_id: None,
            retry_ms: None,
            overflow: false,
        }
    }

    /// Reads the next bytes of the stream and appends the events that they complete to `events`.
    ///
    /// # Errors
    /// [`SseOverflow`] if an event is too long. Every later call fails the same way.
    pub fn feed(&mut self, mut chunk: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseOverflow> {
        while !chunk.is_empty() && !self.overflow {
            if std::mem::take(&mut self.after_cr) && chunk[0] == b'\n' {
                chunk.advance(1);
                continue;
            }
            let Some(length) = memchr::memchr2(b'\n', b'\r', chunk) else {
                self.extend_line(chunk);
                break;
            };
            self.after_cr = chunk[length] == b'\r';
            self.extend_line(&chunk[..length]);
            chunk.advance(length + 1);
            self.end_line(events);
        }
        if self.overflow { Err(SseOverflow { event_bytes: self.event_bytes }) } else { Ok(()) }
    }

    /// The last id of an event that is complete: where to continue after a break.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long the stream asks to wait before connecting again, in milliseconds.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    fn extend_line(&mut self, piece: &[u8]) {
        let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if self.event_bytes < held + piece.len() {
            self.overflow = true;
            return;
        }
        self.line.extend_from_slice(piece);
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) {
        if self.overflow {
            return;
        }
        let line = self.line.split();
        let mut line = &line[..];
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.end_event(events);
            return;
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        self.field(field, value.strip_prefix(b" ").unwrap_or(value));
    }

    fn field(&mut self, field: &[u8], value: &[u8]) {
        let text = || String::from_utf8_lossy(value).into_owned();
        match field {
            b"event" => self.name = text(),
            b"data" => {
                if let Some(data) = &mut self.data {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                } else {
                    self.data = Some(value.to_vec());
                }
            }
            b"id" if !value.contains(&0) => self.id = Some(text()),
            // Digits only: the standard allows no sign.
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                self.retry_ms = text().parse().ok().or(self.retry_ms);
            }
            _ => {}
        }
    }

    fn end_event(&mut self, events: &mut Vec<SseEvent>) {
        let name = std::mem::take(&mut self.name);
        self.last_id.clone_from(&self.id);
        if let Some(data) = self.data.take() {
            events.push(SseEvent { name, data, id: self.last_id.clone() });
        }
    }
}

#[cfg(test)]
mod tests;
