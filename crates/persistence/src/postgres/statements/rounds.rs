//! Looks at more than one call returns: each call goes on where the one before it has ended, and begins anew after the
//! last. So what cannot be done does not hide the rest.

use std::sync::{Mutex, PoisonError};

use tokenrail_domain::AgentId;
use uuid::Uuid;

/// Where the last look has ended.
#[derive(Default)]
pub(crate) struct Round(Mutex<Option<AgentId>>);

impl Round {
    /// The last agent of the last look. The lowest id if everything was returned.
    pub(crate) fn after(&self) -> Uuid {
        let after = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        after.map_or(Uuid::nil(), AgentId::as_uuid)
    }

    /// `found` are those after [`Round::after`], and then the others. If there are more than `limit`, the rest is left
    /// to the next look.
    pub(crate) fn end(&self, mut found: Vec<AgentId>, limit: usize) -> Vec<AgentId> {
        let are_all = found.len() <= limit;
        found.truncate(limit);
        self.go_on_after(found.last().copied().filter(|_| !are_all));
        found.sort_unstable();
        found
    }

    /// `None`: the next look begins anew.
    pub(crate) fn go_on_after(&self, last: Option<AgentId>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }
}
