//! The digest of the access token that all nodes share.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::postgres::command::ChangeCommand;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;

const AGREE: &str = "
    UPDATE cluster
    SET token_sha256 = $1
    WHERE one = 1 AND (
        token_sha256 IS NULL OR token_sha256 = $1
        OR NOT EXISTS (SELECT FROM nodes WHERE state = 'alive' AND folder <> $2)
    )";

/// Saves the digest of a node's access token. Returns false, and changes nothing, if it differs from that of the other
/// nodes that are alive.
pub(crate) struct AgreeCommand {
    digest: Vec<u8>,
    folder: Uuid,
}

impl AgreeCommand {
    pub(crate) fn new(token: &[u8], folder: [u8; 16]) -> Self {
        Self { digest: Sha256::digest(token).to_vec(), folder: Uuid::from_bytes(folder) }
    }
}

impl ChangeCommand for AgreeCommand {
    type Answer = bool;

    async fn run(&self, db: &Link) -> Result<bool, QueryFailure> {
        Ok(db.run(AGREE, &[&self.digest, &self.folder]).await? == 1)
    }
}
