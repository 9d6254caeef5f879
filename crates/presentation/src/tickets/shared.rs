//! The tickets that all nodes of a store accept. A ticket of one node opens a stream at any node, and resumes it at any
//! node.

use std::time::Duration;

use tokenrail_application::{CredentialKind, CredentialRoom, CredentialScope, StoreError, WhenFull};
use tokenrail_domain::Timestamp;

use super::{Denied, Shown, check_origin};
use crate::query::{is_events_path, is_ticket_path};
use crate::shared_credentials::SharedCredentials;

/// See [`Tickets`](super::Tickets).
pub(crate) struct SharedTickets {
    credentials: SharedCredentials,
    limits: SharedTicketLimits,
}

/// They hold for all nodes together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedTicketLimits {
    /// Maximum number of unused tickets.
    pub(crate) unused: usize,
    /// How long a ticket may stay unused.
    pub(crate) age: Duration,
    /// Maximum number of tickets that can resume an event stream.
    pub(crate) opened: usize,
    /// How long after its issue a ticket can resume its event stream.
    pub(crate) resume: Duration,
}

impl SharedTickets {
    pub(crate) fn new(credentials: SharedCredentials, limits: SharedTicketLimits) -> Self {
        Self { credentials, limits }
    }

    pub(super) async fn issue(
        &self,
        random: [u8; 32],
        path: Option<String>,
        origin: Option<String>,
    ) -> Result<Option<String>, StoreError> {
        let room = CredentialRoom { max: self.limits.unused, when_full: WhenFull::Refuse };
        let scope = CredentialScope { path, origin };
        self.credentials.issue(CredentialKind::Ticket, random, scope, self.limits.age, room).await
    }

    pub(super) async fn redeem(&self, shown: Shown<'_>) -> Result<(), Denied> {
        let Shown { ticket, path, origin, now: _ } = shown;
        let redeemed = self.credentials.redeem(CredentialKind::Ticket, ticket).await;
        let valid = redeemed.map_err(|error| unchecked(&error))?.ok_or(Denied::Failed)?;
        let scope = valid.scope;
        if !is_ticket_path(path) || scope.path.as_ref().is_some_and(|only| only != path) {
            return Err(Denied::Failed);
        }
        // If `Origin` is missing, the guard has checked `Sec-Fetch-Site` instead.
        check_origin(scope.origin.as_deref(), origin, !is_events_path(path))?;
        if is_events_path(path) {
            let issued_ago = self.limits.age.saturating_sub(valid.left);
            let scope = CredentialScope { path: Some(path.to_owned()), ..scope };
            self.remember(ticket, scope, self.limits.resume.saturating_sub(issued_ago)).await;
        }
        Ok(())
    }

    /// Saves that a ticket opens an event stream. If that fails, the stream opens nevertheless.
    async fn remember(&self, ticket: &str, scope: CredentialScope, life: Duration) {
        let room = CredentialRoom { max: self.limits.opened, when_full: WhenFull::ReplaceOldest };
        if let Err(error) = self.credentials.add_opened(ticket, scope, life, room).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                error,
                "cannot save the ticket of an event stream; its client must request a new one to resume the stream"
            );
        }
    }

    pub(super) async fn resume(&self, shown: Shown<'_>) -> Result<Timestamp, Denied> {
        let Shown { ticket, path, origin, now } = shown;
        if !is_events_path(path) {
            return Err(Denied::Failed);
        }
        let opened = self
            .credentials
            .find_opened(ticket)
            .await
            .map_err(|error| unchecked(&error))?
            .ok_or(Denied::Failed)?;
        if opened.scope.path.as_deref() != Some(path) {
            return Err(Denied::Failed);
        }
        check_origin(opened.scope.origin.as_deref(), origin, false)?;
        Ok(Timestamp(now.0.saturating_add(i64::try_from(opened.left.as_millis()).unwrap_or(i64::MAX))))
    }
}

fn unchecked(error: &StoreError) -> Denied {
    let error = error as &dyn std::error::Error;
    tracing::error!(error, "cannot check a ticket: the database failed");
    Denied::Unchecked
}
