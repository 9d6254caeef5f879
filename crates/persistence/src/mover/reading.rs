//! Reads everything in the data folder, page by page, as a server reads it.

use rusqlite::Connection;
use tokenrail_domain::{
    Agent, AgentId, Copied, Event, ImageFile, ListedTurn, Sequence, Timestamp, TurnNumber,
};
use tokenrail_ports::{ListBounds, ListPage, MessagePage, PageLimit, StoreError, TurnRange};
use tokio::sync::mpsc::Sender;

use super::error::MoveError;
use super::tables::ReadFailure;
use crate::sqlite::error::store_error;
use crate::sqlite::statements::columns::agent_id_of;
use crate::sqlite::statements::{agents, journal, messages, prompt_images, turns};

/// A page of events or messages.
pub(super) const PAGE: PageLimit = PageLimit { events: 4096, bytes: 4 << 20 };

/// A page of turns, with whole prompts.
pub(super) const TURNS: ListBounds = ListBounds { bytes: 1 << 20, field_bytes: usize::MAX };

const TURNS_MAX: usize = 256;

/// Keys, or ids of purged agents, that are compared at once.
pub(super) const ROWS: usize = 256;

const AGENTS: &str = "SELECT key, id FROM agents ORDER BY key";

const KEYS: &str = "
    SELECT scope, key, body, agent, turn, queued, used_at
    FROM idempotency
    ORDER BY scope, key";

const PURGED: &str = "SELECT id, purged_at FROM tombstones ORDER BY id";

/// Data that the move compares, piece by piece.
pub(super) enum StorePart {
    OfAgent(AgentId, AgentPart),
    /// In the order of scope and key.
    Keys(Vec<KeyRow>),
    /// In the order of their ids.
    Purged(Vec<(AgentId, Timestamp)>),
}

/// A part of one agent.
pub(super) enum AgentPart {
    Agent(Option<Box<Agent>>),
    Turns { range: TurnRange, page: ListPage<ListedTurn> },
    Image { turn: TurnNumber, position: u32, image: Option<ImageFile> },
    Events { after: Sequence, page: Vec<Event> },
    Messages { after: Sequence, page: MessagePage },
}

/// A row of `idempotency`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyRow {
    pub(super) scope: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// The agent's key in the database.
    pub(super) agent: i64,
    pub(super) turn: i64,
    pub(super) queued: i64,
    pub(super) used_at: i64,
}

/// Reads everything. Blocks while nobody takes it.
pub(super) fn read_all(db: &Connection, to: &Sender<StorePart>) -> Result<(), ReadFailure> {
    let failed = |error| MoveError::reading("the list of agents", store_error(error));
    let mut statement = db.prepare(AGENTS).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let (key, id) = (row.get(0).map_err(failed)?, agent_id_of(row, 1).map_err(failed)?);
        let mut reader = AgentReader { db, key, id, to };
        reader.read()?;
    }
    read_keys(db, to)?;
    read_purged(db, to)
}

struct AgentReader<'a> {
    db: &'a Connection,
    key: i64,
    id: AgentId,
    to: &'a Sender<StorePart>,
}

impl AgentReader<'_> {
    fn read(&mut self) -> Result<(), ReadFailure> {
        let agent = self.got(agents::get(self.db, self.id))?;
        let shows_others_images =
            agent.as_ref().is_some_and(|agent| matches!(agent.copy, Some(Copied::Replay(_))));
        self.pass_on(AgentPart::Agent(agent.map(Box::new)))?;
        let mut range = TurnRange { limit: TURNS_MAX, ..TurnRange::default() };
        loop {
            let page = self.got(turns::list(self.db, self.id, &range, TURNS))?;
            let (last, more) = (page.items.last().map(|listed| listed.turn.number), page.more);
            let images: Vec<(TurnNumber, u32)> = page
                .items
                .iter()
                .filter(|_| !shows_others_images)
                .flat_map(|listed| (0..listed.turn.images.len() as u32).map(|at| (listed.turn.number, at)))
                .collect();
            self.pass_on(AgentPart::Turns { range, page })?;
            for (turn, position) in images {
                let image = self.got(prompt_images::one(self.db, self.id.turn(turn), position))?;
                self.pass_on(AgentPart::Image { turn, position, image })?;
            }
            match last {
                Some(last) if more => range.after = last,
                _ => break,
            }
        }
        self.read_events()?;
        self.read_messages()
    }

    fn read_events(&self) -> Result<(), ReadFailure> {
        let mut after = Sequence::START;
        loop {
            let page = self.got(journal::events_after(self.db, self.key, after, PAGE))?;
            let last = page.last().map(|event| event.sequence);
            self.pass_on(AgentPart::Events { after, page })?;
            let Some(last) = last else { return Ok(()) };
            after = last;
        }
    }

    fn read_messages(&self) -> Result<(), ReadFailure> {
        let mut after = Sequence::START;
        loop {
            let page = self.got(messages::page(self.db, self.id, after, PAGE))?;
            let (up_to, head) = (page.up_to, page.head);
            self.pass_on(AgentPart::Messages { after, page })?;
            if head <= up_to || up_to <= after {
                return Ok(());
            }
            after = up_to;
        }
    }

    fn got<T>(&self, read: Result<T, StoreError>) -> Result<T, ReadFailure> {
        Ok(read.map_err(|error| MoveError::reading(format!("agent {}", self.id), error))?)
    }

    fn pass_on(&self, part: AgentPart) -> Result<(), ReadFailure> {
        pass_on(self.to, StorePart::OfAgent(self.id, part))
    }
}

fn pass_on(to: &Sender<StorePart>, part: StorePart) -> Result<(), ReadFailure> {
    to.blocking_send(part).map_err(|_| ReadFailure::NotWanted)
}

fn read_keys(db: &Connection, to: &Sender<StorePart>) -> Result<(), ReadFailure> {
    let failed = |error| MoveError::reading("the idempotency keys", store_error(error));
    let mut statement = db.prepare(KEYS).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let text = |at| -> rusqlite::Result<Vec<u8>> { Ok(row.get_ref(at)?.as_bytes()?.to_vec()) };
        let key = || -> rusqlite::Result<KeyRow> {
            Ok(KeyRow {
                scope: text(0)?,
                key: text(1)?,
                body: text(2)?,
                agent: row.get(3)?,
                turn: row.get(4)?,
                queued: row.get(5)?,
                used_at: row.get(6)?,
            })
        };
        keys.push(key().map_err(failed)?);
        if keys.len() == ROWS {
            pass_on(to, StorePart::Keys(std::mem::take(&mut keys)))?;
        }
    }
    pass_on(to, StorePart::Keys(keys))
}

fn read_purged(db: &Connection, to: &Sender<StorePart>) -> Result<(), ReadFailure> {
    let failed = |error| MoveError::reading("the ids of purged agents", store_error(error));
    let mut statement = db.prepare(PURGED).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    let mut purged = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let read = || -> rusqlite::Result<_> { Ok((agent_id_of(row, 0)?, Timestamp(row.get(1)?))) };
        purged.push(read().map_err(failed)?);
        if purged.len() == ROWS {
            pass_on(to, StorePart::Purged(std::mem::take(&mut purged)))?;
        }
    }
    pass_on(to, StorePart::Purged(purged))
}
