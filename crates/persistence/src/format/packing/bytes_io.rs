//! Numbers and slices in bytes.

use bytes::{Buf, Bytes};

use super::MalformedBatch;

/// Writes seven bits per byte, the low ones first. The high bit of a byte means that more follow.
pub(super) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while 0x80 <= number {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Maps small numbers of either sign to small numbers.
pub(super) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

pub(super) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Reads a stream from its front.
pub(super) struct StreamReader(Bytes);

impl StreamReader {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }

    pub(super) fn rest(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn byte(&mut self) -> Result<u8, MalformedBatch> {
        let byte = *self.0.first().ok_or(MalformedBatch)?;
        self.0.advance(1);
        Ok(byte)
    }

    pub(super) fn varint(&mut self) -> Result<u64, MalformedBatch> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && 1 < bits {
                return Err(MalformedBatch);
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(MalformedBatch)
    }

    /// A slice of the payload, not a copy.
    pub(super) fn bytes(&mut self, length: u64) -> Result<Bytes, MalformedBatch> {
        let length = usize::try_from(length).map_err(|_| MalformedBatch)?;
        if self.0.len() < length {
            return Err(MalformedBatch);
        }
        Ok(self.0.split_to(length))
    }

    pub(super) fn string(&mut self, length: u64) -> Result<String, MalformedBatch> {
        let bytes = self.bytes(length)?;
        std::str::from_utf8(&bytes).map(str::to_owned).map_err(|_| MalformedBatch)
    }
}
