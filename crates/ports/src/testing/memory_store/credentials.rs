//! The credentials of the memory store.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tokio::time::Instant;

use super::MemoryStore;
use crate::{
    Credential, CredentialDigest, CredentialKind, CredentialRoom, CredentialScope, ICredentials, StoreResult,
    ValidCredential, WhenFull,
};

/// The credentials that are valid, or have expired since the last one was added.
#[derive(Default)]
pub(super) struct Credentials(BTreeMap<(CredentialKind, CredentialDigest), Kept>);

struct Kept {
    scope: CredentialScope,
    expires: Instant,
}

impl Kept {
    fn valid(&self, now: Instant) -> Option<ValidCredential> {
        let left = self.expires.checked_duration_since(now).filter(|left| !left.is_zero())?;
        Some(ValidCredential { scope: self.scope.clone(), left })
    }
}

impl Credentials {
    fn add(&mut self, credential: Credential, room: CredentialRoom) -> bool {
        let (Credential { kind, digest, scope, life }, now) = (credential, Instant::now());
        self.0.retain(|_, kept| now < kept.expires);
        let same = self.0.iter().filter(|((of, _), _)| *of == kind);
        if room.max <= same.clone().count() {
            let oldest = same.min_by_key(|(_, kept)| kept.expires).map(|(name, _)| *name);
            match (room.when_full, oldest) {
                (WhenFull::ReplaceOldest, Some(oldest)) => drop(self.0.remove(&oldest)),
                _ => return false,
            }
        }
        self.0.insert((kind, digest), Kept { scope, expires: now + life });
        true
    }
}

#[async_trait]
impl ICredentials for MemoryStore {
    async fn add(&self, credential: Credential, room: CredentialRoom) -> StoreResult<bool> {
        Ok(self.act(|state| state.credentials.add(credential, room)).await)
    }

    async fn redeem(
        &self,
        kind: CredentialKind,
        digest: CredentialDigest,
    ) -> StoreResult<Option<ValidCredential>> {
        Ok(self
            .act(|state| {
                state.credentials.0.remove(&(kind, digest)).and_then(|kept| kept.valid(Instant::now()))
            })
            .await)
    }

    async fn find(
        &self,
        kind: CredentialKind,
        digest: CredentialDigest,
    ) -> StoreResult<Option<ValidCredential>> {
        Ok(self
            .act(|state| state.credentials.0.get(&(kind, digest)).and_then(|kept| kept.valid(Instant::now())))
            .await)
    }
}
