//! WebSocket frames that the server sends: unfragmented and unmasked. Their bytes are the same for every client, so a
//! frame is written once and shared.

use bytes::Bytes;
use serde::Serialize;

/// Maximum number of bytes that a connection produces at once. Most of them are shared with other connections, so a
/// client that does not read costs less memory than this.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;

/// The final frame of a text message (RFC 6455, section 5.2).
const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
const CLOSE: u8 = 0x88;
/// The header's length in a frame of 126 to 65535 bytes, as most frames are.
const HEADER: usize = 4;
/// The maximum payload of a control frame, in bytes.
const CONTROL_MAX: usize = 125;

/// Writes frames one after the other.
#[derive(Default)]
pub(crate) struct FrameWriter(Vec<u8>);

impl FrameWriter {
    /// Appends a value as a text frame.
    pub(crate) fn json<T: Serialize>(&mut self, value: &T) {
        self.tagged(b"", value);
    }

    /// Appends a value as a text frame, with text before its JSON.
    pub(crate) fn tagged<T: Serialize>(&mut self, tag: &[u8], value: &T) {
        let begin = self.0.len();
        self.0.extend_from_slice(&[TEXT, 0, 0, 0]);
        self.0.extend_from_slice(tag);
        if let Err(error) = serde_json::to_writer(&mut self.0, value) {
            // Not expected: all types that are written here can be serialized. Clients would see a gap.
            tracing::error!(error = &error as &dyn std::error::Error, "cannot serialize a frame");
            self.0.truncate(begin);
            return;
        }
        self.finish(begin);
    }

    /// Appends the frame `{"type":"batch","messages":[…]}`.
    pub(crate) fn batch(&mut self, frames: &[Bytes]) {
        let begin = self.0.len();
        self.0.extend_from_slice(&[TEXT, 0, 0, 0]);
        self.0.extend_from_slice(br#"{"type":"batch","messages":["#);
        let messages = self.0.len();
        for json in frames.iter().flat_map(|frames| payloads(frames)) {
            if messages < self.0.len() {
                self.0.push(b',');
            }
            self.0.extend_from_slice(json);
        }
        self.0.extend_from_slice(b"]}");
        self.finish(begin);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.0.into()
    }

    /// Writes the length of the frame that begins at `begin` into its header.
    fn finish(&mut self, begin: usize) {
        let payload = begin + HEADER;
        let length = self.0.len() - payload;
        if let Ok(short) = u8::try_from(length)
            && length <= CONTROL_MAX
        {
            self.0.drain(begin + 2..payload);
            self.0[begin + 1] = short;
        } else if let Ok(medium) = u16::try_from(length) {
            self.0[begin + 1] = 126;
            self.0[begin + 2..payload].copy_from_slice(&medium.to_be_bytes());
        } else {
            let header = (length as u64).to_be_bytes();
            self.0[begin + 1] = 127;
            self.0.splice(begin + 2..payload, header);
        }
    }
}

/// One value as a frame.
pub(crate) fn json<T: Serialize>(value: &T) -> Bytes {
    let mut out = FrameWriter::default();
    out.json(value);
    out.into_bytes()
}

/// A text as a frame.
pub(crate) fn text(payload: &[u8]) -> Bytes {
    message(TEXT, payload)
}

/// Bytes as a frame.
pub(crate) fn binary(payload: &[u8]) -> Bytes {
    message(BINARY, payload)
}

fn message(kind: u8, payload: &[u8]) -> Bytes {
    let mut out = FrameWriter([&[kind, 0, 0, 0], payload].concat());
    out.finish(0);
    out.into_bytes()
}

/// The payloads of frames that a [`FrameWriter`] has written.
pub(crate) fn payloads(mut frames: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (header, length) = lengths(frames)?;
        let payload = frames.get(header..header + length)?;
        frames = &frames[header + length..];
        Some(payload)
    })
}

