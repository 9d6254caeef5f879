//! Checksums of rows. SQLite notices when its pages hang together wrongly, but not when a disk has changed a text in
//! one; such a text must not be taken for what an agent said.

use rusqlite::Row;
use tokenrail_ports::StoreError;

use crate::error::store_error;

/// The CRC-32 of columns, each with its length, so that nothing can move from one into the next.
pub(crate) struct Checksum(crc32fast::Hasher);

impl Checksum {
    pub(crate) fn new() -> Self {
        Self(crc32fast::Hasher::new())
    }

    pub(crate) fn number(mut self, number: i64) -> Self {
        self.0.update(&number.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// A column that may be NULL.
    pub(crate) fn maybe(self, value: Option<&[u8]>) -> Self {
        match value {
            None => self.number(0),
            Some(bytes) => self.number(1).bytes(bytes),
        }
    }

    pub(crate) fn sum(self) -> u32 {
        self.0.finalize()
    }

    /// Compares with what stands in the row; a row of an earlier version has nothing to compare with.
    pub(crate) fn check(self, row: &Row<'_>, at: usize, what: impl Fn() -> String) -> Result<(), StoreError> {
        match row.get::<_, Option<u32>>(at).map_err(store_error)? {
            Some(written) if written != self.sum() => {
                Err(StoreError::Corrupt(format!("{}: its checksum is wrong", what())))
            }
            _ => Ok(()),
        }
    }
}
