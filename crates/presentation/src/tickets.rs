//! Tickets, for browser APIs that cannot set headers.

mod denied;
mod opened;
mod own;
mod seal;
mod shared;

use tokenrail_application::StoreError;
use tokenrail_domain::Timestamp;

pub(crate) use denied::Denied;
pub(crate) use opened::{Opening, Openings};
pub(crate) use own::OwnTickets;
pub(crate) use seal::Seal;
pub(crate) use shared::{SharedTicketLimits, SharedTickets};

/// All tickets. Each can be used once, within a short time. A ticket that has opened an event stream can also resume
/// that stream.
pub(crate) enum Tickets {
    /// This server alone issues and accepts them.
    Own(OwnTickets),
    /// All nodes of the store do.
    Shared(SharedTickets),
}

/// A ticket, as a request shows it.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) ticket: &'a str,
    pub(crate) path: &'a str,
    /// Browsers send it with every WebSocket, but not with an event stream of the same origin.
    pub(crate) origin: Option<&'a str>,
    pub(crate) now: Timestamp,
}

impl Tickets {
    /// Issues a ticket that cannot be guessed. `None` if too many tickets are unused.
    pub(crate) async fn issue(
        &self,
        random: [u8; 32],
        path: Option<String>,
        origin: Option<String>,
        now: Timestamp,
    ) -> Result<Option<String>, StoreError> {
        match self {
            Self::Own(own) => Ok(own.issue(random, path, origin, now)),
            Self::Shared(shared) => shared.issue(random, path, origin).await,
        }
    }

    /// Uses a ticket up. If it can resume a stream after a restart of this server, returns the opening, which must be
    /// [saved](Self::save) before the stream opens.
    ///
    /// # Errors
    /// [`Denied`] if the ticket does not open that path for that page, or has expired, or cannot be checked.
    pub(crate) async fn redeem(&self, shown: Shown<'_>) -> Result<Option<Opening>, Denied> {
        match self {
            Self::Own(own) => own.redeem(shown),
            Self::Shared(shared) => shared.redeem(shown).await.map(|()| None),
        }
    }

    /// Saves that a ticket opens a stream. If that fails, the ticket cannot resume the stream after a restart, and the
    /// client must request a new one then.
    pub(crate) async fn save(&self, opening: Opening) {
        match self {
            Self::Own(own) => own.save(opening).await,
            Self::Shared(_) => {}
        }
    }

    /// Lets a client resume its event stream. Returns when the ticket expires.
    ///
    /// # Errors
    /// [`Denied`] if the ticket is not for that stream and that page, or has expired, or cannot be checked.
    pub(crate) async fn resume(&self, shown: Shown<'_>) -> Result<Timestamp, Denied> {
        match self {
            Self::Own(own) => own.resume(shown),
            Self::Shared(shared) => shared.resume(shown).await,
        }
    }
}

/// A ticket that was issued to a page is valid for that page's origin only.
fn check_origin(given_to: Option<&str>, shown_by: Option<&str>, must_be_named: bool) -> Result<(), Denied> {
    match (given_to, shown_by) {
        (Some(_), None) if must_be_named => Err(Denied::OtherOrigin),
        (Some(given_to), Some(shown_by)) if given_to != shown_by => Err(Denied::OtherOrigin),
        _ => Ok(()),
    }
}
