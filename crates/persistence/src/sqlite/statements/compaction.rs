//! Rewrites the batches of ended turns as tight blocks. One call writes one block, or a few if a batch is larger than a
//! block, so that neither memory nor the transaction grows with the turn.

use rusqlite::{Connection, OptionalExtension, named_params};
use tokenrail_domain::TurnNumber;
use tokenrail_ports::StoreError;

use crate::format::batch_run::StoredBatch;
use crate::format::packed_blocks::{BlockLimits, TightBlock, tight_blocks};
use crate::format::packing::Codec;
use crate::passed_over::TurnPlace;
use crate::sqlite::command::{WriteCommand, WriteFailure};
use crate::sqlite::config::SqliteLimits;
use crate::sqlite::error::store_error;
use crate::sqlite::statements::columns::turn_of;
use crate::sqlite::statements::journal::{self, BatchWriter};

const NEXT_TURN: &str = "
    SELECT agent, number, first_sequence, last_sequence
    FROM turns
    WHERE state = 'ended' AND compacted = 0 AND (agent, number) > (:agent, :number)
    ORDER BY agent, number
    LIMIT 1";

pub(crate) const PACKED_BATCHES: &str = "
    SELECT first_seq, last_seq, turn, codec, payload, checksum
    FROM journal
    WHERE agent = :agent AND :first <= first_seq AND first_seq <= :last AND codec = 1
    ORDER BY first_seq";

/// What identifies the contents of a batch.
pub(crate) const STORED: &str = "
    SELECT first_seq, checksum
    FROM journal
    WHERE agent = :agent AND :first <= first_seq AND first_seq <= :last AND codec = 1
    ORDER BY first_seq";

/// Without the upper bound of `first_seq`, it would look at all later batches of the agent.
pub(crate) const REMOVE: &str = "
    DELETE FROM journal
    WHERE agent = :agent AND :first <= first_seq AND first_seq <= :last AND last_seq <= :last AND codec = 1";

/// Marks the turn as done, unless more is left to pack. It looks at every batch of the turn.
pub(crate) const MARK_IF_DONE: &str = "
    UPDATE turns
    SET compacted = 1
    WHERE agent = :agent AND number = :number AND NOT EXISTS (
        SELECT 1
        FROM journal
        WHERE journal.agent = turns.agent
            AND turns.first_sequence <= first_seq AND first_seq <= turns.last_sequence AND codec = 1)";

/// A batch that was read: its first number, and its checksum. Rows of early versions have none. A rewrite adds one.
type ReadBatch = (i64, Option<u32>);

/// The change of one turn.
pub(crate) struct CompactCommand {
    agent: i64,
    turn: TurnNumber,
    /// The batches that were read.
    batches: Vec<ReadBatch>,
    /// Empty if nothing is left to pack.
    blocks: Vec<TightBlock>,
    /// No batch was left after these.
    is_last: bool,
}

/// Where packing goes on: a turn, and the last event of it that was packed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PackedTo {
    place: TurnPlace,
    last: i64,
}

/// The batches of the next blocks. They are read first, and opened and packed after the read, because a reader keeps
/// the log from being restarted.
pub(crate) struct TurnPart {
    command: CompactCommand,
    batches: Vec<StoredBatch>,
}

/// A turn, and its next blocks or why they cannot be packed.
pub(crate) type FoundTurn = (TurnPlace, Result<TurnPart, StoreError>);

/// Reads the batches of the next blocks of a turn after this one, or says why that turn cannot be packed; `None` if no
/// turn is left. A long turn is not searched from its start each time, unless nothing is left after `packed_to`.
pub(crate) fn read(
    db: &Connection,
    after: TurnPlace,
    packed_to: PackedTo,
    limits: &SqliteLimits,
) -> Result<Option<FoundTurn>, StoreError> {
    let mut statement = db.prepare_cached(NEXT_TURN).map_err(store_error)?;
    let turn = statement
        .query_row(named_params! { ":agent": after.agent, ":number": after.number }, |row| {
            let first: Option<i64> = row.get(2)?;
            let last: Option<i64> = row.get(3)?;
            Ok((row.get(0)?, turn_of(row, 1)?, first.zip(last)))
        })
        .optional()
        .map_err(store_error)?;
    let Some((agent, turn, range)) = turn else { return Ok(None) };
    let command = CompactCommand { agent, turn, batches: Vec::new(), blocks: Vec::new(), is_last: true };
    let mut part = TurnPart { command, batches: Vec::new() };
    let place = TurnPlace { agent, number: turn.0 as i32 };
    // A turn that was dropped from the queue has no events.
    let collected = range.map_or(Ok(()), |(first, last)| {
        if packed_to.place == place {
            part.collect(db, (packed_to.last.saturating_add(1).max(first), last), limits)?;
        }
        if part.batches.is_empty() { part.collect(db, (first, last), limits) } else { Ok(()) }
    });
    Ok(Some((place, collected.map(|()| part))))
}

