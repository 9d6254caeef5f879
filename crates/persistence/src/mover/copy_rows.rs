//! Rows in the binary format of `COPY`.

use bytes::{BufMut as _, Bytes, BytesMut};
use uuid::Uuid;

/// Marks the stream, with no flags and no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

const END: i16 = -1;

const NULL: i32 = -1;

/// Rows of one table, which are sent piece by piece.
pub(super) struct CopyRows {
    bytes: BytesMut,
}

impl CopyRows {
    pub(super) fn begin() -> Self {
        Self { bytes: BytesMut::from(HEADER) }
    }

    /// Begins a row. The values of its columns follow.
    pub(super) fn row(&mut self, columns: usize) {
        self.bytes.put_i16(columns as i16);
    }

    pub(super) fn end(&mut self) {
        self.bytes.put_i16(END);
    }

    /// How many bytes wait to be sent.
    pub(super) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// What waits to be sent.
    pub(super) fn take(&mut self) -> Bytes {
        self.bytes.split().freeze()
    }

    pub(super) fn null(&mut self) {
        self.bytes.put_i32(NULL);
    }

    /// A text, or bytes. SQLite stores at most 10^9 of them.
    pub(super) fn bytes(&mut self, value: &[u8]) {
        self.bytes.put_i32(value.len() as i32);
        self.bytes.put_slice(value);
    }

    pub(super) fn bigint(&mut self, value: i64) {
        self.bytes(&value.to_be_bytes());
    }

    pub(super) fn int(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    pub(super) fn smallint(&mut self, value: i16) {
        self.bytes(&value.to_be_bytes());
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.bytes(&[u8::from(value)]);
    }

    pub(super) fn double(&mut self, value: f64) {
        self.bytes(&value.to_be_bytes());
    }

    pub(super) fn uuid(&mut self, value: Uuid) {
        self.bytes(value.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_form_that_the_manual_of_postgresql_describes() {
        let mut rows = CopyRows::begin();
        assert_eq!(&rows.take()[..], b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0");
        rows.row(3);
        rows.null();
        rows.smallint(-2);
        rows.bytes(b"a\0");
        rows.end();
        assert_eq!(rows.waiting(), 2 + 4 + 4 + 2 + 4 + 2 + 2);
        assert_eq!(&rows.take()[..], b"\0\x03\xff\xff\xff\xff\0\0\0\x02\xff\xfe\0\0\0\x02a\0\xff\xff");
        assert_eq!(rows.waiting(), 0);
    }
}
