//! What a failover has lost of agents, as far as it is known: how far journals were shown, and of which agents turns
//! were queued once more.

use tokenrail_domain::{AgentId, Sequence};
use uuid::Uuid;

use crate::planted::{PostgresBug, is_planted};
use crate::postgres::command::ChangeCommand;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::membership::JoinedNode;
use crate::postgres::statements::catch_up::note_told;
use crate::postgres::statements::columns::sequence_of;

const NOTE: &str = "
    INSERT INTO seen (agent, head)
    SELECT heads.agent, shown.head
    FROM unnest($1::uuid[], $2::bigint[]) AS shown (id, head)
    JOIN agents ON agents.id = shown.id
    JOIN heads ON heads.agent = agents.key
    WHERE heads.head < shown.head
    ORDER BY heads.agent
    ON CONFLICT (agent) DO UPDATE SET head = greatest(seen.head, excluded.head)";

const SEEN: &str = "
    SELECT seen.head
    FROM seen
    JOIN agents ON agents.key = seen.agent
    WHERE agents.id = $1";

/// No number is reserved by it.
const NOTE_REPEATED_TURN: &str =
    "INSERT INTO seen (agent, head) VALUES ($1, 0) ON CONFLICT (agent) DO NOTHING";

/// Notes that a turn of this agent is queued once more, because a failover has lost it. If the failover has also lost
/// that the turn has begun, nothing else shows it to a program that does not know `turns.queued_on`. The agent is
/// locked.
pub(crate) async fn note_repeated_turn(db: &Link, agent: i64) -> Result<(), QueryFailure> {
    db.run(NOTE_REPEATED_TURN, &[&agent]).await?;
    Ok(())
}

/// Notes how far this node has shown journals. It has said it all then.
pub(crate) struct NoteSeenCommand {
    pub(crate) node: JoinedNode,
    pub(crate) seen: Vec<(AgentId, Sequence)>,
}

impl ChangeCommand for NoteSeenCommand {
    type Answer = ();

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        let (agents, heads): (Vec<Uuid>, Vec<i64>) =
            self.seen.iter().map(|(agent, head)| (agent.as_uuid(), head.0 as i64)).unzip();
        db.run(NOTE, &[&agents, &heads]).await?;
        note_told(db, self.node).await
    }
}

pub(crate) async fn seen(db: &Link, agent: AgentId) -> Result<Sequence, QueryFailure> {
    if is_planted(PostgresBug::TailReused) {
        return Ok(Sequence::START);
    }
    let row = db.row(SEEN, &[&agent.as_uuid()]).await?;
    Ok(row.as_ref().map(|row| sequence_of(row, 0)).transpose()?.unwrap_or(Sequence::START))
}
