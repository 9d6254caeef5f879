//! Examines a database without changing it.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::{Connection, named_params};
use tokenrail_domain::{AgentId, Event, EventBody, MessageOrdinal, Sequence};
use tokenrail_ports::StoreError;
use tokenrail_ports::rules::Flow;

use crate::sqlite::config::SqliteLimits;
use crate::sqlite::database::connection::open_reader;
use crate::sqlite::database::folder::database_path;
use crate::sqlite::database::schema::missing;
use crate::sqlite::error::OpenError;
use crate::sqlite::error::store_error;
use crate::sqlite::statements::columns::{agent_id_of, sequence_of, turn_of};
use crate::sqlite::statements::journal::for_each_between;
use crate::sqlite::statements::{message_row, prompt_images};

/// The rules that are checked by SQL.
const INVARIANTS: &str = include_str!("invariants.sql");

const AGENTS: &str = "
    SELECT agents.key, agents.id, heads.head
    FROM agents
    JOIN heads ON heads.agent = agents.key";

const IMAGES: &str = "
    SELECT agents.id, prompt_images.turn, prompt_images.position
    FROM prompt_images
    JOIN agents ON agents.key = prompt_images.agent";

/// The result of an examination.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SqliteDiagnosis {
    pub agents: u64,
    pub events: u64,
    /// Empty if the database is sound.
    pub faults: Vec<Fault>,
}

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The rule.
    pub rule: String,
    /// The agent, if it concerns one.
    pub agent: Option<String>,
    pub detail: String,
}

/// Examines the database in `folder`: its pages, its rules, every event and every image. A running server is not
/// disturbed. Blocks until everything has been read.
///
/// # Errors
/// [`OpenError`] as for a start, and [`OpenError::OlderSchema`], which a start would fix.
pub fn sqlite_doctor(folder: &Path) -> Result<SqliteDiagnosis, OpenError> {
    let path = database_path(folder);
    let failed = |error| OpenError::sqlite(&path, error);
    std::fs::metadata(&path).map_err(|error| OpenError::io(&path, error))?;
    let mut db = open_reader(&path, SqliteLimits::default().busy_timeout_ms).map_err(failed)?;
    let db = db.transaction().map_err(failed)?;
    match missing(&db, &path)?.len() {
        0 => {}
        missing => return Err(OpenError::OlderSchema { missing }),
    }
    let mut diagnosis = SqliteDiagnosis::default();
    diagnosis.examine_pages(&db).map_err(failed)?;
    if diagnosis.faults.is_empty() {
        diagnosis.examine_rules(&db).map_err(failed)?;
        diagnosis.examine_events(&db).map_err(failed)?;
        diagnosis.examine_images(&db).map_err(failed)?;
    }
    Ok(diagnosis)
}

impl SqliteDiagnosis {
    fn examine_pages(&mut self, db: &Connection) -> rusqlite::Result<()> {
        for pragma in ["integrity_check", "foreign_key_check"] {
            db.pragma_query(None, pragma, |row| {
                let detail = row.get_ref(0)?.as_str()?.to_owned();
                if detail != "ok" {
                    self.faults.push(Fault { rule: pragma.to_owned(), agent: None, detail });
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn examine_rules(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let mut statement = db.prepare(INVARIANTS)?;
        let faults = statement
            .query_map([], |row| Ok(Fault { rule: row.get(0)?, agent: row.get(1)?, detail: row.get(2)? }))?;
        for fault in faults {
            self.faults.push(fault?);
        }
        Ok(())
    }

    /// Reads every event: each batch must unpack, and the row of each message must equal it.
    fn examine_events(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let mut statement = db.prepare(AGENTS)?;
        let agents = statement
            .query_map([], |row| Ok((row.get::<_, i64>(0)?, agent_id_of(row, 1)?, sequence_of(row, 2)?)))?;
        for agent in agents {
            let (key, id, head) = agent?;
            self.agents += 1;
            if let Err(error) = self.examine_journal(db, key, id, head) {
                let rule = "every event is readable and matches its row".to_owned();
                self.faults.push(Fault { rule, agent: Some(id.to_string()), detail: error.to_string() });
            }
        }
        Ok(())
    }

    /// Reads every image: its checksum must match.
    fn examine_images(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let mut statement = db.prepare(IMAGES)?;
        let images = statement
            .query_map([], |row| Ok((agent_id_of(row, 0)?, turn_of(row, 1)?, row.get::<_, u32>(2)?)))?;
        for image in images {
            let (id, turn, position) = image?;
            if let Err(error) = prompt_images::one(db, id.turn(turn), position) {
                let rule = "every image is readable".to_owned();
                self.faults.push(Fault { rule, agent: Some(id.to_string()), detail: error.to_string() });
            }
        }
        Ok(())
    }

    fn examine_journal(
        &mut self,
        db: &Connection,
        key: i64,
        id: AgentId,
        head: Sequence,
    ) -> Result<(), StoreError> {
        let sql = format!(
            "SELECT {} FROM agent_messages WHERE agent_id = :id ORDER BY sequence_number",
            message_row::COLUMNS
        );
        let mut statement = db.prepare_cached(&sql).map_err(store_error)?;
        let mut found = statement.query(named_params! { ":id": id.to_string() }).map_err(store_error)?;
        let mut next_row = || -> Result<Option<Event>, StoreError> {
            found.next().map_err(store_error)?.map(message_row::event_of).transpose()
        };
        let mut events = 0;
        let mut problem = Ok(());
        let mut open = OpenMessages::default();
        for_each_between(db, key, (Sequence(1), head), |event| {
            events += 1;
            problem = open.see(&event);
            if problem.is_ok() && !event.body.is_delta() {
                problem = next_row().and_then(|row| same(&event, row.as_ref()));
            }
            if problem.is_ok() { Flow::More } else { Flow::Enough }
        })?;
        self.events += events;
        problem?;
        if events != head.0 {
            return Err(StoreError::Corrupt(format!(
                "{events} events, but the latest sequence number is {head}"
            )));
        }
        match next_row()? {
            None => Ok(()),
            Some(row) => Err(StoreError::Corrupt(format!("message {}: no such event", row.sequence))),
        }
    }
}

/// The open messages.
#[derive(Default)]
struct OpenMessages(BTreeSet<MessageOrdinal>);

impl OpenMessages {
    fn see(&mut self, event: &Event) -> Result<(), StoreError> {
        match &event.body {
            EventBody::Message(message) => drop(self.0.remove(&message.message)),
            EventBody::Abandoned { message } => drop(self.0.remove(message)),
            EventBody::TurnResult(_) if !self.0.is_empty() => {
                let text = format!("result {}: a message was never ended", event.sequence);
                return Err(StoreError::Corrupt(text));
            }
            body => self.0.extend(body.delta_of()),
        }
        Ok(())
    }
}

fn same(event: &Event, row: Option<&Event>) -> Result<(), StoreError> {
    if row == Some(event) {
        return Ok(());
    }
    Err(StoreError::Corrupt(format!("message {}: its row differs from the journal", event.sequence)))
}
