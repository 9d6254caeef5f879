//! The table `nodes`: who uses the database, and which of them are alive.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokenrail_domain::NodeId;
use tokenrail_ports::{Node, NodeState, Pulse, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::postgres::command::{ChangeCommand, KeptBeat, KeptChange, NodeFact, Redone};
use crate::postgres::config::{NodeIdentity, PostgresLimits};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::membership::{JoinedNode, TokenDigest, other_token};
use crate::postgres::statements::catch_up::{CatchUpTimes, is_awaited};
use crate::postgres::statements::columns::{column, parsed, texts_of};
use crate::postgres::statements::fence::exclude_former;
use crate::postgres::statements::outdated::refuse_if_outdated;
use crate::postgres::statements::ownership::first_epoch;
use crate::postgres::statements::shared_token::{self, is_shared};

const JOIN_AGAIN: &str = "
    UPDATE nodes
    SET incarnation = incarnation + 1, beat = 0, state = 'alive', name = $2, version = $3, schema = $4,
        healed = $5, told = $5
    WHERE folder = $1
    RETURNING id, incarnation";

/// Not one statement with [`JOIN_AGAIN`], because that would use up a number with each start.
const JOIN_FIRST: &str = "
    INSERT INTO nodes (folder, name, version, schema, incarnation, beat, state, healed, told)
    VALUES ($1, $2, $3, $4, 1, 0, 'alive', $5, $5)
    ON CONFLICT (folder) DO NOTHING
    RETURNING id, incarnation";

/// As `$5`, if nobody else has got this number since.
const REJOIN: &str = "
    INSERT INTO nodes (id, folder, name, version, schema, incarnation, beat, state)
    OVERRIDING SYSTEM VALUE
    VALUES ($5, $1, $2, $3, $6, $4, 0, 'alive')
    ON CONFLICT (folder) DO UPDATE
    SET incarnation = excluded.incarnation, beat = 0, state = 'alive', name = excluded.name,
        version = excluded.version, schema = excluded.schema
    WHERE nodes.incarnation < excluded.incarnation";

/// The next node gets the next number.
const CONTINUE_IDS: &str = "
    SELECT setval(ids, greatest(max(id), nextval(ids)))
    FROM nodes, pg_get_serial_sequence('nodes', 'id') AS ids
    GROUP BY ids";

/// The only statements besides `MOVE_HEADS` that lock several rows of `heads` are this one and [`ADOPT`].
const RAISE_EPOCHS: &str = "UPDATE heads SET epoch = greatest(epoch + 1, $2) WHERE owner = $1";

const HAS_HOMELESS: &str = "SELECT EXISTS (SELECT FROM agents WHERE home IS NULL)";

/// An agent without a home was made by a program that knows no nodes. Its owner, if it has one, is that program. It has
/// written a number of its own, which says nothing about the node of this number.
const ADOPT: &str = "
    WITH adopted AS (
        UPDATE agents
        SET home = $1
        WHERE home IS NULL
        RETURNING key
    )
    UPDATE heads
    SET owner = $1, epoch = greatest(heads.epoch + 1, $2)
    FROM adopted
    WHERE heads.agent = adopted.key AND heads.owner IS NOT NULL";

/// A beat or a leave need not be durable. If a commit waits for a standby that is away, the node is alive nevertheless.
const BEAT_AT_ONCE: &str = "SET LOCAL synchronous_commit = off";

/// All nodes; none if this one is fenced.
const BEAT: &str = "
    WITH own AS (
        UPDATE nodes
        SET beat = beat + 1, healed = greatest(healed, $4)
        WHERE id = $1 AND incarnation = $2 AND folder = $3 AND state = 'alive'
        RETURNING id, name, version, state, incarnation, beat, types
    )
    SELECT * FROM own
    UNION ALL
    SELECT id, name, version, state, incarnation, beat, types
    FROM nodes
    WHERE id <> $1 AND EXISTS (SELECT FROM own)
    ORDER BY id";

const ALL: &str = "SELECT id, name, version, state, incarnation, beat, types FROM nodes ORDER BY id";

const OFFER: &str = "UPDATE nodes SET types = $2 WHERE id = $1";

const OFFER_AGAIN: &str = "UPDATE nodes SET types = $2 WHERE id = $1 AND folder = $3 AND types <> $2";

const LEAVE: &str = "
    UPDATE nodes
    SET state = 'away'
    WHERE id = $1 AND incarnation = $2 AND folder = $3 AND state = 'alive'";

const DECLARE_LOST: &str = "
    UPDATE nodes
    SET state = 'lost'
    WHERE id = $1 AND incarnation = $2 AND beat = $3 AND state IN ('alive', 'away')";

/// Nobody will remove the files that are left there.
const FORGET: &str = "
    WITH forgotten AS (
        UPDATE nodes SET state = 'gone' WHERE id = $1 AND state IN ('away', 'lost') RETURNING id
    ), cleared AS (
        DELETE FROM leftovers USING forgotten WHERE leftovers.node = forgotten.id
    )
    SELECT id FROM forgotten";

/// Makes this process the node of its data folder.
pub(crate) struct JoinCommand {
    pub(crate) identity: NodeIdentity,
    /// See [`is_shared`].
    pub(crate) token: Option<TokenDigest>,
    /// The schema that the program knows.
    pub(crate) schema: i32,
}

impl ChangeCommand for JoinCommand {
    type Answer = JoinedNode;

    async fn run(&self, db: &Link) -> Result<JoinedNode, QueryFailure> {
        let Self { identity: NodeIdentity { folder, name }, token, schema } = self;
        let schema = *schema;
        let folder = Uuid::from_bytes(*folder);
        // A name is a label. PostgreSQL takes no NUL in it.
        let name = name.replace('\0', "");
        let version = env!("CARGO_PKG_VERSION");
        // A new process has nothing to repeat, and has shown nothing.
        let timeline = i64::from(db.timeline());
        let mut row = db.row(JOIN_AGAIN, &[&folder, &name, &version, &schema, &timeline]).await?;
        if row.is_none() {
            row = db.row(JOIN_FIRST, &[&folder, &name, &version, &schema, &timeline]).await?;
        }
        // Another process has joined as the same node meanwhile.
        let row = row.ok_or(QueryFailure::Again)?;
        let joined = JoinedNode { id: column(&row, 0)?, incarnation: column(&row, 1)?, folder, schema };
        refuse_if_outdated(db, schema).await?;
        if let Some(token) = token
            && !is_shared(db, token).await?
        {
            return Err(other_token().into());
        }
        exclude_former(db, joined.id).await?;
        db.run(RAISE_EPOCHS, &[&joined.id, &first_epoch(db.timeline())]).await?;
        Ok(joined)
    }

    fn kept(self, joined: &JoinedNode, timeline: u32) -> Option<Arc<dyn KeptChange>> {
        let Self { identity: NodeIdentity { name, .. }, token, .. } = self;
        Some(Arc::new(KeptJoin { name, token, joined: *joined, timeline }))
    }
}

/// A join, for the case that a failover loses it. Otherwise, the next beat would say that another server has joined.
struct KeptJoin {
    name: String,
    /// It was saved before the join, so it may be lost too.
    token: Option<TokenDigest>,
    joined: JoinedNode,
    timeline: u32,
}

#[async_trait]
impl KeptChange for KeptJoin {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.name.len()
    }

    fn of_the_node(&self) -> Option<NodeFact> {
        Some(NodeFact::Joined)
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        let JoinedNode { id, incarnation, folder, schema } = &self.joined;
        let name = self.name.replace('\0', "");
        let version = env!("CARGO_PKG_VERSION");
        let rejoined = db.run(REJOIN, &[folder, &name, &version, incarnation, id, schema]).await?;
        if rejoined == 0 {
            return Ok(Redone::There);
        }
        db.rows(CONTINUE_IDS, &[]).await?;
        if let Some(token) = &self.token {
            shared_token::save(db, token).await?;
        }
        // The same epochs as then: what was owned then is owned now.
        db.run(RAISE_EPOCHS, &[id, &first_epoch(self.timeline)]).await?;
        Ok(Redone::Again)
    }
}

