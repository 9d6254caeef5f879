//! A row of `agent_messages`, written and read.

use bytes::Bytes;
use tokenrail_domain::{AgentId, Event};
use tokenrail_ports::StoreError;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::format::iso;
use crate::format::rows::{MessageRow, StoredRow};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{
    checksum_of, column, maybe_sequence, sequence_of, text_of, time_of,
};

/// `$1` to `$11` are arrays: see [`MessageColumns`].
pub(super) const ADD_MESSAGES: &str = "
    INSERT INTO agent_messages
        (agent, sequence_number, id, first_sequence, type, role, content, raw, metadata, created_at, checksum)
    SELECT *
    FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bigint[], $5::text[], $6::text[], $7::bytea[],
        $8::bytea[], $9::bytea[], $10::bigint[], $11::bigint[])";

/// The columns that [`event_of`] reads, in its order.
pub(crate) const COLUMNS: &str =
    "sequence_number, first_sequence, content, raw, metadata, created_at, type, checksum";

/// Rows of several agents, column by column, as statements take them.
#[derive(Default)]
pub(crate) struct MessageColumns<'a> {
    agents: Vec<i64>,
    sequences: Vec<i64>,
    ids: Vec<Uuid>,
    first_sequences: Vec<Option<i64>>,
    types: Vec<&'a str>,
    roles: Vec<Option<&'a str>>,
    contents: Vec<&'a [u8]>,
    raws: Vec<Option<&'a [u8]>>,
    metadata: Vec<&'a [u8]>,
    created_at: Vec<i64>,
    checksums: Vec<i64>,
}

impl<'a> MessageColumns<'a> {
    /// Adds the rows of one agent.
    pub(crate) fn add(&mut self, agent: i64, rows: &'a [MessageRow]) -> Result<(), StoreError> {
        for row in rows {
            let id = Uuid::try_parse(&row.id).map_err(|error| StoreError::Corrupt(error.to_string()))?;
            self.agents.push(agent);
            self.sequences.push(row.sequence.0 as i64);
            self.ids.push(id);
            self.first_sequences.push(row.first_sequence.map(|first| first.0 as i64));
            self.types.push(row.kind);
            self.roles.push(row.role);
            self.contents.push(row.content.as_bytes());
            self.raws.push(row.raw.as_deref());
            self.metadata.push(row.metadata.as_bytes());
            self.created_at.push(row.at.0);
            self.checksums.push(i64::from(row.checksum));
        }
        Ok(())
    }

    /// The columns in the order of [`ADD_MESSAGES`].
    pub(crate) fn parameters(&self) -> [&(dyn ToSql + Sync); 11] {
        [
            &self.agents,
            &self.sequences,
            &self.ids,
            &self.first_sequences,
            &self.types,
            &self.roles,
            &self.contents,
            &self.raws,
            &self.metadata,
            &self.created_at,
            &self.checksums,
        ]
    }
}

/// Adds rows of one agent.
pub(crate) async fn add_messages(db: &Link, agent: i64, rows: &[MessageRow]) -> Result<(), QueryFailure> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut columns = MessageColumns::default();
    columns.add(agent, rows)?;
    db.run(ADD_MESSAGES, &columns.parameters()).await?;
    Ok(())
}

/// The event of a row of [`COLUMNS`].
pub(crate) fn event_of(row: &Row, agent: AgentId) -> Result<Event, StoreError> {
    let stored = StoredRow {
        agent: agent.to_string(),
        sequence: sequence_of(row, 0)?,
        first_sequence: maybe_sequence(row, 1)?,
        kind: column(row, 6)?,
        content: text_of(row, 2)?,
        raw: column::<Option<&[u8]>>(row, 3)?.map(Bytes::copy_from_slice),
        metadata: text_of(row, 4)?,
        created_at: iso::format(time_of(row, 5)?),
        checksum: Some(checksum_of(row, 7)?),
    };
    stored.into_event()
}
