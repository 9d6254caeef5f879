//! The table `inbox`: what the node of an agent is asked to do, above all permission answers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokenrail_domain::NodeId;
use tokenrail_ports::{LETTER_LIFE_MS, Letter, LetterId, LetterReply, StoreError};
use tokio::time::Instant;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::format::letters;
use crate::postgres::command::{ChangeCommand, KeptChange, Redone};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{agent_id_of, column};

const LETTER_LIFE: Duration = Duration::from_millis(LETTER_LIFE_MS);

const FORGET: &str = "
    DELETE FROM inbox
    WHERE made_at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1";

const PUT: &str = "
    INSERT INTO inbox (id, node, agent, body)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (id) DO NOTHING";

const OPEN: &str = "
    SELECT id, agent, body
    FROM inbox
    WHERE node = $1 AND reply IS NULL AND id <> ALL($2)
    ORDER BY number
    LIMIT $3";

const REPLY: &str = "
    UPDATE inbox
    SET reply = $2
    WHERE id = $1 AND reply IS NULL
    RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::bigint - made_at";

const AGE: &str =
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint - made_at FROM inbox WHERE id = $1";

const REPLY_TO: &str = "SELECT reply FROM inbox WHERE id = $1";

/// Puts a letter into a node's inbox, and removes those that are too old.
pub(crate) struct PutCommand {
    to: NodeId,
    letter: Letter,
    body: Vec<u8>,
    /// Nobody waits for its reply any more from then on.
    pub(crate) until: Instant,
}

impl PutCommand {
    pub(crate) fn new(to: NodeId, letter: Letter) -> Result<Self, StoreError> {
        let body = letters::content_to_bytes(&letter.content)?;
        Ok(Self { to, letter, body, until: Instant::now() + LETTER_LIFE })
    }

    /// Returns how many were put: none if it is there.
    async fn put(&self, db: &Link) -> Result<u64, QueryFailure> {
        let Letter { id, agent, content: _ } = &self.letter;
        Ok(db.run(PUT, &[&uuid_of(*id), &(self.to.0 as i64), &agent.as_uuid(), &self.body]).await?)
    }
}

impl ChangeCommand for PutCommand {
    type Answer = ();

    const IS_REPEATED: bool = true;

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        db.run(FORGET, &[&i64::try_from(LETTER_LIFE_MS).unwrap_or(i64::MAX)]).await?;
        self.put(db).await?;
        Ok(())
    }

    fn kept(self, (): &(), _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        Some(Arc::new(self))
    }
}

#[async_trait]
impl KeptChange for PutCommand {
    fn bytes(&self) -> usize {
        size_of::<Self>() + 2 * self.body.len()
    }

    /// If it is too old, it may have been removed.
    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        if self.until <= Instant::now() {
            return Ok(Redone::There);
        }
        Ok(Redone::of_rows(self.put(db).await?))
    }
}

/// The letters to a node without a reply.
#[derive(Default)]
pub(crate) struct OpenLetters {
    pub(crate) letters: Vec<Letter>,
    pub(crate) unreadable: Vec<LetterId>,
}

/// The letters to a node without a reply, without those that are underway.
pub(crate) async fn open(
    db: &Link,
    node: i64,
    underway: &[LetterId],
    limit: usize,
) -> Result<OpenLetters, QueryFailure> {
    let underway: Vec<Uuid> = underway.iter().copied().map(uuid_of).collect();
    let rows = db.rows(OPEN, &[&node, &underway, &i64::try_from(limit).unwrap_or(i64::MAX)]).await?;
    let mut open = OpenLetters::default();
    for row in &rows {
        let id = LetterId(column::<Uuid>(row, 0)?.into_bytes());
        match letter_of(row, id) {
            Ok(letter) => open.letters.push(letter),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    "cannot read a permission answer from another node; if that node has a newer version, upgrade \
                     this node"
                );
                open.unreadable.push(id);
            }
        }
    }
    Ok(open)
}

fn letter_of(row: &Row, id: LetterId) -> Result<Letter, StoreError> {
    Ok(Letter { id, agent: agent_id_of(row, 1)?, content: letters::content_of_bytes(column(row, 2)?)? })
}

/// Replies to a letter, if nobody has.
pub(crate) struct ReplyCommand {
    letter: LetterId,
    reply: Vec<u8>,
}

impl ReplyCommand {
    pub(crate) fn new(letter: LetterId, reply: LetterReply) -> Result<Self, StoreError> {
        Ok(Self { letter, reply: letters::reply_to_bytes(reply)? })
    }
}

impl ReplyCommand {
    /// Returns how old the letter is. `None` if there is no such letter, or if it has a reply.
    async fn reply(&self, db: &Link) -> Result<Option<Duration>, QueryFailure> {
        age_in(db.row(REPLY, &[&uuid_of(self.letter), &self.reply]).await?.as_ref())
    }
}

fn age_in(row: Option<&Row>) -> Result<Option<Duration>, QueryFailure> {
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Duration::from_millis(column::<i64>(row, 0)?.try_into().unwrap_or_default())))
}

impl ChangeCommand for ReplyCommand {
    type Answer = Option<Duration>;

    /// If the letter has a reply already, that may be this one: the outcome of the first attempt may have been unknown.
    async fn run(&self, db: &Link) -> Result<Option<Duration>, QueryFailure> {
        match self.reply(db).await? {
            None => age_in(db.row(AGE, &[&uuid_of(self.letter)]).await?.as_ref()),
            age => Ok(age),
        }
    }

    fn kept(self, age: &Option<Duration>, _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        let until = Instant::now() + LETTER_LIFE.saturating_sub((*age)?);
        Some(Arc::new(KeptReply { command: self, until }))
    }
}

/// A reply, for the case that a failover loses it.
struct KeptReply {
    command: ReplyCommand,
    /// The letter is removed from then on.
    until: Instant,
}

#[async_trait]
impl KeptChange for KeptReply {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.command.reply.len()
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        if self.command.reply(db).await?.is_some() {
            return Ok(Redone::Again);
        }
        // The node that has put the letter may not have repeated that yet, unless it was removed.
        let is_over = self.until <= Instant::now()
            || db.row(REPLY_TO, &[&uuid_of(self.command.letter)]).await?.is_some();
        Ok(if is_over { Redone::There } else { Redone::Awaits(Vec::new()) })
    }
}

pub(crate) async fn reply_to(db: &Link, letter: LetterId) -> Result<Option<LetterReply>, QueryFailure> {
    let Some(row) = db.row(REPLY_TO, &[&uuid_of(letter)]).await? else { return Ok(None) };
    Ok(column::<Option<&[u8]>>(&row, 0)?.map(letters::reply_of_bytes).transpose()?)
}

fn uuid_of(letter: LetterId) -> Uuid {
    Uuid::from_bytes(letter.0)
}