/// Whether there are agents of a program that knows no nodes.
pub(crate) async fn has_homeless(db: &Link) -> Result<bool, QueryFailure> {
    let row = db.row(HAS_HOMELESS, &[]).await?;
    Ok(row.as_ref().map(|row| column(row, 0)).transpose()?.unwrap_or_default())
}

/// Makes a node the home of all agents that have none. All of them or none, so that they stay together: they are all in
/// one data folder.
pub(crate) struct AdoptCommand(pub(crate) JoinedNode);

impl ChangeCommand for AdoptCommand {
    type Answer = ();

    fn patience(&self, limits: &PostgresLimits) -> Duration {
        Duration::from_millis(limits.adoption_timeout_ms)
    }

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        // Once, and for many rows. `patience` bounds it.
        db.batch("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0").await?;
        db.run(ADOPT, &[&self.0.id, &first_epoch(db.timeline())]).await?;
        Ok(())
    }
}

/// Says that this node is alive.
pub(crate) struct BeatCommand {
    pub(crate) node: JoinedNode,
    /// The timeline on which it has repeated everything.
    pub(crate) healed: u32,
    /// The number of the newest change that it keeps.
    pub(crate) newest: u64,
}

impl ChangeCommand for BeatCommand {
    type Answer = Vec<Node>;

