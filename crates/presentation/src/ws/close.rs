//! How a connection ends: close codes, and which of them answers what a client has done.

use std::io;

use actix_http::ws::{CloseReason, ProtocolError};
use bytes::Bytes;

use crate::frames;

/// Close codes. Below 4500: come again, with your cursors; from there on: do not.
pub(crate) mod close_code {
    pub(crate) const NORMAL: u16 = 1000;
    pub(crate) const PROTOCOL_ERROR: u16 = 1002;
    pub(crate) const NOT_TEXT: u16 = 1003;
    pub(crate) const NOT_UTF8: u16 = 1007;
    pub(crate) const INVALID_FRAME: u16 = 1008;
    pub(crate) const SHUTTING_DOWN: u16 = 4401;
    pub(crate) const NO_PONG: u16 = 4410;
    pub(crate) const NO_ROOM: u16 = 4411;
    pub(crate) const TOO_LARGE: u16 = 4509;
}

/// The close code for bytes that are no message, and the reason; none where the connection has gone, so that there is
/// nobody to tell.
pub(super) fn because_of(error: &ProtocolError) -> Option<(u16, &'static str)> {
    match error {
        ProtocolError::Overflow => Some((close_code::TOO_LARGE, "payload too large")),
        ProtocolError::Io(error) if error.kind() == io::ErrorKind::InvalidData => Some(invalid_data(error)),
        // So the reader of messages says that their fragments are too much together; no socket fails so.
        ProtocolError::Io(error) if error.kind() == io::ErrorKind::Other => {
            Some((close_code::TOO_LARGE, "payload too large"))
        }
        ProtocolError::Io(_) => None,
        _ => Some((close_code::PROTOCOL_ERROR, "protocol error")),
    }
}

/// The parser gives reserved bits and text that is not UTF-8 the same kind. Only the words of the standard library's
/// own error tell the second.
fn invalid_data(error: &io::Error) -> (u16, &'static str) {
    if error.to_string().contains("utf-8") {
        (close_code::NOT_UTF8, "not UTF-8")
    } else {
        (close_code::PROTOCOL_ERROR, "protocol error")
    }
}

/// The frame that answers a client's close: it repeats the code, if there was one (RFC 6455, section 5.5.1).
pub(super) fn answer(asked: Option<CloseReason>) -> Bytes {
    let code = asked.map_or(close_code::NORMAL, |reason| reason.code.into());
    frames::close(code, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_bits_are_told_from_text_that_is_not_utf8() {
        let invalid = |text: &[u8]| {
            let error = std::str::from_utf8(text).unwrap_err();
            because_of(&ProtocolError::Io(io::Error::new(io::ErrorKind::InvalidData, error)))
        };
        assert_eq!(invalid(b"\xff").map(|(code, _)| code), Some(close_code::NOT_UTF8));
        assert_eq!(invalid(b"\xe2\x82").map(|(code, _)| code), Some(close_code::NOT_UTF8));
        let mut reserved = bytes::BytesMut::from(&b"\xc1\x80\0\0\0\0"[..]);
        let error = actix_http::ws::Parser::parse(&mut reserved, true, 1000).unwrap_err();
        assert_eq!(because_of(&error).map(|(code, _)| code), Some(close_code::PROTOCOL_ERROR));
    }

    #[test]
    fn a_close_is_answered_with_its_own_code() {
        let asked = CloseReason { code: 3999.into(), description: Some("bye".to_owned()) };
        assert_eq!(&answer(Some(asked))[..], b"\x88\x02\x0f\x9f");
        assert_eq!(&answer(None)[..], b"\x88\x02\x03\xe8");
    }
}
