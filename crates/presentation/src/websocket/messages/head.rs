//! Reads the head of a frame (RFC 6455, section 5.2).

/// Maximum payload of a control frame, in bytes.
pub(super) const CONTROL_BYTES: u64 = 125;

const MASK_BYTES: usize = 4;

/// What a frame announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    /// Bytes of the head itself.
    pub(super) bytes: usize,
    /// Bytes of the payload.
    pub(super) length: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Control,
}

impl Head {
    /// The head at the beginning of these bytes. `None` if the head is incomplete, or if the frame is rejected in any
    /// case: reserved bits, an unknown kind, or no mask.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let [first, second, rest @ ..] = bytes else { return None };
        let kind = match first & 0x7f {
            0x0..=0x2 => Kind::Data,
            0x8..=0xa => Kind::Control,
            _ => return None,
        };
        if second & 0x80 == 0 {
            return None;
        }
        let (length, more) = match second & 0x7f {
            126 => (u64::from(u16::from_be_bytes(*rest.first_chunk()?)), 2),
            127 => (u64::from_be_bytes(*rest.first_chunk()?), 8),
            short => (u64::from(short), 0),
        };
        Some(Self { kind, bytes: 2 + more + MASK_BYTES, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(bytes: &[u8]) -> Option<(Kind, usize, u64)> {
        Head::of(bytes).map(|Head { kind, bytes, length }| (kind, bytes, length))
    }

    #[test]
    fn a_head_says_how_much_comes() {
        assert_eq!(announced(b"\x81\x85"), Some((Kind::Data, 6, 5)));
        assert_eq!(announced(b"\x00\xfe\x01\x02"), Some((Kind::Data, 8, 0x102)));
        assert_eq!(announced(b"\x82\xff\0\0\x01\0\0\0\0\0"), Some((Kind::Data, 14, 1 << 40)));
        assert_eq!(announced(b"\x89\xfe\xff\xff"), Some((Kind::Control, 8, 0xffff)));
        assert_eq!(
            announced(b"\x88\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
            Some((Kind::Control, 14, u64::MAX))
        );
    }

    #[test]
    fn half_a_head_and_one_against_the_protocol_say_nothing() {
        for bytes in [&b""[..], b"\x81", b"\x81\xfe\x01", b"\x81\xff\0\0\0\0\0\0\0"] {
            assert_eq!(announced(bytes), None, "half of it: {bytes:x?}");
        }
        for bytes in [b"\xc1\x85", b"\xa1\x85", b"\x91\x85", b"\x83\x85", b"\x8b\x85", b"\x81\x05"] {
            assert_eq!(announced(bytes), None, "against the protocol: {bytes:x?}");
        }
    }
}