impl TurnPart {
    fn collect(
        &mut self,
        db: &Connection,
        range: (i64, i64),
        limits: &SqliteLimits,
    ) -> Result<(), StoreError> {
        let mut statement = db.prepare_cached(PACKED_BATCHES).map_err(store_error)?;
        let mut rows = statement
            .query(named_params! { ":agent": self.command.agent, ":first": range.0, ":last": range.1 })
            .map_err(store_error)?;
        let (mut bytes, mut events) = (0, 0);
        while let Some(row) = rows.next().map_err(store_error)? {
            let batch = journal::batch_of(row, self.command.agent)?;
            bytes += batch.payload.len();
            events += batch.range.last.next().0.saturating_sub(batch.range.first.0);
            let is_full = limits.block_bytes < bytes || (limits.block_events as u64) < events;
            if is_full && !self.batches.is_empty() {
                self.command.is_last = false;
                break;
            }
            self.command.batches.push((batch.range.first.0 as i64, batch.checksum));
            self.batches.push(batch);
        }
        Ok(())
    }

    /// Where to go on after this part. `None` if there is nothing in it.
    pub(crate) fn packed_to(&self) -> Option<PackedTo> {
        let place = TurnPlace { agent: self.command.agent, number: self.command.turn.0 as i32 };
        self.batches.last().map(|batch| PackedTo { place, last: batch.range.last.0 as i64 })
    }

    /// Packs the events, which takes long.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if a batch cannot be opened.
    pub(crate) fn pack(self, limits: &SqliteLimits) -> Result<CompactCommand, StoreError> {
        let Self { mut command, batches } = self;
        let mut events = Vec::new();
        for StoredBatch { range, codec, payload, checksum } in batches {
            for event in range.open(codec, payload, checksum)? {
                events.push(event.map_err(|error| range.corrupt(error))?);
            }
        }
        let limits = BlockLimits { bytes: limits.block_bytes, events: limits.block_events };
        command.blocks = tight_blocks(&events, limits)?;
        Ok(command)
    }
}

impl WriteCommand for CompactCommand {
    type Answer = ();

    fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.payload.len()).sum()
    }

    fn is_in_background(&self) -> bool {
        true
    }

    fn run(&self, db: &Connection) -> Result<(), WriteFailure> {
        if let (Some(first), Some(last)) = (self.blocks.first(), self.blocks.last()) {
            self.replace(db, first, last)?;
        }
        if self.is_last {
            let turn = named_params! { ":agent": self.agent, ":number": self.turn.0 };
            db.prepare_cached(MARK_IF_DONE)?.execute(turn)?;
        }
        Ok(())
    }
}

impl CompactCommand {
    /// Puts the blocks in place of the batches that were read.
    fn replace(&self, db: &Connection, first: &TightBlock, last: &TightBlock) -> Result<(), WriteFailure> {
        let range = named_params! {
            ":agent": self.agent,
            ":first": first.first.0 as i64,
            ":last": last.last.0 as i64,
        };
        let mut statement = db.prepare_cached(STORED)?;
        let stored = statement.query_map(range, |row| Ok((row.get(0)?, row.get(1)?)))?;
        if stored.collect::<Result<Vec<ReadBatch>, _>>()? != self.batches {
            // The agent was purged meanwhile, another call was faster, or events were rewritten. The next call reads
            // what is there now.
            return Ok(());
        }
        db.prepare_cached(REMOVE)?.execute(range)?;
        let journal = BatchWriter { db, agent: self.agent, turn: self.turn };
        for block in &self.blocks {
            journal.add(Codec::Tight, block.first, block.last, &block.payload)?;
        }
        Ok(())
    }
}