    async fn run(&self, db: &Link) -> Result<Vec<Node>, QueryFailure> {
        let JoinedNode { id, incarnation, folder, schema } = self.node;
        db.batch(BEAT_AT_ONCE).await?;
        refuse_if_outdated(db, schema).await?;
        let rows = db.rows(BEAT, &[&id, &incarnation, &folder, &i64::from(self.healed)]).await?;
        if rows.is_empty() {
            return Err(StoreError::Fenced.into());
        }
        nodes_of(&rows)
    }

    fn beat(&self, nodes: &Vec<Node>) -> Option<KeptBeat> {
        let own = nodes.iter().find(|node| node.id == self.node.node_id())?;
        Some(KeptBeat { beat: own.pulse.beat, newest: self.newest })
    }
}

pub(crate) async fn all(db: &Link) -> Result<Vec<Node>, QueryFailure> {
    nodes_of(&db.rows(ALL, &[]).await?)
}

fn nodes_of(rows: &[Row]) -> Result<Vec<Node>, QueryFailure> {
    Ok(rows.iter().map(node_of).collect::<Result<_, _>>()?)
}

fn node_of(row: &Row) -> Result<Node, StoreError> {
    let number = |at| column::<i64>(row, at).map(|number| number as u64);
    Ok(Node {
        id: NodeId(number(0)?),
        name: column(row, 1)?,
        version: column(row, 2)?,
        state: parsed(row, 3, NodeState::from_name)?,
        types: texts_of(row, 6)?,
        pulse: Pulse { incarnation: number(4)?, beat: number(5)? },
    })
}

/// Says which agent types this node runs.
pub(crate) struct OfferCommand(pub(crate) JoinedNode, pub(crate) Vec<String>);

impl ChangeCommand for OfferCommand {
    type Answer = ();

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        db.run(OFFER, &[&self.0.id, &self.types()]).await?;
        Ok(())
    }

    fn kept(self, (): &(), _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        Some(Arc::new(self))
    }
}

impl OfferCommand {
    fn types(&self) -> Vec<&[u8]> {
        self.1.iter().map(String::as_bytes).collect()
    }
}

#[async_trait]
impl KeptChange for OfferCommand {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.1.iter().map(|name| size_of::<String>() + name.len()).sum::<usize>()
    }

    fn of_the_node(&self) -> Option<NodeFact> {
        Some(NodeFact::Offers)
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        Ok(Redone::of_rows(db.run(OFFER_AGAIN, &[&self.0.id, &self.types(), &self.0.folder]).await?))
    }
}

/// Says that this node stops.
pub(crate) struct LeaveCommand(pub(crate) JoinedNode);

impl ChangeCommand for LeaveCommand {
    type Answer = ();

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        let JoinedNode { id, incarnation, folder, schema: _ } = self.0;
        db.batch(BEAT_AT_ONCE).await?;
        match db.run(LEAVE, &[&id, &incarnation, &folder]).await? {
            0 => Err(StoreError::Fenced.into()),
            _ => Ok(()),
        }
    }
}

/// Declares a node lost, if its pulse is still this one.
pub(crate) struct DeclareLostCommand(pub(crate) NodeId, pub(crate) Pulse, pub(crate) CatchUpTimes);

impl ChangeCommand for DeclareLostCommand {
    type Answer = bool;

    async fn run(&self, db: &Link) -> Result<bool, QueryFailure> {
        let Self(node, Pulse { incarnation, beat }, times) = *self;
        // After a failover, a node gets the time to find the new server.
        if is_awaited(db, times).await? {
            return Ok(false);
        }
        Ok(0 < db.run(DECLARE_LOST, &[&(node.0 as i64), &(incarnation as i64), &(beat as i64)]).await?)
    }
}

/// Takes a node out for good.
pub(crate) struct ForgetCommand(pub(crate) NodeId);

impl ChangeCommand for ForgetCommand {
    type Answer = bool;

    async fn run(&self, db: &Link) -> Result<bool, QueryFailure> {
        Ok(db.row(FORGET, &[&(self.0.0 as i64)]).await?.is_some())
    }
}
