//! Engine.IO, protocol 4: the packets inside a body or a WebSocket message, and the errors of a request.

use actix_web::HttpResponse;
use bytes::Bytes;

use crate::error::Problem;
use crate::vocabularies::native::dto::socket_io::EngineProblem;

/// Separates the packets of a body.
const SEPARATOR: u8 = 0x1e;

/// Maximum number of packets in a response to a poll. Some clients refuse more.
pub(super) const PACKETS_MAX: usize = 16;

/// Packets without data.
pub(super) const CLOSE: &[u8] = b"1";
/// The client leaves Socket.IO's default namespace, the only one that is served.
const DISCONNECT: &[u8] = b"41";
pub(super) const PING: &[u8] = b"2";
pub(super) const PONG: &[u8] = b"3";
pub(super) const NOOP: &[u8] = b"6";
/// The answer to the probe of a WebSocket that wants to take over.
pub(super) const PROBED: &[u8] = b"3probe";

/// The type of a handshake, in front of its JSON.
pub(super) const OPEN: &[u8] = b"0";

/// A packet from a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packet<'a> {
    Close,
    /// A WebSocket asks whether it works.
    Probe,
    Pong,
    /// A Socket.IO packet.
    Message(&'a str),
    Upgrade,
    Noop,
}

/// A packet that no client may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoPacket;

impl<'a> Packet<'a> {
    pub(super) fn read(text: &'a [u8]) -> Result<Self, NoPacket> {
        let text = std::str::from_utf8(text).map_err(|_| NoPacket)?;
        match text.split_at_checked(1).ok_or(NoPacket)? {
            ("1", "") => Ok(Self::Close),
            ("2", "probe") => Ok(Self::Probe),
            ("3", _) => Ok(Self::Pong),
            ("4", message) => Ok(Self::Message(message)),
            ("5", "") => Ok(Self::Upgrade),
            ("6", "") => Ok(Self::Noop),
            _ => Err(NoPacket),
        }
    }
}

/// Whether a packet of a body is binary: Base64 after the letter `b`.
pub(super) fn is_binary(packet: &[u8]) -> bool {
    packet.first() == Some(&b'b')
}

/// Whether a body consists of packets.
pub(super) fn is_body(body: &[u8]) -> bool {
    body.split(|byte| *byte == SEPARATOR).all(|packet| is_binary(packet) || Packet::read(packet).is_ok())
}

/// Whether a body begins with the end of the connection, or with that of Socket.IO inside it. A body that has messages
/// before the end is read like any other.
pub(super) fn is_goodbye(body: &[u8]) -> bool {
    let mut packets = body.split(|byte| *byte == SEPARATOR).filter(|packet| *packet != PONG);
    packets.next().is_some_and(|packet| packet == CLOSE || packet == DISCONNECT)
}

/// Takes the first packet from a body. `None` if nothing is left.
pub(super) fn take_packet(body: &mut Bytes) -> Option<Bytes> {
    if body.is_empty() {
        return None;
    }
    let length = body.iter().position(|byte| *byte == SEPARATOR).unwrap_or(body.len());
    let packet = body.split_to(length);
    let _ = body.split_to(body.len().min(1));
    Some(packet)
}

/// The body of a response: packets, and the separators between them.
pub(super) fn body<'a>(packets: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut body = Vec::new();
    for packet in packets {
        if !body.is_empty() {
            body.push(SEPARATOR);
        }
        body.extend_from_slice(packet);
    }
    body
}

/// Why a request is refused.
#[derive(Debug)]
pub(super) enum Refused {
    TransportUnknown,
    SessionUnknown,
    HandshakeMethod,
    BadRequest(&'static str),
    Version,
    Problem(Problem),
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl Refused {
    /// The response, in the shape that Engine.IO clients expect.
    pub(super) fn response(self) -> HttpResponse {
        let (code, message) = match self {
            Self::TransportUnknown => (0, "Transport unknown".to_owned()),
            Self::SessionUnknown => (1, "Session ID unknown".to_owned()),
            Self::HandshakeMethod => (2, "Bad handshake method".to_owned()),
            Self::BadRequest(detail) => (3, format!("Bad request: {detail}")),
            Self::Version => (5, "Unsupported protocol version".to_owned()),
            // The guard writes the error.
            Self::Problem(problem) => return HttpResponse::from_error(problem),
        };
        HttpResponse::BadRequest().json(EngineProblem { code, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_a_client() {
        let read = |text: &'static str| Packet::read(text.as_bytes());
        assert_eq!(read("1"), Ok(Packet::Close));
        assert_eq!(read("2probe"), Ok(Packet::Probe));
        assert_eq!(read("3"), Ok(Packet::Pong));
        assert_eq!(read("3probe"), Ok(Packet::Pong));
        assert_eq!(read("42[\"🦀\"]"), Ok(Packet::Message("2[\"🦀\"]")));
        assert_eq!(read("4"), Ok(Packet::Message("")));
        assert_eq!((read("5"), read("6")), (Ok(Packet::Upgrade), Ok(Packet::Noop)));
        for wrong in ["", "0", "0{}", "2", "1x", "5x", "6x", "7", "9", "a", " 4", "🦀"] {
            assert_eq!(read(wrong), Err(NoPacket), "{wrong:?}");
        }
        assert_eq!(Packet::read(b"4\xff"), Err(NoPacket));
    }

    #[test]
    fn a_client_says_goodbye_in_either_layer() {
        for body in ["1", "41", "41\x1e1", "3\x1e1"] {
            assert!(is_goodbye(body.as_bytes()), "{body:?}");
        }
        for body in ["", "3", "b1", "41/admin,", "42[1]", "11", "411", "42[\"a\"]\x1e41\x1e1"] {
            assert!(!is_goodbye(body.as_bytes()), "{body:?}");
        }
    }

    #[test]
    fn a_body_is_split_into_the_packets_of_which_it_was_made() {
        for packets in [&["40"][..], &["42[\"a\"]", "3", "42[\"🦀\"]"], &["3", "bAQID", "1"]] {
            let made = body(packets.iter().map(|packet| packet.as_bytes()));
            assert!(is_body(&made));
            let mut rest = Bytes::from(made);
            let taken: Vec<_> = std::iter::from_fn(|| take_packet(&mut rest)).collect();
            assert_eq!(taken, packets);
        }
        for wrong in [&b""[..], b"\x1e", b"40\x1e", b"\x1e40", b"40\x1e\x1e40", b"40\x1e0{}", b"40\x1e\xff"] {
            assert!(!is_body(wrong), "{wrong:?}");
        }
    }
}
