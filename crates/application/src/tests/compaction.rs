//! When the batches of ended turns are packed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokenrail_ports::MockIJournal;
use tokenrail_ports::testing::{MemoryStore, NotedWorkspace, ScriptedRunner};
use tokio::runtime::Handle;

use super::harness::{outside, tiny_limits};
use crate::compactor::PACK_DELAY;
use crate::{AgentService, Outside};

#[tokio::test(start_paused = true)]
async fn clients_can_react_to_the_end_of_a_turn_before_it_is_packed() {
    let (looks, mut journal) = (Arc::new(AtomicU32::new(0)), MockIJournal::new());
    let counted = looks.clone();
    journal.expect_compact_next().returning(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(false)
    });
    let (store, runner) = (Arc::new(MemoryStore::new(7)), Arc::new(ScriptedRunner::new([])));
    let outside = outside(&store, &runner, &Arc::new(NotedWorkspace::default()));
    let service = AgentService::new(
        Outside { journal: Arc::new(journal), ..outside },
        tiny_limits(),
        Handle::current(),
    );
    let moment = Duration::from_millis(1);
    let almost = PACK_DELAY.saturating_sub(moment);

    tokio::time::sleep(almost).await;
    assert_eq!(looks.load(Ordering::Relaxed), 0);
    tokio::time::sleep(moment * 2).await;
    assert_eq!(looks.load(Ordering::Relaxed), 1, "what the server before this one has left");
    service.core.compaction.notify_one();
    tokio::time::sleep(almost).await;
    assert_eq!(looks.load(Ordering::Relaxed), 1);
    // This turn ends within the delay of the one before it. It is packed with that one, and starts another look.
    service.core.compaction.notify_one();
    tokio::time::sleep(moment * 2).await;
    assert_eq!(looks.load(Ordering::Relaxed), 2);
    tokio::time::sleep(PACK_DELAY).await;
    assert_eq!(looks.load(Ordering::Relaxed), 3);
    tokio::time::sleep(PACK_DELAY * 2).await;
    assert_eq!(looks.load(Ordering::Relaxed), 3);
}
