//! Agents whose processes idle after a turn: nothing waits for them to exit, and a cancel stops them.

use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::AgentId;
use tokenrail_ports::testing::{AppendFault, MemoryStore, ScriptedRunner, Step};
use tokenrail_ports::{Deletion, StoreError};
use tokio::sync::Notify;

use super::harness::{Harness, harness, harness_with, tiny_limits, words};

/// Prints one word, and idles after the gate was opened.
fn becomes_idle(gate: &Arc<Notify>) -> ScriptedRunner {
    ScriptedRunner::new([vec![Step::line("close a"), Step::Gate(Arc::clone(gate)), Step::Idle]])
}

async fn until_nothing_runs(h: &Harness) {
    while 0 < h.service.stats().active_agents {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A service with an agent whose process idles after its first turn.
async fn idle_after_its_turn() -> (Harness, AgentId) {
    let gate = Arc::new(Notify::new());
    let h = harness(becomes_idle(&gate));
    let id = h.launch("hi").await;
    gate.notify_one();
    (h, id)
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_process_rests_has_ended() {
    let (h, id) = idle_after_its_turn().await;
    assert_eq!(words(&h.watch(id).await), ["user hi", "result completed -"]);
    until_nothing_runs(&h).await;
    assert_eq!((h.runner.cancels(), h.runner.discards()), (0, 1));
    assert_eq!(h.runner.dismissed(), []);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_comes_while_the_end_is_saved_leaves_nothing_that_rests() {
    let gate = Arc::new(Notify::new());
    let h = harness_with(Arc::new(MemoryStore::new(7)), Arc::new(becomes_idle(&gate)), tiny_limits());
    let id = h.launch("hi").await;
    h.wait_for(id, |_| true).await;
    for _ in 0..20 {
        h.store.fail_next_append(AppendFault::BeforeSaving(StoreError::Busy));
    }
    gate.notify_one();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(h.service.get(id).await.unwrap().status.is_active(), "its end is being saved");
    h.service.cancel(id).await.unwrap();
    until_nothing_runs(&h).await;
    assert_eq!(words(&h.store.saved(id)).last().unwrap(), "result completed -");
    assert_eq!((h.runner.cancels(), h.runner.discards()), (1, 1), "it is not kept for another turn");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_could_not_be_stopped_before_is_stopped_when_it_rests() {
    let gate = Arc::new(Notify::new());
    let h = harness(becomes_idle(&gate));
    let id = h.launch("hi").await;
    h.wait_for(id, |_| true).await;
    h.runner.fail_messages(2);
    h.service.cancel(id).await.unwrap();
    gate.notify_one();
    until_nothing_runs(&h).await;
    assert_eq!((h.runner.cancels(), h.runner.discards()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn who_cancels_or_deletes_an_agent_leaves_nothing_that_rests() {
    let (h, id) = idle_after_its_turn().await;
    h.watch(id).await;
    until_nothing_runs(&h).await;
    h.service.cancel(id).await.unwrap();
    assert_eq!(h.runner.dismissed(), [id]);
    h.service.delete(id, Deletion::KeepHistory).await.unwrap();
    assert_eq!(h.runner.dismissed(), [id, id]);
}
