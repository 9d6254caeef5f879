//! A queued turn that a failover may lose.

use async_trait::async_trait;
use tokenrail_domain::{AgentId, Sequence, Turn, TurnNumber};
use tokenrail_ports::{Idempotency, NewTurn, StoreError};
use uuid::Uuid;

use crate::postgres::command::{KeptChange, Redone};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::append::wait_again;
use crate::postgres::statements::columns::{column, int};
use crate::postgres::statements::heads::lock_known;
use crate::postgres::statements::new_turn::{FirstTimeline, add_turn};
use crate::postgres::statements::seen::note_repeated_turn;
use crate::postgres::statements::{idempotency, prompt_images};

/// Whether the turn with this number is this one. It has no id if an older program has queued it, or if its node has
/// repeated its start after a failover.
const IS_IT: &str = "
    SELECT coalesce(command = $5, prompt = $3 AND asked_at = $4)
    FROM turns
    WHERE agent = $1 AND number = $2";

/// Another node may have repeated that the agent was deleted, before this turn was there.
const CANCEL_IF_DELETED: &str = "
    UPDATE turns
    SET stop = 'cancelled'
    WHERE agent = $1 AND number = $2 AND stop IS NULL
        AND EXISTS (SELECT FROM agents WHERE key = $1 AND deleted_at IS NOT NULL)";

/// A turn that was queued under this number. The number was told to a client, so it must not be that of another prompt.
pub(crate) struct KeptTurn {
    pub(crate) turn: NewTurn,
    pub(crate) number: TurnNumber,
    /// With how many turns waited, this one included.
    pub(crate) key: Option<(Idempotency, u32)>,
    /// The id of the message.
    pub(crate) id: Uuid,
    pub(crate) first: FirstTimeline,
}

impl KeptTurn {
    /// Whether its client has sent it again with its key, to a node that did not find it. Then it is there, as another
    /// turn or with another id, and the client was told that one.
    async fn was_sent_again(&self, db: &Link) -> Result<bool, QueryFailure> {
        let Some((key, _)) = &self.key else { return Ok(false) };
        let recalled = idempotency::recall(db, key).await?;
        Ok(recalled.is_some_and(|found| found.same_body && found.agent == self.turn.turn().agent))
    }
}

#[async_trait]
impl KeptChange for KeptTurn {
    fn agent(&self) -> Option<AgentId> {
        Some(self.turn.turn().agent)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.turn.bytes()
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        let turn = self.turn.turn();
        let agent = lock_known(db, turn.agent).await?;
        let redone = match is_there(db, agent, turn, (self.number, self.id)).await? {
            Some(true) => Redone::There,
            _ if self.was_sent_again(db).await? => return Ok(Redone::There),
            Some(false) => return Err(StoreError::Conflict { head: Sequence::START }.into()),
            None => {
                let turn = Turn { run: self.number, ..turn.clone() };
                add_turn(db, agent, &turn, (self.number, Some(self.id)), &self.first).await?;
                note_repeated_turn(db, agent).await?;
                db.run(CANCEL_IF_DELETED, &[&agent, &int(self.number.0)]).await?;
                wait_again(db, agent).await?;
                Redone::Again
            }
        };
        // The node of the agent may have repeated the start of the turn, without these.
        if let Some((position, _)) = self.turn.images().next()
            && prompt_images::one(db, turn.agent.turn(self.number), position).await?.is_none()
        {
            prompt_images::add(db, agent, self.number, self.turn.images()).await?;
        }
        if let Some((key, queued)) = &self.key {
            match idempotency::remember(db, Some(key), agent, (self.number, *queued)).await {
                // It is there, or was used for something else by a command that did not find it.
                Err(QueryFailure::Again) => {}
                remembered => remembered?,
            }
        }
        Ok(redone)
    }
}

/// Whether the turn with this number is the one of this message. `None` if there is none.
pub(crate) async fn is_there(
    db: &Link,
    agent: i64,
    turn: &Turn,
    (number, id): (TurnNumber, Uuid),
) -> Result<Option<bool>, QueryFailure> {
    let row =
        db.row(IS_IT, &[&agent, &int(number.0), &turn.prompt.as_bytes(), &turn.asked_at.0, &id]).await?;
    Ok(row.as_ref().map(|row| column(row, 0)).transpose()?)
}
