//! Short-lived credentials that every node of a store accepts.

use std::time::Duration;

use async_trait::async_trait;

use crate::StoreResult;

/// The tickets and login codes of all nodes. A store keeps no more of a credential than its digest, so that nobody who
/// can read the store can use one. It may forget all of them at any time, for example if it is restarted: clients then
/// request new ones. Times are measured by the store alone.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait ICredentials: Send + Sync {
    /// Adds a credential. Returns false, and adds nothing, if there is no room for one more. Nodes that add at the same
    /// moment may exceed the room by one each.
    async fn add(&self, credential: Credential, room: CredentialRoom) -> StoreResult<bool>;

    /// Uses a credential up. `None` if it is unknown, has expired, or was used up, on whichever node. Of several that
    /// use it at the same moment, one gets it.
    async fn redeem(
        &self,
        kind: CredentialKind,
        digest: CredentialDigest,
    ) -> StoreResult<Option<ValidCredential>>;

    /// Like [`ICredentials::redeem`], but the credential stays valid.
    async fn find(
        &self,
        kind: CredentialKind,
        digest: CredentialDigest,
    ) -> StoreResult<Option<ValidCredential>>;
}

/// A credential that is new to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    pub kind: CredentialKind,
    pub digest: CredentialDigest,
    pub scope: CredentialScope,
    /// How long it is valid.
    pub life: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CredentialKind {
    /// Opens one stream.
    Ticket,
    /// Starts one session of a browser.
    LoginCode,
    /// A ticket that has opened an event stream, and can resume it.
    OpenedStream,
}

impl CredentialKind {
    pub const ALL: [Self; 3] = [Self::Ticket, Self::LoginCode, Self::OpenedStream];

    /// The name of the kind in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ticket => "ticket",
            Self::LoginCode => "login_code",
            Self::OpenedStream => "opened_stream",
        }
    }
}

/// The SHA-256 of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CredentialDigest(pub [u8; 32]);

/// What a credential is valid for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CredentialScope {
    /// The only path that it opens. `None`: every path that its kind can open.
    pub path: Option<String>,
    /// The origin of the page that requested it. `None` if no page did.
    pub origin: Option<String>,
}

/// How many credentials of one kind may be valid at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialRoom {
    pub max: usize,
    pub when_full: WhenFull,
}

/// What happens if there is no room for a new credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    Refuse,
    /// The one that expires first becomes invalid.
    ReplaceOldest,
}

/// A credential that is valid, or was until it was redeemed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidCredential {
    pub scope: CredentialScope,
    /// How much of its life is left.
    pub left: Duration,
}
