//! The digest of the access token that all nodes share.

use sha2::{Digest as _, Sha256};
use tokenrail_domain::NodeId;
use tokenrail_ports::Pulse;
use uuid::Uuid;

use crate::postgres::command::ChangeCommand;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;

/// A node that still has one of these pulses is silent. Perhaps all nodes lost their power at once, and nobody was left
/// to declare them lost.
const AGREE: &str = "
    UPDATE cluster
    SET token_sha256 = $1
    WHERE one = 1 AND (
        token_sha256 IS NULL OR token_sha256 = $1
        OR NOT EXISTS (
            SELECT FROM nodes
            WHERE state = 'alive' AND folder <> $2 AND (id, incarnation, beat) NOT IN (
                SELECT * FROM unnest($3::bigint[], $4::bigint[], $5::bigint[])
            )
        )
    )";

/// Saves the digest of a node's access token. Returns false, and changes nothing, if it differs from that of the other
/// nodes that are alive.
pub(crate) struct AgreeCommand {
    digest: Vec<u8>,
    folder: Uuid,
    /// Nodes that do not count, although the database says that they are alive, if this is still their pulse.
    silent: Vec<(NodeId, Pulse)>,
}

impl AgreeCommand {
    pub(crate) fn new(token: &[u8], folder: [u8; 16], silent: Vec<(NodeId, Pulse)>) -> Self {
        Self { digest: Sha256::digest(token).to_vec(), folder: Uuid::from_bytes(folder), silent }
    }
}

impl ChangeCommand for AgreeCommand {
    type Answer = bool;

    async fn run(&self, db: &Link) -> Result<bool, QueryFailure> {
        let column = |number: fn(&(NodeId, Pulse)) -> u64| -> Vec<i64> {
            self.silent.iter().map(|silent| number(silent) as i64).collect()
        };
        let ids = column(|(node, _)| node.0);
        let incarnations = column(|(_, pulse)| pulse.incarnation);
        let beats = column(|(_, pulse)| pulse.beat);
        Ok(db.run(AGREE, &[&self.digest, &self.folder, &ids, &incarnations, &beats]).await? == 1)
    }
}
