//! Whatever comes over a WebSocket, the server answers with valid frames and a documented close code.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;

use super::source::Source;
use super::unix_server::server;
use super::world::HOST;

pub(crate) const WORDS: &[&str] = &[
    "{\"type\":\"ping\"}",
    "{\"type\":\"subscribe\",\"payload\":{\"agentId\":\"",
    "\",\"since\":0}}",
    "\"since\":",
    "\"raw\":true",
    "\"dialect\":\"agent\"",
    "{\"type\":\"unsubscribe\",\"payload\":{\"agentId\":\"",
    "019ab0f5-0000-7000-8000-000000000000",
    "\n",
    "\\ud800",
    "18446744073709551615",
    "\"type\":",
    "\"payload\":{}",
];

/// The codes in the table of `docs/reference/protocol/websocket.md`.
pub(super) const CLOSE_CODES: [u16; 8] = [1000, 1002, 1003, 1007, 4401, 4408, 4410, 4509];

/// The limit of a message, `PresentationConfig::ws_message_bytes`.
const MESSAGE_BYTES: u64 = 64 << 10;

const PATIENCE: Duration = Duration::from_secs(20);

/// If the first byte is even: each further line is a text message. If it is odd: frames as the bytes say, frames that
/// announce more than they contain, or raw bytes.
pub(crate) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let kind = source.byte();
    let mut sent = Vec::new();
    if kind.is_multiple_of(2) {
        source.rest().split(|byte| *byte == b'\n').for_each(|line| frame(&mut sent, 0x81, line));
        frame(&mut sent, 0x88, &1000_u16.to_be_bytes());
    } else if kind % 4 == 1 {
        while !source.is_empty() {
            let (first, length) = (source.byte(), usize::from(source.byte()));
            frame(&mut sent, first, source.take(length));
        }
    } else if kind % 8 == 7 {
        while !source.is_empty() {
            announcing(&mut sent, &mut source);
        }
    } else {
        sent.extend_from_slice(source.rest());
    }
    let refused = is_refused(&sent);
    let said = talk(&sent, refused);
    let asked = close_of(&sent);
    let code = check(&said, asked);
    // With 4408, the server has buffered what it should have refused, until nothing more came. But a client may close
    // with that code first, and the server then answers with it.
    let gave_up = code == Some(4408) && asked != code;
    assert!(!refused || code.is_some() && !gave_up, "{code:?} for {sent:x?}");
}

