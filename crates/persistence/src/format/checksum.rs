//! Checksums of rows. A database detects a broken page, but not a disk that has changed a byte of a text; such a text
//! must not pass for what an agent wrote.

use tokenrail_ports::StoreError;

/// The CRC-32 of columns, each with its length, so that no byte can move from one column into the next.
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

    /// Compares with the checksum stored in the row, called `what` in the error. Rows of early versions have none.
    pub(crate) fn check(self, stored: Option<u32>, what: impl Fn() -> String) -> Result<(), StoreError> {
        self.checked(stored, what).map(drop)
    }

    /// Like [`Checksum::check`]. Returns the checksum, also for a row that has none.
    pub(crate) fn checked(self, stored: Option<u32>, what: impl Fn() -> String) -> Result<u32, StoreError> {
        let sum = self.sum();
        match stored {
            Some(stored) if stored != sum => Err(StoreError::Corrupt(format!("{}: wrong checksum", what()))),
            _ => Ok(sum),
        }
    }
}
