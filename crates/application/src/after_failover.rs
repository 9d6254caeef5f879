//! After a failover of a shared store: it may be behind what was seen, until each node has repeated what was
//! acknowledged to it.

use std::sync::Arc;
use std::time::Duration;

use tokenrail_ports::{INodes, StoreError};

use crate::core::Core;
use crate::error::Refusal;
use crate::shown_lately::LOST_AT_MOST;

/// What this node knows of the last failover.
#[derive(Clone)]
pub(crate) struct AfterFailover {
    since_join: Option<Duration>,
    nodes: Arc<dyn INodes>,
    patience: Duration,
    /// Between two looks.
    pub(crate) pause: Duration,
}

impl AfterFailover {
    pub(crate) fn of(core: &Core) -> Self {
        let limits = core.limits.nodes;
        let nodes = Arc::clone(&core.outside.nodes);
        let since_join = core.membership.since_join();
        Self { since_join, nodes, patience: limits.catch_up, pause: limits.poll_without_hints }
    }

    /// Whether the store may still be behind.
    pub(crate) fn may_be_behind(&self) -> bool {
        self.nodes.failovers().since.is_some_and(|since| since < self.patience)
    }

    /// Whether the failover may have lost what an earlier process of this node had saved: this one does not know it.
    pub(crate) fn is_news_to_this_server(&self) -> bool {
        let Some(since) = self.nodes.failovers().since.filter(|since| *since < self.patience) else {
            return false;
        };
        self.since_join.is_none_or(|joined| joined < since + LOST_AT_MOST)
    }
}

impl Core {
    /// Refuses something that is not in the store. As long as the store may be behind, the client may try again.
    pub(crate) fn missing(&self, refusal: Refusal) -> Refusal {
        if AfterFailover::of(self).may_be_behind() { StoreError::Busy.into() } else { refusal }
    }
}
