//! Idempotency keys: a command that is repeated with the same key is done once.

use tokenrail_domain::Timestamp;
use tokenrail_ports::{Idempotency, KeyLife, Recalled, StoreError};

use crate::error::Refusal;
use crate::planted::{self, Bug};
use crate::service::AgentService;

/// The client's key for a command, and the command as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandKey {
    pub key: String,
    pub body: String,
}

impl AgentService {
    /// The command for which the key was used. `None` if the key is not known.
    pub(super) async fn recall(
        &self,
        scope: String,
        key: &CommandKey,
        life: KeyLife,
    ) -> Result<Option<Recalled>, Refusal> {
        let key = self.idempotency(scope, key.clone(), life).await?;
        match self.core.outside.agents.recall(key).await? {
            Some(recalled) if !recalled.same_body => Err(Refusal::KeyReused),
            recalled => Ok(recalled),
        }
    }

    /// The key for the store: with its scope, and with its age in the time of keys.
    pub(super) async fn idempotency(
        &self,
        scope: String,
        key: CommandKey,
        life: KeyLife,
    ) -> Result<Idempotency, StoreError> {
        let used_at = planted::instead(Bug::KeysByTheClock, self.core.key_time().await?, || self.core.now());
        let scope = planted::instead(Bug::KeyPerNode, scope.clone(), || {
            format!("{scope} at {:?}", self.core.membership.me())
        });
        let age_ms = self.core.limits.commands.idempotency.as_millis() as i64;
        let forget_before = Timestamp(used_at.0.saturating_sub(age_ms));
        Ok(Idempotency { scope, key: key.key, body: key.body, used_at, forget_before, life })
    }
}
