//! The access token that all nodes of a database share.

use std::time::Duration;

use tokenrail_domain::NodeId;
use tokenrail_ports::{INodes as _, Pulse, StoreError};
use tokio::time::{Instant, sleep};

use super::PostgresStore;
use crate::postgres::membership::TokenDigest;
use crate::postgres::statements::shared_token::{self, AgreeCommand};

/// How often it looks whether the other nodes beat.
const LOOK: Duration = Duration::from_millis(500);

/// A look that takes longer says nothing about the nodes: the database may have kept them from beating too.
const LATE: Duration = Duration::from_secs(2);

/// How many times `silence` all looks together may take.
const WAITS: u32 = 3;

impl PostgresStore {
    /// Whether the access token of this node is that of the other nodes that are alive. If none is alive, the next ones
    /// must have this one. Clients send the same token to any node, so a server with another one must not start.
    ///
    /// Two nodes with different tokens may ask at the same time, before one of them has joined. Then only one of them
    /// can join.
    ///
    /// If the tokens differ, it waits until one of the other nodes beats. Those that do not beat for `silence` are
    /// declared lost: perhaps all nodes lost their power at once, and nobody was left to do so.
    ///
    /// # Errors
    /// [`StoreError`] if the database cannot be used.
    pub async fn agree_on_token(&self, token: &[u8], silence: Duration) -> Result<bool, StoreError> {
        let (digest, folder) = (TokenDigest::of(token), self.inner.membership.identity()?.folder);
        if self.agree(&digest, folder, silence).await? {
            return Ok(true);
        }
        tracing::warn!(
            wait_s = silence.as_secs(),
            "other servers on this database have a different access token; checking whether they are running"
        );
        let (mut before, mut since) = (self.other_pulses(folder).await?, Instant::now());
        let until = Instant::now() + silence * WAITS;
        while since.elapsed() < silence {
            let began = Instant::now();
            sleep(LOOK.min(silence)).await;
            let now = self.other_pulses(folder).await?;
            // A node that is no longer alive does not matter.
            if now.iter().any(|pulse| !before.contains(pulse)) {
                // Perhaps it has the same new token.
                return self.agree(&digest, folder, silence).await;
            }
            if until < Instant::now() {
                return Ok(false);
            }
            if LATE < began.elapsed() {
                (before, since) = (now, Instant::now());
            }
        }
        for (node, pulse) in before {
            self.declare_lost(node, pulse).await?;
        }
        self.agree(&digest, folder, silence).await
    }

    /// Tries again for a while if another node joins at this moment.
    async fn agree(
        &self,
        digest: &TokenDigest,
        folder: [u8; 16],
        wait: Duration,
    ) -> Result<bool, StoreError> {
        let until = Instant::now() + wait;
        loop {
            match self.write(AgreeCommand::new(digest.clone(), folder)).await {
                Err(StoreError::Busy) if Instant::now() < until => sleep(LOOK).await,
                Ok(true) => {
                    self.inner.membership.set_token(digest.clone());
                    return Ok(true);
                }
                answer => return answer,
            }
        }
    }

    async fn other_pulses(&self, folder: [u8; 16]) -> Result<Vec<(NodeId, Pulse)>, StoreError> {
        self.read_with(move |db| async move { shared_token::others(&db, folder).await }).await
    }
}
