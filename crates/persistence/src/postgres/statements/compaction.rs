//! Rewrites the batches of ended turns as tight blocks. One call writes one block, or a few if a batch is larger than a
//! block, so that neither memory nor the transaction grows with the turn.

use tokenrail_domain::{Event, TurnNumber};
use tokenrail_ports::StoreError;

use crate::format::batch::BatchRange;
use crate::format::batch_run::StoredBatch;
use crate::format::packed_blocks::{BlockLimits, TightBlock, tight_blocks};
use crate::format::packing::Codec;
use crate::passed_over::TurnPlace;
use crate::postgres::command::ChangeCommand;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{column, int, turn_of};
use crate::postgres::statements::journal::{self, FetchLimit, add_batch, batches_where};

/// A turn of the node `$1`; or one of another node that ended `$2` ms ago, and that this node seems not to pack. Two
/// nodes that pack the same turn only do some work twice: the batches of the first one are gone when the second one
/// wants to remove them. Those after `$3`, `$4` only.
const NEXT_TURN: &str = "
    SELECT turns.agent, turns.number, turns.first_sequence, turns.last_sequence
    FROM turns
    JOIN agents ON agents.key = turns.agent
    WHERE turns.state = 'ended' AND NOT turns.compacted
        AND (agents.home = $1
            OR coalesce(turns.ended_at, 0) < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $2)
        AND (turns.agent, turns.number) > ($3, $4)
    ORDER BY turns.agent, turns.number
    LIMIT 1";

/// Those from `$2` to `$3` that are not tight yet.
const LOOSE_BATCHES: &str = batches_where!("$2 <= first_seq AND first_seq <= $3 AND codec <> 2");

/// A rewrite of events of this turn locks it too. Otherwise, it would not see the blocks that are added meanwhile, and
/// its events would be in the journal twice.
const LOCK: &str = "SELECT FROM turns WHERE agent = $1 AND number = $2 FOR NO KEY UPDATE";

/// All the batches that were read, or none if one of them is not there: one that was rewritten meanwhile has another
/// checksum.
const REMOVE: &str = "
    WITH read AS (SELECT * FROM unnest($2::bigint[], $3::bigint[]) AS read (first_seq, checksum))
    DELETE FROM journal
    WHERE agent = $1 AND (first_seq, checksum) IN (SELECT * FROM read)
        AND (SELECT count(*) FROM read) = (
            SELECT count(*) FROM journal WHERE agent = $1 AND (first_seq, checksum) IN (SELECT * FROM read))";

/// Marks the turn as done, unless more is left to pack.
const MARK_IF_DONE: &str = "
    UPDATE turns
    SET compacted = true
    WHERE agent = $1 AND number = $2 AND NOT EXISTS (
        SELECT
        FROM journal
        WHERE journal.agent = turns.agent
            AND turns.first_sequence <= first_seq AND first_seq <= turns.last_sequence AND codec <> 2)";

/// The change of one turn.
pub(crate) struct CompactCommand {
    agent: i64,
    turn: TurnNumber,
    /// The first numbers and the checksums of the batches that were read.
    batches: (Vec<i64>, Vec<i64>),
    /// Empty if nothing is left to pack.
    blocks: Vec<TightBlock>,
}

/// The events of the next blocks.
pub(crate) struct TurnPart {
    command: CompactCommand,
    events: Vec<Event>,
}

/// Whose turns to pack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidates {
    /// The node whose turns are packed at once. `None` before it has joined.
    pub(crate) node: Option<i64>,
    pub(crate) others_after_ms: u64,
    pub(crate) after: TurnPlace,
}

/// A turn, and its next blocks or why they cannot be packed.
pub(crate) type FoundTurn = (TurnPlace, Result<TurnPart, StoreError>);

/// Reads the events of the next blocks, or says why those of the next turn cannot be packed; `None` if no turn is left.
/// `limits` is the size of one block.
pub(crate) async fn read(
    db: &Link,
    which: Candidates,
    limits: BlockLimits,
) -> Result<Option<FoundTurn>, QueryFailure> {
    let Candidates { node, others_after_ms, after } = which;
    let age = i64::try_from(others_after_ms).unwrap_or(i64::MAX);
    let Some(row) = db.row(NEXT_TURN, &[&node, &age, &after.agent, &after.number]).await? else {
        return Ok(None);
    };
    let (agent, turn) = (column(&row, 0)?, turn_of(&row, 1)?);
    let place = TurnPlace { agent, number: int(turn.0) };
    let command = CompactCommand { agent, turn, batches: (Vec::new(), Vec::new()), blocks: Vec::new() };
    let mut part = TurnPart { command, events: Vec::new() };
    let range = column::<Option<i64>>(&row, 2)?.zip(column::<Option<i64>>(&row, 3)?);
    // A turn that was dropped from the queue has no events.
    if let Some(range) = range {
        match part.collect(db, range, limits).await {
            Err(QueryFailure::Refused(error)) => return Ok(Some((place, Err(error)))),
            collected => collected?,
        }
    }
    Ok(Some((place, Ok(part))))
}

impl TurnPart {
    async fn collect(
        &mut self,
        db: &Link,
        (first, last): (i64, i64),
        limits: BlockLimits,
    ) -> Result<(), QueryFailure> {
        let agent = self.command.agent;
        let (rows, bytes) = FetchLimit { rows: limits.events, bytes: limits.bytes }.as_numbers();
        for row in db.rows(LOOSE_BATCHES, &[&agent, &first, &last, &rows, &bytes]).await? {
            if limits.events <= self.events.len() {
                break;
            }
            self.command.batches.0.push(column(&row, 0)?);
            self.command.batches.1.push(column(&row, 4)?);
            let StoredBatch { range, codec, payload, checksum } = journal::batch_of(&row, agent)?;
            for event in range.open(codec, payload, checksum)? {
                self.events.push(event.map_err(|error| range.corrupt(error))?);
            }
        }
        Ok(())
    }

    /// Packs the events, which takes long.
    pub(crate) fn pack(self, limits: BlockLimits) -> Result<CompactCommand, StoreError> {
        let Self { mut command, events } = self;
        command.blocks = tight_blocks(&events, limits)?;
        Ok(command)
    }
}

impl ChangeCommand for CompactCommand {
    type Answer = ();

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        let agent = self.agent;
        db.rows(LOCK, &[&agent, &int(self.turn.0)]).await?;
        if self.blocks.is_empty() {
            db.run(MARK_IF_DONE, &[&agent, &int(self.turn.0)]).await?;
            return Ok(());
        }
        let (first, checksums) = &self.batches;
        let removed = db.run(REMOVE, &[&agent, first, checksums]).await?;
        if removed == 0 {
            // The agent was purged meanwhile, another call was faster, or events were rewritten. The next call reads
            // what is there now.
            return Ok(());
        }
        if removed != first.len() as u64 {
            // Somebody has changed them since this statement began.
            return Err(QueryFailure::Again);
        }
        for block in &self.blocks {
            let range = BatchRange { agent, first: block.first, last: block.last, turn: self.turn };
            add_batch(db, range, Codec::Tight, &block.payload).await?;
        }
        db.run(MARK_IF_DONE, &[&agent, &int(self.turn.0)]).await?;
        Ok(())
    }
}
