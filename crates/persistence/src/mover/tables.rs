//! The rows of SQLite, in the form in which PostgreSQL takes them.
//!
//! Rows of `journal` and `agent_messages` are copied with their checksums, which are compared before. Rows of early
//! versions have none and get one.

mod plain;

use bytes::Bytes;
use rusqlite::{Connection, Row, named_params};
use tokenrail_domain::{AgentId, Sequence};
use tokenrail_ports::StoreError;
use tokio::sync::mpsc::Sender;
use uuid::Uuid;

use self::plain::PlainTable;
use super::copy_rows::CopyRows;
use super::error::MoveError;
use crate::format::batch_run::StoredBatch;
use crate::format::packing::Codec;
use crate::sqlite::error::store_error;
use crate::sqlite::statements::columns::{agent_id_of, sequence_of};
use crate::sqlite::statements::journal::batch_of;
use crate::sqlite::statements::message_row::{self, stored_of};

/// Bytes of rows that are sent at once, about.
const PIECE_BYTES: usize = 256 << 10;

const AGENTS: &str = "
    SELECT agents.key, agents.id, heads.head
    FROM agents
    JOIN heads ON heads.agent = agents.key
    ORDER BY agents.key";

const BATCHES: &str = "
    SELECT first_seq, last_seq, turn, codec, payload, checksum
    FROM journal
    WHERE agent = :agent
    ORDER BY first_seq";

const BATCH_COLUMNS: [&str; 7] = ["agent", "first_seq", "last_seq", "turn", "codec", "checksum", "payload"];

const MESSAGE_COLUMNS: [&str; 11] = [
    "agent",
    "sequence_number",
    "id",
    "first_sequence",
    "type",
    "role",
    "content",
    "raw",
    "metadata",
    "created_at",
    "checksum",
];

/// A table that moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Plain(&'static PlainTable),
    Journal,
    Messages,
}

impl Table {
    /// In the order in which they are filled.
    pub(super) const ALL: [Self; 8] = [
        Self::Plain(&plain::AGENTS),
        Self::Plain(&plain::HEADS),
        Self::Plain(&plain::TURNS),
        Self::Plain(&plain::PROMPT_IMAGES),
        Self::Plain(&plain::TOMBSTONES),
        Self::Plain(&plain::IDEMPOTENCY),
        Self::Journal,
        Self::Messages,
    ];

    /// For a statement about all of them.
    pub(super) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    fn name(self) -> &'static str {
        match self {
            Self::Plain(table) => table.name,
            Self::Journal => "journal",
            Self::Messages => "agent_messages",
        }
    }

    /// The statement that takes the rows.
    pub(super) fn copy(self) -> String {
        let columns = match self {
            Self::Plain(table) => table.columns(),
            Self::Journal => BATCH_COLUMNS.join(", "),
            Self::Messages => MESSAGE_COLUMNS.join(", "),
        };
        format!("COPY {} ({columns}) FROM STDIN (FORMAT binary)", self.name())
    }
}

/// What is read for one table after the other.
pub(super) enum Piece {
    Rows {
        rows: Bytes,
        /// How many events are done, counted as in [`MoveProgress`](super::MoveProgress).
        done: u64,
    },
    EndOfTable,
}

/// Why the reading ended early.
pub(super) enum ReadFailure {
    Failed(MoveError),
    /// Nobody takes the rows any more.
    NotWanted,
}

impl From<MoveError> for ReadFailure {
    fn from(error: MoveError) -> Self {
        Self::Failed(error)
    }
}

/// Reads the rows of all tables. Blocks while nobody takes them.
pub(super) fn read_all(db: &Connection, to: &Sender<Piece>) -> Result<(), ReadFailure> {
    let mut outlet = Outlet { rows: CopyRows::begin(), done: 0, to };
    for table in Table::ALL {
        outlet.rows = CopyRows::begin();
        match table {
            Table::Plain(table) => table.read(db, &mut outlet)?,
            Table::Journal => for_each_agent(db, &mut outlet, read_journal)?,
            Table::Messages => for_each_agent(db, &mut outlet, read_messages)?,
        }
        outlet.rows.end();
        outlet.send()?;
        outlet.pass_on(Piece::EndOfTable)?;
    }
    Ok(())
}

/// Where the rows go.
struct Outlet<'a> {
    rows: CopyRows,
    done: u64,
    to: &'a Sender<Piece>,
}

impl Outlet<'_> {
    /// Sends the rows if there are enough of them.
    fn after_row(&mut self) -> Result<(), ReadFailure> {
        if self.rows.waiting() < PIECE_BYTES { Ok(()) } else { self.send() }
    }

    fn send(&mut self) -> Result<(), ReadFailure> {
        let piece = Piece::Rows { rows: self.rows.take(), done: self.done };
        self.pass_on(piece)
    }

    fn pass_on(&self, piece: Piece) -> Result<(), ReadFailure> {
        self.to.blocking_send(piece).map_err(|_| ReadFailure::NotWanted)
    }
}

/// An agent whose rows are read.
#[derive(Debug, Clone, Copy)]
struct MovedAgent {
    key: i64,
    id: AgentId,
    head: Sequence,
}

