//! Consecutive batches, opened one after the other.

use tokenrail_domain::{Event, Sequence};
use tokenrail_ports::StoreError;
use tokenrail_ports::rules::Flow;

use super::batch::BatchRange;

/// The highest number that a database can store.
const LAST: Sequence = Sequence(i64::MAX as u64);

/// A row of `journal`.
pub(crate) struct StoredBatch {
    pub(crate) range: BatchRange,
    pub(crate) codec: i64,
    pub(crate) payload: Vec<u8>,
    /// `None` in rows of early versions.
    pub(crate) checksum: Option<u32>,
}

/// Reads the events `from ..= to` of one agent from its batches. The caller passes the batch that contains `from`, and
/// those that follow.
pub(crate) struct BatchRun {
    from: Sequence,
    to: Sequence,
    /// The number with which the next batch begins; `None` before the first batch.
    next: Option<Sequence>,
}

impl BatchRun {
    pub(crate) fn new((from, to): (Sequence, Sequence)) -> Self {
        Self { from: from.min(LAST), to: to.min(LAST), next: None }
    }

    /// The events to read, as numbers of the database.
    pub(crate) fn range(&self) -> (i64, i64) {
        (self.from.0 as i64, self.to.0 as i64)
    }

    /// The rest of the run, which begins at whichever batch holds the next event by now.
    pub(crate) fn rest(&self) -> Self {
        Self::new((self.next.map_or(self.from, |next| next.max(self.from)), self.to))
    }

    /// Passes the events of the next batch that are in the range to `take`, until it has enough. Returns
    /// [`Flow::Enough`] if no further batch is needed.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the batch does not follow the one before, or cannot be opened.
    pub(crate) fn open(
        &mut self,
        batch: StoredBatch,
        take: &mut impl FnMut(Event) -> Flow,
    ) -> Result<Flow, StoreError> {
        let StoredBatch { range, codec, payload, checksum } = batch;
        let follows = self.next.map_or(range.first <= self.from, |next| range.first == next);
        if !follows {
            let first = range.first;
            return Err(StoreError::Corrupt(format!("batch {first}: the events before it are missing")));
        }
        self.next = Some(range.last.next());
        for event in range.open(codec, payload, checksum)? {
            let event = event.map_err(|error| range.corrupt(error))?;
            if self.to < event.sequence {
                return Ok(Flow::Enough);
            }
            if self.from <= event.sequence && take(event) == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::More)
    }
}
