//! Reads events that a reader has received before. A stream that repeats a text at its end reads the text again, so it
//! need not hold it.

use std::sync::Arc;

use tokenrail_domain::{AgentId, Sequence};
use tokenrail_ports::StoreError;
use tokio_util::sync::CancellationToken;

use crate::after_failover::AfterFailover;
use crate::core::Core;
use crate::follow::Page;
use crate::stretches::StoredEvents;
use crate::tails::Tail;

/// A reader of events whose numbers are known. It holds no cursor, and shares what it reads with the followers.
pub struct Rereader {
    tail: Arc<Tail>,
    stored: StoredEvents,
    after_failover: AfterFailover,
    closing: CancellationToken,
}

impl Rereader {
    pub(crate) fn new(core: &Core, agent: AgentId) -> Self {
        let tail = core.tails.of(agent);
        Self {
            stored: StoredEvents::new(core, agent, Arc::clone(&tail)),
            tail,
            after_failover: AfterFailover::of(core),
            closing: core.closing.clone(),
        }
    }

    /// The events from `wanted` on, as many as are in memory together. May be dropped at any await.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read: also if the agent was purged meanwhile. Calling again is safe.
    pub async fn page_with(&mut self, wanted: Sequence) -> Result<Page, StoreError> {
        loop {
            match self.read(wanted).await {
                // A failover has lost the events, and their node repeats them.
                Err(StoreError::UnknownAgent(_)) if self.after_failover.may_be_behind() => {
                    let pause = tokio::time::sleep(self.after_failover.pause);
                    self.closing.run_until_cancelled(pause).await.ok_or(StoreError::Busy)?;
                }
                page => return page,
            }
        }
    }

    async fn read(&mut self, wanted: Sequence) -> Result<Page, StoreError> {
        let batch = match self.tail.batch_with(wanted) {
            Some(batch) => batch,
            None => self.stored.batch_with(wanted, self.tail.state().head).await?,
        };
        let skip = (wanted.0 - batch.first().0) as usize;
        Ok(Page { batch, skip })
    }
}