/// Appends a frame as clients send it, masked.
pub(super) fn frame(out: &mut Vec<u8>, first: u8, payload: &[u8]) {
    let mask = [0x17, 0x2a, 0x00, 0xff];
    out.push(first);
    match payload.len() {
        short @ 0..126 => out.push(0x80 | short as u8),
        long => {
            out.push(0x80 | 0x7e);
            out.extend_from_slice(&(long.min(0xffff) as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    out.extend(payload.iter().take(0xffff).zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
}

/// Appends a frame that announces any length, and contains only a few bytes of it.
fn announcing(out: &mut Vec<u8>, source: &mut Source<'_>) {
    let (first, power, brought) = (source.byte(), source.byte() % 64, usize::from(source.byte()));
    let length = (1_u64 << power) - u64::from(power % 2);
    match length {
        short @ 0..126 => out.push(0x80 | short as u8),
        _ => out.push(0xff),
    }
    let at = out.len() - 1;
    out.insert(at, first);
    if 126 <= length {
        out.extend_from_slice(&length.to_be_bytes());
    }
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(source.take(brought.min(usize::try_from(length).unwrap_or(usize::MAX))));
}

/// Whether the server must close because of these frames, even if nothing more comes.
fn is_refused(mut frames: &[u8]) -> bool {
    // The length so far of a fragmented message.
    let mut open: Option<u64> = None;
    while let [first, second, rest @ ..] = frames {
        let (is_last, kind) = (first & 0x80 != 0, first & 0x0f);
        if first & 0x70 != 0 || second & 0x80 == 0 || !matches!(kind, 0..=2 | 8..=10) {
            return true;
        }
        let (length, rest) = match (second & 0x7f, rest) {
            (126, [one, two, rest @ ..]) => (u64::from(u16::from_be_bytes([*one, *two])), rest),
            (127, rest) => match rest.split_first_chunk() {
                Some((length, rest)) => (u64::from_be_bytes(*length), rest),
                None => return false,
            },
            (126, _) => return false,
            (short, rest) => (u64::from(short), rest),
        };
        let Some((_, rest)) = rest.split_at_checked(4) else { return false };
        let is_control = 8 <= kind;
        let most = if is_control { 125 } else { MESSAGE_BYTES - open.unwrap_or(0) };
        if most < length {
            return true;
        }
        let Some((_, rest)) = rest.split_at_checked(usize::try_from(length).unwrap_or(usize::MAX)) else {
            return false;
        };
        match (is_control, is_last) {
            (true, last) if !last || kind == 8 => return true,
            (true, _) => {}
            (false, _) if (kind == 0) != open.is_some() => return true,
            (false, false) => open = Some(open.unwrap_or(0) + length),
            (false, true) => open = None,
        }
        frames = rest;
    }
    false
}

/// Sends the bytes on a new connection, ends its own side unless it is `to_stay`, and returns what the server sends
/// until it closes.
fn talk(said: &[u8], to_stay: bool) -> Vec<u8> {
    let mut socket = UnixStream::connect(server()).expect("the server listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let hello = format!(
        "GET /ws HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    socket.write_all(hello.as_bytes()).expect("it takes the handshake");
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    while !answer.windows(4).any(|four| four == b"\r\n\r\n") {
        let length = socket.read(&mut chunk).expect("it answers");
        assert!(0 < length, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&chunk[..length]);
    }
    // The server may have closed before it has read everything.
    let _ = socket
        .write_all(said)
        .and_then(|()| if to_stay { Ok(()) } else { socket.shutdown(std::net::Shutdown::Write) });
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("it was there") + 4;
    let rest = loop {
        if to_stay && has_closed(&answer[head..]) {
            // Otherwise the server waits a while for the client to close.
            let _ = socket.shutdown(std::net::Shutdown::Write);
        }
        match socket.read(&mut chunk) {
            Ok(0) => break Ok(()),
            Ok(length) => answer.extend_from_slice(&chunk[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    assert!(rest.is_ok(), "the server closes: {rest:?}");
    assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
    answer.split_off(head)
}

/// Whether a server's frames contain a close.
fn has_closed(mut frames: &[u8]) -> bool {
    while let [first, second, rest @ ..] = frames {
        if *first == 0x88 {
            return true;
        }
        let (length, rest) = match (*second, rest) {
            (126, [one, two, rest @ ..]) => (usize::from(u16::from_be_bytes([*one, *two])), rest),
            (short, rest) => (usize::from(short), rest),
        };
        frames = rest.get(length..).unwrap_or_default();
    }
    false
}

/// The code of the first close among a client's frames. The server answers with the same code.
fn close_of(mut frames: &[u8]) -> Option<u16> {
    while let [first, second, rest @ ..] = frames {
        let (length, rest) = match second & 0x7f {
            126 => (usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])), &rest[2..]),
            127 => return None,
            short => (usize::from(short), rest),
        };
        let (mask, rest) = rest.split_at_checked(4)?;
        let (payload, after) = rest.split_at_checked(length)?;
        if first & 0x0f == 8 {
            return Some(u16::from_be_bytes([payload.first()? ^ mask[0], payload.get(1)? ^ mask[1]]));
        }
        frames = after;
    }
    None
}

/// Checks a server's frames: complete, not masked, text or control, nothing after the close. Returns the close code.
fn check(mut frames: &[u8], asked: Option<u16>) -> Option<u16> {
    let mut closed = None;
    while let [first, second, rest @ ..] = frames {
        assert!(closed.is_none(), "nothing comes after the close");
        let (length, rest) = match *second {
            126 => (usize::from(u16::from_be_bytes([rest[0], rest[1]])), &rest[2..]),
            short => (usize::from(short), rest),
        };
        let (payload, after) = rest.split_at(length);
        match first {
            0x81 => {
                let message: Value = serde_json::from_slice(payload).expect("a text is JSON");
                assert!(message["type"].is_string() && message["payload"].is_object(), "{message}");
            }
            0x88 => {
                let code = u16::from_be_bytes([payload[0], payload[1]]);
                assert!(CLOSE_CODES.contains(&code) || asked == Some(code), "{code}");
                assert!(std::str::from_utf8(&payload[2..]).is_ok());
                closed = Some(code);
            }
            0x89 | 0x8a => assert!(length < 126),
            other => panic!("a frame begins with {other:#x}"),
        }
        frames = after;
    }
    assert!(frames.is_empty(), "half a frame: {frames:?}");
    closed
}