fn for_each_agent(
    db: &Connection,
    outlet: &mut Outlet<'_>,
    read: fn(&Connection, MovedAgent, &mut Outlet<'_>) -> Result<(), ReadFailure>,
) -> Result<(), ReadFailure> {
    let failed = |error| MoveError::reading("the list of agents", store_error(error));
    let mut statement = db.prepare_cached(AGENTS).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let agent = |row: &Row<'_>| {
            Ok(MovedAgent { key: row.get(0)?, id: agent_id_of(row, 1)?, head: sequence_of(row, 2)? })
        };
        let agent = agent(row).map_err(failed)?;
        let before = outlet.done;
        read(db, agent, outlet)?;
        outlet.done = before + agent.head.0;
    }
    Ok(())
}

/// The journal must be complete.
fn read_journal(db: &Connection, agent: MovedAgent, outlet: &mut Outlet<'_>) -> Result<(), ReadFailure> {
    let failed = |error| MoveError::reading(format!("agent {}", agent.id), error);
    let before = outlet.done;
    let mut statement = db.prepare_cached(BATCHES).map_err(store_error).map_err(failed)?;
    let mut rows =
        statement.query(named_params! { ":agent": agent.key }).map_err(store_error).map_err(failed)?;
    let mut last = Sequence::START;
    while let Some(row) = rows.next().map_err(store_error).map_err(failed)? {
        let batch = batch_of(row, agent.key).map_err(failed)?;
        if batch.range.first != last.next() {
            let first = batch.range.first;
            let error = StoreError::Corrupt(format!("batch {first}: the events before it are missing"));
            return Err(failed(error).into());
        }
        last = batch.range.last;
        add_batch(&mut outlet.rows, &batch).map_err(failed)?;
        outlet.done = before + last.0;
        outlet.after_row()?;
    }
    if last != agent.head {
        let error = StoreError::Corrupt(format!("the journal ends at {last}, not at {}", agent.head));
        return Err(failed(error).into());
    }
    Ok(())
}

fn add_batch(rows: &mut CopyRows, batch: &StoredBatch) -> Result<(), StoreError> {
    let StoredBatch { range, codec, payload, checksum } = batch;
    let what = || format!("batch {}", range.first);
    let checksum = range.checksum(*codec, payload).checked(*checksum, what)?;
    let known = Codec::from_number(*codec)
        .ok_or_else(|| StoreError::Corrupt(format!("{}: unknown codec", what())))?;
    rows.row(BATCH_COLUMNS.len());
    rows.bigint(range.agent);
    rows.bigint(range.first.0 as i64);
    rows.bigint(range.last.0 as i64);
    rows.int(plain::int(range.turn.0.into())?);
    rows.smallint(known as i16);
    rows.bigint(checksum.into());
    rows.bytes(payload);
    Ok(())
}

fn read_messages(db: &Connection, agent: MovedAgent, outlet: &mut Outlet<'_>) -> Result<(), ReadFailure> {
    let failed = |error| MoveError::reading(format!("agent {}", agent.id), error);
    let before = outlet.done;
    let sql = format!(
        "SELECT {}, id, role FROM agent_messages WHERE agent_id = :id ORDER BY sequence_number",
        message_row::COLUMNS
    );
    let mut statement = db.prepare_cached(&sql).map_err(store_error).map_err(failed)?;
    let id = agent.id.to_string();
    let mut rows = statement.query(named_params! { ":id": id }).map_err(store_error).map_err(failed)?;
    while let Some(row) = rows.next().map_err(store_error).map_err(failed)? {
        let sequence = add_message(&mut outlet.rows, agent.key, row).map_err(failed)?;
        outlet.done = before + sequence.0;
        outlet.after_row()?;
    }
    Ok(())
}

/// Adds a row of [`message_row::COLUMNS`], followed by its id and role. Returns its number.
fn add_message(rows: &mut CopyRows, agent: i64, row: &Row<'_>) -> Result<Sequence, StoreError> {
    let stored = stored_of(row)?;
    let (at, checksum) = stored.time_and_checksum()?;
    let id: String = row.get(9).map_err(store_error)?;
    let role: Option<String> = row.get(10).map_err(store_error)?;
    let id = Uuid::try_parse(&id).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    rows.row(MESSAGE_COLUMNS.len());
    rows.bigint(agent);
    rows.bigint(stored.sequence.0 as i64);
    rows.uuid(id);
    match stored.first_sequence {
        Some(first) => rows.bigint(first.0 as i64),
        None => rows.null(),
    }
    rows.bytes(stored.kind.as_bytes());
    maybe_bytes(rows, role.as_deref().map(str::as_bytes));
    rows.bytes(stored.content.as_bytes());
    maybe_bytes(rows, stored.raw.as_deref());
    rows.bytes(stored.metadata.as_bytes());
    rows.bigint(at.0);
    rows.bigint(checksum.into());
    Ok(stored.sequence)
}

fn maybe_bytes(rows: &mut CopyRows, value: Option<&[u8]>) {
    match value {
        Some(value) => rows.bytes(value),
        None => rows.null(),
    }
}
