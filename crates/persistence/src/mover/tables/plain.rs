//! Tables whose rows are copied column by column.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use tokenrail_ports::StoreError;
use uuid::Uuid;

use super::{Outlet, ReadFailure};
use crate::mover::copy_rows::CopyRows;
use crate::mover::error::MoveError;
use crate::sqlite::error::store_error;

/// The type of a column in PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bigint,
    Int,
    Boolean,
    Double,
    /// A text or a blob of SQLite, for a column of bytes or text.
    Bytes,
    Uuid,
}

/// A column of PostgreSQL, and its value in SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Column {
    name: &'static str,
    value: &'static str,
    kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::mover) struct PlainTable {
    pub(super) name: &'static str,
    columns: &'static [Column],
    order: &'static str,
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, value: name, kind }
}

pub(super) static AGENTS: PlainTable = PlainTable {
    name: "agents",
    columns: &[
        column("key", Kind::Bigint),
        column("id", Kind::Uuid),
        column("type", Kind::Bytes),
        column("name", Kind::Bytes),
        column("chat", Kind::Bytes),
        column("status", Kind::Bytes),
        column("prompt", Kind::Bytes),
        column("model", Kind::Bytes),
        column("cwd", Kind::Bytes),
        column("session_id", Kind::Bytes),
        column("created_at", Kind::Bigint),
        column("ended_at", Kind::Bigint),
        column("deleted_at", Kind::Bigint),
        column("to_purge", Kind::Boolean),
        column("error_class", Kind::Bytes),
        column("error_code", Kind::Bytes),
        column("error_text", Kind::Bytes),
        column("error_retry_after_ms", Kind::Bigint),
        column("error_recoverable", Kind::Boolean),
        column("usage", Kind::Bytes),
        column("cost_usd", Kind::Double),
        column("metadata", Kind::Bytes),
        column("options", Kind::Bytes),
        column("cancel_on_disconnect", Kind::Boolean),
        column("copy", Kind::Bytes),
        column("replay_of", Kind::Uuid),
        column("replay_until", Kind::Bigint),
        column("replay_speed", Kind::Double),
        column("pinned", Kind::Boolean),
        column("archived", Kind::Boolean),
        column("launched_by", Kind::Uuid),
        column("launch_depth", Kind::Int),
    ],
    order: "key",
};

/// The next server continues the turns that are open: it owns their agents. What an earlier server still wants to
/// append has a lower epoch.
pub(super) static HEADS: PlainTable = PlainTable {
    name: "heads",
    columns: &[
        column("agent", Kind::Bigint),
        column("head", Kind::Bigint),
        column("open_from", Kind::Bigint),
        column("turn", Kind::Int),
        column("running", Kind::Boolean),
        column("spool_offset", Kind::Bigint),
        column("updated_at", Kind::Bigint),
        Column {
            name: "owner",
            value: "(SELECT 1 FROM turns WHERE turns.agent = heads.agent AND state <> 'ended' LIMIT 1)",
            kind: Kind::Bigint,
        },
        Column { name: "epoch", value: "epoch + 1", kind: Kind::Bigint },
    ],
    order: "agent",
};

pub(super) static TURNS: PlainTable = PlainTable {
    name: "turns",
    columns: &[
        column("key", Kind::Bigint),
        column("agent", Kind::Bigint),
        column("number", Kind::Int),
        column("run", Kind::Int),
        column("prompt", Kind::Bytes),
        column("images", Kind::Bytes),
        column("state", Kind::Bytes),
        column("outcome", Kind::Bytes),
        column("stop", Kind::Bytes),
        column("asked_at", Kind::Bigint),
        column("first_sequence", Kind::Bigint),
        column("last_sequence", Kind::Bigint),
        column("spool_offset", Kind::Bigint),
        column("compacted", Kind::Boolean),
        column("ended_at", Kind::Bigint),
        column("stop_reason", Kind::Bytes),
        column("base_commit", Kind::Bytes),
    ],
    order: "key",
};

pub(super) static PROMPT_IMAGES: PlainTable = PlainTable {
    name: "prompt_images",
    columns: &[
        column("agent", Kind::Bigint),
        column("turn", Kind::Int),
        column("position", Kind::Int),
        column("media_type", Kind::Bytes),
        column("data", Kind::Bytes),
        column("checksum", Kind::Bigint),
    ],
    order: "agent, turn, position",
};

pub(super) static TOMBSTONES: PlainTable = PlainTable {
    name: "tombstones",
    columns: &[column("id", Kind::Uuid), column("purged_at", Kind::Bigint)],
    order: "id",
};

pub(super) static IDEMPOTENCY: PlainTable = PlainTable {
    name: "idempotency",
    columns: &[
        column("scope", Kind::Bytes),
        column("key", Kind::Bytes),
        column("body", Kind::Bytes),
        column("agent", Kind::Bigint),
        column("turn", Kind::Int),
        column("queued", Kind::Int),
        column("used_at", Kind::Bigint),
    ],
    order: "scope, key",
};

impl PlainTable {
    /// The columns of PostgreSQL, in the order of the rows.
    pub(super) fn columns(&self) -> String {
        self.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
    }

    /// Reads all rows.
    pub(super) fn read(&self, db: &Connection, outlet: &mut Outlet<'_>) -> Result<(), ReadFailure> {
        let failed = |error| MoveError::reading(format!("the table {}", self.name), error);
        let values = self.columns.iter().map(|column| column.value).collect::<Vec<_>>().join(", ");
        let sql = format!("SELECT {values} FROM {} ORDER BY {}", self.name, self.order);
        let mut statement = db.prepare(&sql).map_err(store_error).map_err(failed)?;
        let mut rows = statement.query([]).map_err(store_error).map_err(failed)?;
        while let Some(row) = rows.next().map_err(store_error).map_err(failed)? {
            outlet.rows.row(self.columns.len());
            for (at, column) in self.columns.iter().enumerate() {
                add(&mut outlet.rows, row, at, column).map_err(failed)?;
            }
            outlet.after_row()?;
        }
        Ok(())
    }
}

fn add(rows: &mut CopyRows, row: &Row<'_>, at: usize, column: &Column) -> Result<(), StoreError> {
    let value = row.get_ref(at).map_err(store_error)?;
    let broken = || StoreError::Corrupt(format!("{}: not a value of this column", column.name));
    match (column.kind, value) {
        (_, ValueRef::Null) => rows.null(),
        (Kind::Bigint, ValueRef::Integer(number)) => rows.bigint(number),
        (Kind::Int, ValueRef::Integer(number)) => rows.int(int(number)?),
        (Kind::Boolean, ValueRef::Integer(number)) => rows.boolean(number != 0),
        (Kind::Double, ValueRef::Real(number)) => rows.double(number),
        (Kind::Bytes, ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => rows.bytes(bytes),
        (Kind::Uuid, ValueRef::Text(text)) => rows.uuid(Uuid::try_parse_ascii(text).map_err(|_| broken())?),
        _ => return Err(broken()),
    }
    Ok(())
}

pub(super) fn int(number: i64) -> Result<i32, StoreError> {
    i32::try_from(number).map_err(|_| StoreError::Corrupt(format!("the number {number} is too large")))
}