/// The lengths of the first frame's header and payload. `None` if there is no frame.
fn lengths(frames: &[u8]) -> Option<(usize, usize)> {
    Some(match *frames.get(1)? {
        126 => (4, usize::from(u16::from_be_bytes(frames.get(2..4)?.try_into().ok()?))),
        127 => (10, u64::from_be_bytes(frames.get(2..10)?.try_into().ok()?) as usize),
        short => (2, usize::from(short)),
    })
}

/// How many bytes the first `count` frames have, or all of them if there are fewer.
pub(crate) fn length_of(frames: &[u8], count: usize) -> usize {
    let mut length = 0;
    for _ in 0..count {
        let Some((header, payload)) = lengths(&frames[length..]) else { break };
        length += header + payload;
    }
    length
}

/// How many bytes the first frames have that have at most `bytes` together. The first frame counts even if it has more.
pub(crate) fn length_within(frames: &[u8], bytes: usize) -> usize {
    let mut length = 0;
    while let Some((header, payload)) = lengths(&frames[length..]) {
        let longer = length + header + payload;
        if 0 < length && bytes < longer {
            break;
        }
        length = longer;
    }
    length
}

pub(crate) fn ping() -> Bytes {
    control(PING, b"")
}

pub(crate) fn pong(payload: &[u8]) -> Bytes {
    control(PONG, payload)
}

pub(crate) fn close(code: u16, reason: &str) -> Bytes {
    control(CLOSE, &[&code.to_be_bytes(), reason.as_bytes()].concat())
}

fn control(kind: u8, payload: &[u8]) -> Bytes {
    message(kind, &payload[..payload.len().min(CONTROL_MAX)])
}

#[cfg(test)]
mod tests {
    use actix_http::ws::{OpCode, Parser};
    use bytes::BytesMut;

    use super::*;

    #[test]
    fn frames_of_every_length_are_read_by_the_servers_own_parser() {
        let texts: Vec<String> =
            [0, 1, 123, 124, 125, 65_532, 65_533, 65_534, 200_000].map(|n| "x".repeat(n)).into();
        let mut out = FrameWriter::default();
        for text in &texts {
            out.json(text);
        }
        let frames = out.into_bytes();
        let seen: Vec<String> = payloads(&frames).map(|json| serde_json::from_slice(json).unwrap()).collect();
        assert_eq!(seen, texts);
        for count in 0..=texts.len() + 1 {
            let first = &frames[..length_of(&frames, count)];
            assert_eq!(payloads(first).count(), count.min(texts.len()), "{count}");
            assert_eq!(length_within(&frames, first.len()), first.len().max(4), "{count}");
            assert_eq!(length_within(&frames, first.len() + 1), first.len().max(4), "{count}");
        }

        let mut wire = BytesMut::from(&frames[..]);
        for text in &texts {
            let (fin, code, payload) = Parser::parse(&mut wire, false, usize::MAX).unwrap().unwrap();
            assert_eq!((fin, code), (true, OpCode::Text));
            let payload = payload.map_or_else(Vec::new, |payload| payload.to_vec());
            assert_eq!(serde_json::from_slice::<String>(&payload).unwrap(), *text);
        }
        assert!(wire.is_empty());
    }

    #[test]
    fn a_batch_holds_the_same_messages() {
        let mut batch = FrameWriter::default();
        batch.batch(&[json(&"a"), json(&[1, 2]), Bytes::new()]);
        let batch = batch.into_bytes();
        let seen: Vec<_> = payloads(&batch).collect();
        assert_eq!(seen, [br#"{"type":"batch","messages":["a",[1,2]]}"#]);
    }

    #[test]
    fn a_close_frame_has_its_code_first() {
        assert_eq!(&close(4401, "bye")[..], b"\x88\x05\x11\x31bye");
        assert_eq!(pong(&[7; 200]).len(), 127, "a control frame is short");
    }
}
