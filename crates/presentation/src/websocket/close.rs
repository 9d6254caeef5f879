//! How a connection ends: the close codes, and the code for each cause.

use actix_http::ws::CloseReason;
use bytes::Bytes;

use super::messages::Broken;
use crate::frames;

/// Close codes. From 4000 to 4499, the client should reconnect with its cursors; from 4500 on, it should not.
pub(crate) mod close_code {
    pub(crate) const NORMAL: u16 = 1000;
    pub(crate) const PROTOCOL_ERROR: u16 = 1002;
    pub(crate) const NOT_TEXT: u16 = 1003;
    pub(crate) const NOT_UTF8: u16 = 1007;
    pub(crate) const INVALID_FRAME: u16 = 1008;
    pub(crate) const SHUTTING_DOWN: u16 = 4401;
    pub(crate) const TOO_SLOW: u16 = 4408;
    pub(crate) const NO_PONG: u16 = 4410;
    pub(crate) const NO_ROOM: u16 = 4411;
    pub(crate) const STORE_BUSY: u16 = 4412;
    pub(crate) const TOO_LARGE: u16 = 4509;
}

/// The close code and the reason, if nothing more can be read. `None` if the client has disconnected and would not
/// receive them.
pub(crate) fn because_of(broken: Broken) -> Option<(u16, &'static str)> {
    match broken {
        Broken::TooLarge => Some((close_code::TOO_LARGE, "payload too large")),
        Broken::NoRoom => {
            Some((close_code::NO_ROOM, "too many large chats are being received; try again later"))
        }
        Broken::TooSlow => Some((close_code::TOO_SLOW, "the message did not arrive in time")),
        Broken::NotUtf8 => Some((close_code::NOT_UTF8, "not UTF-8")),
        Broken::Protocol => Some((close_code::PROTOCOL_ERROR, "protocol error")),
        Broken::Gone => None,
    }
}

/// The frame that answers a client's close. It repeats the code, if there was one (RFC 6455, section 5.5.1).
pub(crate) fn close_reply(asked: Option<CloseReason>) -> Bytes {
    let code = asked.map_or(close_code::NORMAL, |reason| reason.code.into());
    frames::close(code, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_is_answered_with_its_own_code() {
        let asked = CloseReason { code: 3999.into(), description: Some("bye".to_owned()) };
        assert_eq!(&close_reply(Some(asked))[..], b"\x88\x02\x0f\x9f");
        assert_eq!(&close_reply(None)[..], b"\x88\x02\x03\xe8");
    }
}
