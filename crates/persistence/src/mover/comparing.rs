//! The comparison: a thread reads SQLite, and this task reads the same from PostgreSQL, as a server reads it.

use std::sync::Arc;

use tokenrail_domain::{AgentId, Sequence, Timestamp};
use tokenrail_ports::{IAgentRepository as _, IJournal as _, StoreError};
use tokio::sync::mpsc::{Receiver, channel};

use super::counts::MoveCounts;
use super::error::MoveError;
use super::reading::{AgentPart, KeyRow, PAGE, StorePart, TURNS, read_all};
use super::source::Source;
use super::tables::ReadFailure;
use super::target::MoveTarget;
use super::{MoveObserver, MoveProgress, MoveStep};
use crate::postgres::PostgresStore;

/// Parts that were read in the data folder and are not compared yet.
const PARTS: usize = 2;

/// Compares everything, and that there is nothing else.
pub(super) async fn compare(
    source: &Arc<Source>,
    target: &MoveTarget,
    counts: &MoveCounts,
    tell: MoveObserver<'_>,
) -> Result<(), MoveError> {
    if target.counts().await? != *counts {
        return Err(MoveError::Differs { what: "the data folder".to_owned() });
    }
    let store = target.store()?;
    let (to, parts) = channel(PARTS);
    let from = Arc::clone(source);
    let reading = tokio::task::spawn_blocking(move || read_all(&from.open()?, &to));
    let comparison = Comparison {
        target,
        store: &store,
        tell,
        done: 0,
        total: 2 * counts.events,
        last_key: None,
        last_id: None,
    };
    let compared = comparison.run(parts).await;
    store.close().await;
    match (reading.await?, compared) {
        (Err(ReadFailure::Failed(error)), _) => Err(error),
        (Ok(()) | Err(ReadFailure::NotWanted), compared) => compared,
    }
}

struct Comparison<'a, 'b> {
    target: &'a MoveTarget,
    store: &'a PostgresStore,
    tell: MoveObserver<'b>,
    /// Events of the agents that are done.
    done: u64,
    total: u64,
    /// Where the next keys and ids begin.
    last_key: Option<(Vec<u8>, Vec<u8>)>,
    last_id: Option<AgentId>,
}

impl Comparison<'_, '_> {
    async fn run(mut self, mut parts: Receiver<StorePart>) -> Result<(), MoveError> {
        while let Some(part) = parts.recv().await {
            match part {
                StorePart::OfAgent(id, part) => self.agent_part(id, part).await?,
                StorePart::Keys(keys) => self.keys(keys).await?,
                StorePart::Purged(purged) => self.purged(purged).await?,
            }
        }
        Ok(())
    }

    async fn agent_part(&mut self, id: AgentId, part: AgentPart) -> Result<(), MoveError> {
        let store = self.store;
        let same = match part {
            AgentPart::Agent(agent) => store.get(id).await.map(|copy| copy == agent.map(|agent| *agent)),
            AgentPart::Turns { range, page } => {
                store.list_turns(id, range, TURNS).await.map(|copy| copy == page)
            }
            AgentPart::Image { turn, position, image } => {
                store.prompt_image(id.turn(turn), position).await.map(|copy| copy == image)
            }
            AgentPart::Events { after, page } => {
                self.tell(page.last().map_or(Sequence::START, |last| last.sequence), after);
                store.read(id, after, PAGE).await.map(|copy| copy == page)
            }
            AgentPart::Messages { after, page } => {
                self.tell(page.up_to, after);
                store.messages(id, after, PAGE).await.map(|copy| copy == page)
            }
        };
        is_same(same, &format!("agent {id}"))
    }

    /// The events from `after` to `last` are read.
    fn tell(&mut self, last: Sequence, after: Sequence) {
        self.done += last.0.saturating_sub(after.0);
        let (done, total) = (self.done.min(self.total), self.total);
        (self.tell)(MoveProgress { step: MoveStep::Comparing, done, total });
    }

    async fn keys(&mut self, keys: Vec<KeyRow>) -> Result<(), MoveError> {
        let copy = self.target.keys_after(self.last_key.take(), keys.len()).await?;
        self.last_key = keys.last().map(|key| (key.scope.clone(), key.key.clone()));
        is_same(Ok(copy == keys), "the idempotency keys")
    }

    async fn purged(&mut self, purged: Vec<(AgentId, Timestamp)>) -> Result<(), MoveError> {
        let copy = self.target.purged_after(self.last_id, purged.len()).await?;
        self.last_id = purged.last().map(|(id, _)| *id);
        is_same(Ok(copy == purged), "the ids of purged agents")
    }
}

fn is_same(same: Result<bool, StoreError>, what: &str) -> Result<(), MoveError> {
    let what = || what.to_owned();
    match same {
        Ok(true) => Ok(()),
        // What cannot be read back is not a copy.
        Ok(false) | Err(StoreError::Corrupt(_)) => Err(MoveError::Differs { what: what() }),
        Err(source) => Err(MoveError::CopyUnreadable { what: what(), source }),
    }
}
