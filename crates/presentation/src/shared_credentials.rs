//! Tickets and login codes that all nodes of a store accept.

use std::sync::Arc;
use std::time::Duration;

use ring::{digest, hmac};
use tokenrail_application::{
    Credential, CredentialDigest, CredentialKind, CredentialRoom, CredentialScope, ICredentials, StoreError,
    ValidCredential,
};

use crate::derived_key::derived_key;
use crate::hex::{hex, unhex};

/// The purpose of the derived key. If the meaning of these credentials changes, change this too, so that no old one is
/// valid.
const PURPOSE: &[u8] = b"tokenrail: credentials of all servers, 1";

const RANDOM: usize = 32;
const TAG: usize = 32;

/// Issues credentials, and uses them up. They are signed with a key that is derived from the token, which all nodes
/// share. So a guess costs no look into the database, and a new token revokes all of them.
#[derive(Clone)]
pub(crate) struct SharedCredentials {
    store: Arc<dyn ICredentials>,
    key: hmac::Key,
}

impl SharedCredentials {
    pub(crate) fn new(store: Arc<dyn ICredentials>, secret: &[u8]) -> Self {
        Self { store, key: derived_key(secret, PURPOSE) }
    }

    /// Issues a credential that cannot be guessed. `None` if there is no room for it.
    pub(crate) async fn issue(
        &self,
        kind: CredentialKind,
        random: [u8; RANDOM],
        scope: CredentialScope,
        life: Duration,
        room: CredentialRoom,
    ) -> Result<Option<String>, StoreError> {
        let tag = hmac::sign(&self.key, &message(kind, &random));
        let name = hex(&random) + &hex(tag.as_ref());
        let credential = Credential { kind, digest: digest_of(&name), scope, life };
        Ok(self.store.add(credential, room).await?.then_some(name))
    }

    /// Uses a credential up. `None` if it is not valid.
    pub(crate) async fn redeem(
        &self,
        kind: CredentialKind,
        name: &str,
    ) -> Result<Option<ValidCredential>, StoreError> {
        if !self.is_signed(kind, name) {
            return Ok(None);
        }
        self.store.redeem(kind, digest_of(name)).await
    }

    /// Saves that a ticket has opened an event stream.
    pub(crate) async fn add_opened(
        &self,
        ticket: &str,
        scope: CredentialScope,
        life: Duration,
        room: CredentialRoom,
    ) -> Result<bool, StoreError> {
        let (kind, digest) = (CredentialKind::OpenedStream, digest_of(ticket));
        self.store.add(Credential { kind, digest, scope, life }, room).await
    }

    /// What a ticket can resume. `None` if it has opened no event stream, or can resume it no longer.
    pub(crate) async fn find_opened(&self, ticket: &str) -> Result<Option<ValidCredential>, StoreError> {
        if !self.is_signed(CredentialKind::Ticket, ticket) {
            return Ok(None);
        }
        self.store.find(CredentialKind::OpenedStream, digest_of(ticket)).await
    }

    fn is_signed(&self, kind: CredentialKind, name: &str) -> bool {
        let Some(bytes) = unhex(name).filter(|bytes| bytes.len() == RANDOM + TAG) else { return false };
        let (random, tag) = bytes.split_at(RANDOM);
        hmac::verify(&self.key, &message(kind, random), tag).is_ok()
    }
}

fn message(kind: CredentialKind, random: &[u8]) -> Vec<u8> {
    [kind.as_str().as_bytes(), b" ", random].concat()
}

fn digest_of(name: &str) -> CredentialDigest {
    let mut short = [0; 32];
    short.copy_from_slice(digest::digest(&digest::SHA256, name.as_bytes()).as_ref());
    CredentialDigest(short)
}
