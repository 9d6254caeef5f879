//! A row of `journal`: the payload of a batch, the range of events that it covers, and its checksum.

use tokenrail_domain::{Sequence, TurnNumber};
use tokenrail_ports::StoreError;

use super::checksum::Checksum;
use super::packing::{self, Codec, MalformedBatch, UnpackedEvents};

/// Which events of which agent a batch holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchRange {
    /// The agent's key in the database.
    pub(crate) agent: i64,
    pub(crate) first: Sequence,
    pub(crate) last: Sequence,
    pub(crate) turn: TurnNumber,
}

impl BatchRange {
    /// The checksum of a batch of this range. `codec` is the value of its column.
    pub(crate) fn checksum(self, codec: i64, payload: &[u8]) -> Checksum {
        let Self { agent, first, last, turn } = self;
        let place = Checksum::new().number(agent).number(first.0 as i64).number(last.0 as i64);
        place.number(i64::from(turn.0)).number(codec).bytes(payload)
    }

    /// Opens a stored batch of this range, after its checksum has been compared.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the checksum differs, or the payload is not one that was written here.
    pub(crate) fn open(
        self,
        codec: i64,
        payload: Vec<u8>,
        checksum: Option<u32>,
    ) -> Result<UnpackedEvents, StoreError> {
        let first = self.first;
        self.checksum(codec, &payload).check(checksum, || format!("batch {first}"))?;
        let codec = Codec::from_number(codec)
            .ok_or_else(|| StoreError::Corrupt(format!("batch {first}: unknown codec")))?;
        packing::unpack(codec, first, self.turn, payload).map_err(|error| self.corrupt(error))
    }

    /// The error for a payload that cannot be unpacked.
    pub(crate) fn corrupt(self, error: MalformedBatch) -> StoreError {
        StoreError::Corrupt(format!("batch {}: {error}", self.first))
    }
}
