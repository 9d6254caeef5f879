//! Events that are no longer in memory. They are fetched in stretches that all readers share. For a single reader,
//! the next stretch is prefetched.

use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{AgentId, Event, Sequence};
use tokenrail_ports::{IJournal, PageLimit, StoreError};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::batch::Batch;
use crate::core::Core;
use crate::tails::Tail;

/// A fetch waits this many times as long for other readers as a batch does, because a stretch holds several batches.
const STRETCHES_WAIT: u32 = 4;

/// One reader's access to the history of a journal.
pub(crate) struct StoredEvents {
    stretches: Stretches,
    /// The stretch that begins after this number was prefetched.
    ahead: Sequence,
    follower_wait: Duration,
    follower_wait_from: usize,
    tracker: TaskTracker,
    runtime: Handle,
}

/// A journal, divided into stretches of `limit.events` events. They begin at the same numbers for all readers, so
/// that readers at about the same position share one fetch.
#[derive(Clone)]
struct Stretches {
    agent: AgentId,
    journal: Arc<dyn IJournal>,
    limit: PageLimit,
    tail: Arc<Tail>,
}

impl StoredEvents {
    pub(crate) fn new(core: &Core, agent: AgentId, tail: Arc<Tail>) -> Self {
        let journal = Arc::clone(&core.outside.journal);
        let limit = core.limits.reading.history();
        Self {
            stretches: Stretches { agent, journal, limit, tail },
            ahead: Sequence::START,
            follower_wait: core.limits.saving.follower_wait,
            follower_wait_from: core.limits.saving.follower_wait_from,
            tracker: core.tracker.clone(),
            runtime: core.runtime.clone(),
        }
    }

    /// The batch that holds `wanted`, which is not after `head`.
    pub(crate) async fn batch_with(
        &mut self,
        wanted: Sequence,
        head: Sequence,
    ) -> Result<Arc<Batch>, StoreError> {
        let batch = match self.stretches.tail.stretch_cache.batch_with(wanted) {
            Some(batch) => batch,
            None => self.fetch(wanted).await?,
        };
        self.fetch_ahead(wanted, head);
        Ok(batch)
    }

    /// Fetches the stretch that holds `wanted`, or waits for the reader that fetches now.
    ///
    /// A follower is not polled while its client accepts nothing. So the fetch runs in a task, which ends without the
    /// follower that began it, and a follower that waits holds nothing that others need.
    async fn fetch(&self, wanted: Sequence) -> Result<Arc<Batch>, StoreError> {
        let tail = &self.stretches.tail;
        loop {
            let fetched = tail.fetch_lock.next_end();
            if let Some(batch) = tail.in_memory(wanted) {
                return Ok(batch);
            }
            let Some(fetching) = tail.fetch_lock.begin() else {
                fetched.await;
                continue;
            };
            // Another fetch may have ended since the first check.
            if let Some(batch) = tail.in_memory(wanted) {
                return Ok(batch);
            }
            let (stretches, wait) = (self.stretches.clone(), self.wait_for_others());
            let fetch = async move {
                let _fetching = fetching;
                stretches.tail.stretch_cache.room(wait).await;
                stretches.fetch(wanted).await
            };
            let fetched = self.tracker.spawn_on(fetch, &self.runtime).await;
            return fetched.map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        }
    }

    /// How long a fetch waits, at most, for other readers of the stretch that it evicts.
    fn wait_for_others(&self) -> Duration {
        let is_crowd = self.follower_wait_from <= self.stretches.tail.followers();
        if is_crowd { STRETCHES_WAIT * self.follower_wait } else { Duration::ZERO }
    }

    /// Prefetches the next stretch while this one is being sent.
    fn fetch_ahead(&mut self, wanted: Sequence, head: Sequence) {
        let next = Sequence(self.stretches.begin_of(wanted).0 + self.stretches.events());
        let tail = &self.stretches.tail;
        // With several readers, one fetches while others send. And a prefetch for the first reader would evict what
        // the last one still reads.
        let alone = tail.followers() == 1;
        if next <= self.ahead || head <= next || !alone || !tail.stretch_cache.has_room_ahead(wanted) {
            return;
        }
        let wanted = next.next();
        let Some(fetching) = tail.fetch_lock.begin() else { return };
        self.ahead = next;
        if tail.in_memory(wanted).is_some() {
            return;
        }
        let stretches = self.stretches.clone();
        let fetch = async move {
            let _fetching = fetching;
            if let Err(error) = stretches.fetch(wanted).await {
                // The reader that gets there fetches again, and receives the error then.
                let agent = stretches.agent;
                tracing::debug!(%agent, error = &error as &dyn std::error::Error, "cannot prefetch history");
            }
        };
        self.tracker.spawn_on(fetch, &self.runtime);
    }
}

impl Stretches {
    fn events(&self) -> u64 {
        self.limit.events.max(1) as u64
    }

    /// The number after which the stretch with `wanted` begins.
    fn begin_of(&self, wanted: Sequence) -> Sequence {
        Sequence((wanted.0 - 1) / self.events() * self.events())
    }

    /// Fetches the stretch that holds `wanted`, and keeps it for a while.
    async fn fetch(&self, wanted: Sequence) -> Result<Arc<Batch>, StoreError> {
        let events = self.read(self.begin_of(wanted)).await?;
        let reached = events.last().is_some_and(|last| wanted <= last.sequence);
        // If large events end the stretch early, the rest of it is fetched from the cursor on.
        let events = if reached { events } else { self.read(wanted.before()).await? };
        self.tail.stretch_cache.keep(&events, wanted);
        Batch::split(&events)
            .find(|batch| wanted <= batch.last())
            .map(Arc::new)
            .map(|batch| self.tail.stretch_cache.batch_with(wanted).unwrap_or(batch))
            // The agent was purged while it was followed.
            .ok_or(StoreError::UnknownAgent(self.agent))
    }

    async fn read(&self, after: Sequence) -> Result<Arc<[Event]>, StoreError> {
        let events = self.journal.read(self.agent, after, self.limit).await?;
        match events.first() {
            Some(first) if first.sequence != after.next() => Err(StoreError::Corrupt(format!(
                "the journal of {} continues with {} after {after}",
                self.agent, first.sequence
            ))),
            _ => Ok(events.into()),
        }
    }
}
