//! Rewrites the batches of ended turns as tight blocks. One call does one block, so that neither memory nor the
//! transaction grows with the turn.

use rusqlite::{Connection, OptionalExtension, named_params};
use tokenrail_domain::{Event, Sequence, TurnNumber};
use tokenrail_ports::StoreError;

use crate::columns::{sequence_of, turn_of};
use crate::config::StoreLimits;
use crate::error::store_error;
use crate::journal::{BatchWriter, unpack_row};
use crate::packing::{self, Codec};
use crate::writer::{Command, Failure};

const NEXT_TURN: &str = "
    SELECT agent, number, first_sequence, last_sequence
    FROM turns
    WHERE state = 'ended' AND compacted = 0
    LIMIT 1";

const PACKED_BATCHES: &str = "
    SELECT first_seq, last_seq, turn, codec, payload, checksum
    FROM journal
    WHERE agent = :agent AND :first <= first_seq AND first_seq <= :last AND codec = 1
    ORDER BY first_seq";

/// A batch has its number once, so these are the very batches that were read.
const REMOVE: &str = "
    DELETE FROM journal
    WHERE agent = :agent AND :first <= first_seq AND last_seq <= :last AND codec = 1";

const MARK: &str = "UPDATE turns SET compacted = 1 WHERE agent = :agent AND number = :number";

/// What the writer is to do about one turn.
pub(crate) struct CompactCommand {
    agent: i64,
    turn: TurnNumber,
    /// How many batches were read.
    batches: usize,
    /// None where nothing is left to pack: the turn is marked as done.
    blocks: Vec<Block>,
}

struct Block {
    first: Sequence,
    last: Sequence,
    payload: Vec<u8>,
}

/// Prepares the next block; none where no turn is left.
pub(crate) fn prepare(db: &Connection, limits: &StoreLimits) -> Result<Option<CompactCommand>, StoreError> {
    let mut statement = db.prepare_cached(NEXT_TURN).map_err(store_error)?;
    let turn = statement
        .query_row([], |row| {
            let first: Option<i64> = row.get(2)?;
            let last: Option<i64> = row.get(3)?;
            Ok((row.get(0)?, turn_of(row, 1)?, first.zip(last)))
        })
        .optional()
        .map_err(store_error)?;
    let Some((agent, turn, range)) = turn else { return Ok(None) };
    let mut command = CompactCommand { agent, turn, batches: 0, blocks: Vec::new() };
    // A turn that was dropped from the queue has no events.
    if let Some(range) = range {
        command.collect(db, range, limits)?;
    }
    Ok(Some(command))
}

impl CompactCommand {
    fn collect(
        &mut self,
        db: &Connection,
        range: (i64, i64),
        limits: &StoreLimits,
    ) -> Result<(), StoreError> {
        let mut statement = db.prepare_cached(PACKED_BATCHES).map_err(store_error)?;
        let mut rows = statement
            .query(named_params! { ":agent": self.agent, ":first": range.0, ":last": range.1 })
            .map_err(store_error)?;
        let (mut events, mut bytes) = (Vec::new(), 0);
        while bytes < limits.block_bytes
            && events.len() < limits.block_events
            && let Some(row) = rows.next().map_err(store_error)?
        {
            self.batches += 1;
            bytes += row.get_ref(4).and_then(|payload| Ok(payload.as_blob()?.len())).map_err(store_error)?;
            let first = sequence_of(row, 0).map_err(store_error)?;
            for event in unpack_row(row, self.agent)? {
                events.push(event.map_err(|error| StoreError::Corrupt(format!("batch {first}: {error}")))?);
            }
        }
        for events in blocks(&events, limits) {
            self.blocks.extend(Block::of(events)?);
        }
        Ok(())
    }
}

impl Block {
    fn of(events: &[Event]) -> Result<Option<Self>, StoreError> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(None) };
        let payload =
            packing::pack_tight(events).map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(Some(Self { first: first.sequence, last: last.sequence, payload }))
    }
}

/// Cuts the events into pieces within the limits; a batch that was too large becomes several.
fn blocks<'a>(events: &'a [Event], limits: &StoreLimits) -> Vec<&'a [Event]> {
    let (mut blocks, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, event) in events.iter().enumerate() {
        let more = event.raw.as_ref().map_or(0, bytes::Bytes::len);
        if start < at && (limits.block_bytes < bytes + more || limits.block_events <= at - start) {
            blocks.push(&events[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += more;
    }
    blocks.push(&events[start..]);
    blocks
}

impl Command for CompactCommand {
    type Answer = ();

    fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.payload.len()).sum()
    }

    fn run(&self, db: &Connection) -> Result<(), Failure> {
        let (Some(first), Some(last)) = (self.blocks.first(), self.blocks.last()) else {
            db.prepare_cached(MARK)?
                .execute(named_params! { ":agent": self.agent, ":number": self.turn.0 })?;
            return Ok(());
        };
        let removed = db.prepare_cached(REMOVE)?.execute(named_params! {
            ":agent": self.agent,
            ":first": first.first.0 as i64,
            ":last": last.last.0 as i64,
        })?;
        if removed == 0 {
            // The agent was purged meanwhile, or somebody else was faster.
            return Ok(());
        }
        if removed != self.batches {
            return Err(Failure::Undo(StoreError::Corrupt(
                "the batches of an ended turn have changed".into(),
            )));
        }
        let journal = BatchWriter { db, agent: self.agent, turn: self.turn };
        for block in &self.blocks {
            journal.add(Codec::Tight, block.first, block.last, &block.payload)?;
        }
        Ok(())
    }
}
