//! Saves the appends of many agents in one statement.

use tokenrail_ports::Append;
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

use super::{PreparedAppend, PreparedPart};
use crate::format::batch::BatchRange;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::int;
use crate::postgres::statements::message_row::MessageColumns;

/// Saves the appends of many agents. The row in `heads` is the only lock: an append that comes late finds another epoch
/// or head, and moves nothing. Returns the agents whose appends are saved.
pub(super) const MOVE_HEADS: &str = "
    WITH input AS (
        SELECT *
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::int[], $6::bigint[], $7::bigint[],
            $8::bigint[], $9::smallint[], $10::bigint[], $11::bytea[])
            AS input (agent, epoch, first_seq, last_seq, turn, open_from, spool_offset, at, codec, checksum, payload)
    ), moved AS (
        UPDATE heads
        SET head = input.last_seq, open_from = input.open_from, spool_offset = input.spool_offset,
            updated_at = input.at
        FROM input
        WHERE heads.agent = input.agent AND heads.epoch = input.epoch AND heads.head = input.first_seq - 1
            AND heads.running AND heads.turn = input.turn
        RETURNING heads.agent
    ), added AS (
        INSERT INTO journal (agent, first_seq, last_seq, turn, codec, checksum, payload)
        SELECT input.agent, first_seq, last_seq, turn, codec, checksum, payload
        FROM input
        JOIN moved ON moved.agent = input.agent
    ), said AS (
        INSERT INTO agent_messages
            (agent, sequence_number, id, first_sequence, type, role, content, raw, metadata, created_at, checksum)
        SELECT row.*
        FROM unnest($12::bigint[], $13::bigint[], $14::uuid[], $15::bigint[], $16::text[], $17::text[],
            $18::bytea[], $19::bytea[], $20::bytea[], $21::bigint[], $22::bigint[])
            AS row (agent, sequence_number, id, first_sequence, type, role, content, raw, metadata, created_at, checksum)
        JOIN moved ON moved.agent = row.agent
    )
    SELECT agent FROM moved";

/// Appends of several agents, column by column.
#[derive(Default)]
struct BatchColumns<'a> {
    agents: Vec<i64>,
    epochs: Vec<i64>,
    first: Vec<i64>,
    last: Vec<i64>,
    turns: Vec<i32>,
    open_from: Vec<Option<i64>>,
    spool_offsets: Vec<i64>,
    at: Vec<i64>,
    codecs: Vec<i16>,
    checksums: Vec<i64>,
    payloads: Vec<&'a [u8]>,
}

impl<'a> BatchColumns<'a> {
    fn add(&mut self, agent: i64, append: &'a Append, part: &'a PreparedPart) {
        let (Some(first), Some(last)) = (append.events.first(), append.events.last()) else { return };
        let range = BatchRange { agent, first: first.sequence, last: last.sequence, turn: first.turn };
        let checksum = range.checksum(part.codec as i64, &part.payload).sum();
        self.agents.push(agent);
        self.epochs.push(append.epoch.0 as i64);
        self.first.push(first.sequence.0 as i64);
        self.last.push(last.sequence.0 as i64);
        self.turns.push(int(first.turn.0));
        self.open_from.push(append.open_from.map(|first| first.0 as i64));
        self.spool_offsets.push(append.spool_offset as i64);
        self.at.push(last.at.0);
        self.codecs.push(part.codec as i16);
        self.checksums.push(i64::from(checksum));
        self.payloads.push(&part.payload);
    }
}

/// Saves appends that may go together, with the keys of their agents. Each agent has one of them, and they are in the
/// order of their keys. Returns the keys of those that are saved. The statement commits by itself.
pub(crate) async fn move_heads(
    db: &Link,
    appends: &[(i64, &PreparedAppend)],
) -> Result<Vec<i64>, QueryFailure> {
    let (mut batches, mut rows) = (BatchColumns::default(), MessageColumns::default());
    for (agent, prepared) in appends {
        if let [Some(part)] = &prepared.parts[..] {
            batches.add(*agent, &prepared.append, part);
            rows.add(*agent, &part.rows)?;
        }
    }
    let of_batches: [&(dyn ToSql + Sync); 11] = [
        &batches.agents,
        &batches.epochs,
        &batches.first,
        &batches.last,
        &batches.turns,
        &batches.open_from,
        &batches.spool_offsets,
        &batches.at,
        &batches.codecs,
        &batches.checksums,
        &batches.payloads,
    ];
    let moved = db.rows(MOVE_HEADS, &[of_batches, rows.parameters()].concat()).await?;
    Ok(moved.iter().map(|row| row.try_get(0)).collect::<Result<_, Error>>()?)
}
