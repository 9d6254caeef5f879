//! The rows of `agent_messages`. All JSON names of the database are in this module.
//!
//! A row holds its whole event, so that history can be read without unpacking the journal.

mod content;
mod metadata;

use bytes::Bytes;
use tokenrail_domain::{AgentId, Event, EventBody, Sequence, Timestamp, TurnNumber, event_id};
use tokenrail_ports::StoreError;

use self::metadata::RowMetadata;
use super::checksum::Checksum;
use super::iso;

/// One event that is not a delta, as it is written.
pub(crate) struct MessageRow {
    pub(crate) id: String,
    pub(crate) sequence: Sequence,
    pub(crate) first_sequence: Option<Sequence>,
    pub(crate) kind: &'static str,
    pub(crate) role: Option<&'static str>,
    pub(crate) content: String,
    pub(crate) raw: Option<Bytes>,
    pub(crate) metadata: String,
    /// The time of the event, and the same as text.
    pub(crate) at: Timestamp,
    pub(crate) created_at: String,
    pub(crate) checksum: u32,
}

/// The rows of a batch.
///
/// # Errors
/// [`StoreError::Corrupt`] if a field of an event that must be JSON is not.
pub(crate) fn rows_of(agent: AgentId, events: &[Event]) -> Result<Vec<MessageRow>, StoreError> {
    events.iter().filter(|event| !event.body.is_delta()).map(|event| row_of(agent, event)).collect()
}

fn row_of(agent: AgentId, event: &Event) -> Result<MessageRow, StoreError> {
    let (kind, role) = kind_and_role(&event.body);
    let not_json =
        |error: serde_json::Error| StoreError::Corrupt(format!("event {}: {error}", event.sequence));
    let content = content::write(&event.body).map_err(not_json)?;
    let metadata =
        RowMetadata::of(event).and_then(|metadata| serde_json::to_string(&metadata)).map_err(not_json)?;
    let first_sequence = match &event.body {
        EventBody::Message(message) => message.first_sequence,
        _ => None,
    };
    let created_at = iso::format(event.at);
    let checksum = checksum_of(&Columns {
        agent: &agent.to_string(),
        sequence: event.sequence,
        first_sequence,
        kind,
        content: &content,
        raw: event.raw.as_deref(),
        metadata: &metadata,
        created_at: &created_at,
    });
    Ok(MessageRow {
        id: event_id(agent, event).to_string(),
        sequence: event.sequence,
        first_sequence,
        kind,
        role,
        content,
        raw: event.raw.clone(),
        metadata,
        at: event.at,
        created_at,
        checksum: checksum.sum(),
    })
}

/// The columns that a row's checksum covers.
struct Columns<'a> {
    agent: &'a str,
    sequence: Sequence,
    first_sequence: Option<Sequence>,
    kind: &'a str,
    content: &'a str,
    raw: Option<&'a [u8]>,
    metadata: &'a str,
    created_at: &'a str,
}

fn checksum_of(columns: &Columns<'_>) -> Checksum {
    let Columns { agent, sequence, first_sequence, kind, content, raw, metadata, created_at } = columns;
    let numbers = Checksum::new().number(sequence.0 as i64);
    let numbers = numbers.number(first_sequence.map_or(0, |first| first.0 as i64));
    let texts = numbers.bytes(agent.as_bytes()).bytes(kind.as_bytes()).bytes(content.as_bytes());
    texts.maybe(*raw).bytes(metadata.as_bytes()).bytes(created_at.as_bytes())
}

/// A row as a database returns it.
pub(crate) struct StoredRow {
    pub(crate) agent: String,
    pub(crate) sequence: Sequence,
    pub(crate) first_sequence: Option<Sequence>,
    pub(crate) kind: String,
    pub(crate) content: String,
    pub(crate) raw: Option<Bytes>,
    pub(crate) metadata: String,
    pub(crate) created_at: String,
    /// `None` in rows of early versions.
    pub(crate) checksum: Option<u32>,
}

impl StoredRow {
    /// The row's time and checksum, for a copy in another database. That database may store the time as a number.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the stored checksum differs, or the time is not one that was written here.
    pub(crate) fn time_and_checksum(&self) -> Result<(Timestamp, u32), StoreError> {
        let sequence = self.sequence;
        let sum = checksum_of(&self.columns()).checked(self.checksum, || format!("message {sequence}"))?;
        let at = iso::parse(&self.created_at).filter(|at| iso::format(*at) == self.created_at);
        let broken = || StoreError::Corrupt(format!("message {sequence}: created_at is not a valid time"));
        Ok((at.ok_or_else(broken)?, sum))
    }

    fn columns(&self) -> Columns<'_> {
        let Self { agent, sequence, first_sequence, kind, content, raw, metadata, created_at, checksum: _ } =
            self;
        Columns {
            agent,
            sequence: *sequence,
            first_sequence: *first_sequence,
            kind,
            content,
            raw: raw.as_deref(),
            metadata,
            created_at,
        }
    }

    /// Reads the event back.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the checksum differs, or a column is not one that was written here.
    pub(crate) fn into_event(self) -> Result<Event, StoreError> {
        let sequence = self.sequence;
        checksum_of(&self.columns()).check(self.checksum, || format!("message {sequence}"))?;
        let Self {
            agent: _,
            sequence: _,
            first_sequence,
            kind,
            content,
            raw,
            metadata,
            created_at,
            checksum: _,
        } = self;
        let broken = |what: &str| StoreError::Corrupt(format!("message {sequence}: {what}"));
        let at = iso::parse(&created_at).ok_or_else(|| broken("created_at is not a valid time"))?;
        let metadata: RowMetadata =
            serde_json::from_str(&metadata).map_err(|error| broken(&error.to_string()))?;
        let turn = TurnNumber(metadata.turn);
        let body =
            metadata.into_body(&kind, content, first_sequence).map_err(|error| broken(&error.to_string()))?;
        Ok(Event { sequence, at, turn, body, raw })
    }
}

/// The message that a row closes, by completing or by abandoning it.
pub(crate) fn closed_message(metadata: &str) -> Result<Option<(TurnNumber, u32)>, StoreError> {
    let metadata: RowMetadata =
        serde_json::from_str(metadata).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(metadata.closed().map(|message| (TurnNumber(metadata.turn), message)))
}

/// Why the agent's message stopped, if the row says so. Metadata that cannot be read says nothing.
pub(crate) fn stop_reason(metadata: &str) -> Option<String> {
    let metadata: RowMetadata = serde_json::from_str(metadata).ok()?;
    let reason = metadata.stop_reason()?;
    Some(reason.chars().take(STOP_REASON_CHARS).collect())
}

/// How much of such a reason lists show.
const STOP_REASON_CHARS: usize = 64;

/// The values of the columns `type` and `role`.
fn kind_and_role(body: &EventBody) -> (&'static str, Option<&'static str>) {
    match body {
        EventBody::UserMessage { .. } | EventBody::ToolResult(_) => ("user", Some("user")),
        EventBody::TextDelta { .. }
        | EventBody::ReasoningDelta { .. }
        | EventBody::ToolInputDelta { .. }
        | EventBody::Message(_) => ("assistant", Some("assistant")),
        EventBody::ToolCall(_) => ("tool", None),
        EventBody::Usage(_) | EventBody::Notice(_) | EventBody::Abandoned { .. } => ("system", None),
        EventBody::Error(_) => ("error", None),
        EventBody::TurnResult(_) => ("response", None),
    }
}
