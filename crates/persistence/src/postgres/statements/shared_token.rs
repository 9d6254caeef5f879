//! The digest of the access token that all nodes share.

use tokenrail_domain::NodeId;
use tokenrail_ports::Pulse;
use uuid::Uuid;

use crate::postgres::command::ChangeCommand;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::membership::TokenDigest;
use crate::postgres::statements::columns::column;

/// A node that joins at this moment says so before this statement or finds the new token: see [`is_shared`].
const LOCK: &str = "SELECT FROM cluster WHERE one = 1 FOR UPDATE";

const AGREE: &str = "
    UPDATE cluster
    SET token_sha256 = $1
    WHERE one = 1 AND (
        token_sha256 IS NULL OR token_sha256 = $1
        OR NOT EXISTS (SELECT FROM nodes WHERE state = 'alive' AND folder <> $2)
    )";

const SAVE: &str = "UPDATE cluster SET token_sha256 = $1 WHERE one = 1";

const IS_SHARED: &str = "SELECT token_sha256 = $1 FROM cluster WHERE one = 1 FOR SHARE";

const OTHERS: &str = "SELECT id, incarnation, beat FROM nodes WHERE state = 'alive' AND folder <> $1";

/// Saves the digest of a node's access token. Returns false, and changes nothing, if it differs from that of the other
/// nodes that are alive.
pub(crate) struct AgreeCommand {
    digest: TokenDigest,
    folder: Uuid,
}

impl AgreeCommand {
    pub(crate) fn new(digest: TokenDigest, folder: [u8; 16]) -> Self {
        Self { digest, folder: Uuid::from_bytes(folder) }
    }
}

impl ChangeCommand for AgreeCommand {
    type Answer = bool;

    async fn run(&self, db: &Link) -> Result<bool, QueryFailure> {
        db.row(LOCK, &[]).await?;
        Ok(db.run(AGREE, &[&self.digest.bytes(), &self.folder]).await? == 1)
    }
}

/// Whether the nodes share this token, for a node that has just said in the same transaction that it is alive. No other
/// token takes its place while the node is alive.
pub(crate) async fn is_shared(db: &Link, digest: &TokenDigest) -> Result<bool, QueryFailure> {
    let row = db.row(IS_SHARED, &[&digest.bytes()]).await?;
    Ok(row.as_ref().map(|row| column::<Option<bool>>(row, 0)).transpose()?.flatten().unwrap_or_default())
}

/// Saves the token of a node again, after a failover that has lost it.
pub(crate) async fn save(db: &Link, digest: &TokenDigest) -> Result<(), QueryFailure> {
    db.run(SAVE, &[&digest.bytes()]).await?;
    Ok(())
}

/// The pulses of the other nodes that count as alive.
pub(crate) async fn others(db: &Link, folder: [u8; 16]) -> Result<Vec<(NodeId, Pulse)>, QueryFailure> {
    let rows = db.rows(OTHERS, &[&Uuid::from_bytes(folder)]).await?;
    let number = |row, at| column::<i64>(row, at).map(|number| number as u64);
    let pulses = rows.iter().map(|row| {
        let pulse = Pulse { incarnation: number(row, 1)?, beat: number(row, 2)? };
        Ok((NodeId(number(row, 0)?), pulse))
    });
    pulses.collect()
}
