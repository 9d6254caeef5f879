//! The store fails for minutes: clients get an error in time, and accepted work is not lost.

use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{AgentId, TurnNumber};
use tokenrail_ports::testing::{AppendFault, MemoryStore, ScriptedRunner, Step};
use tokenrail_ports::{Deletion, StoreError};
use tokio::time::{Instant, timeout};

use super::harness::{Harness, hanging, harness, harness_with, tiny_limits, words};
use crate::{Launch, Limits, Refusal};

/// How many writes fail. With pauses of a second, this takes longer than any client waits.
const WRITES: usize = 120;
/// A small margin in virtual time.
const MOMENT: Duration = Duration::from_millis(50);

fn limits() -> Limits {
    let mut limits = tiny_limits();
    limits.saving.retry_pause_max = Duration::from_secs(1);
    limits
}

/// An agent whose first turn is about to start. For two minutes this cannot be saved.
async fn stuck(error: fn() -> StoreError) -> (Harness, AgentId) {
    let (store, runner) = (Arc::new(MemoryStore::new(7)), ScriptedRunner::new([vec![Step::Hang]]));
    let h = harness_with(store, Arc::new(runner), limits());
    for _ in 0..WRITES {
        h.store.fail_next_append(AppendFault::BeforeSaving(error()));
    }
    let id = h.launch("hi").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    (h, id)
}

/// The refusals of the commands that need the agent's queue.
async fn told(h: &Harness, id: AgentId) -> Vec<Refusal> {
    let mut told = Vec::new();
    let bound = limits().commands.command_timeout + MOMENT;
    let mut note = |began: Instant, refusal: Option<Refusal>| {
        assert!(began.elapsed() <= bound, "answered after {:?}", began.elapsed());
        told.push(refusal.expect("nothing can be saved"));
    };
    let began = Instant::now();
    note(began, h.service.send(id, "more".into(), None).await.err());
    let began = Instant::now();
    note(began, h.service.cancel(id).await.err());
    let began = Instant::now();
    note(began, h.service.cancel_turn(id, TurnNumber::FIRST).await.err());
    let began = Instant::now();
    note(began, h.service.delete(id, Deletion::Purge).await.err());
    told
}

#[tokio::test(start_paused = true)]
async fn a_command_is_answered_while_the_disk_is_full() {
    let (h, id) = stuck(|| StoreError::Full).await;
    for refusal in told(&h, id).await {
        assert!(matches!(refusal, Refusal::Store(StoreError::Full)), "{refusal:?}");
    }
    // The refused commands had no effect, and everything continues when there is room.
    h.wait_for(id, |_| true).await;
    h.service.cancel(id).await.unwrap();
    assert_eq!(words(&h.watch(id).await), ["user hi", "notice reaped", "result cancelled -"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_is_answered_while_somebody_else_holds_the_database() {
    let (h, id) = stuck(|| StoreError::Busy).await;
    let tasks = h.service.stats().tasks;
    for refusal in told(&h, id).await {
        assert!(matches!(refusal, Refusal::Store(StoreError::Busy)), "{refusal:?}");
    }
    assert_eq!(h.service.stats().tasks, tasks, "no command goes on behind its answer");
}

#[tokio::test(start_paused = true)]
async fn a_command_is_answered_while_a_turn_of_the_agents_own_cannot_be_saved() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let script = vec![Step::line("close a"), Step::Gate(Arc::clone(&gate)), Step::line("next"), Step::Hang];
    let (store, runner) = (Arc::new(MemoryStore::new(7)), ScriptedRunner::new([script]));
    let h = harness_with(store, Arc::new(runner), limits());
    let id = h.launch("hi").await;
    h.wait_for(id, |_| true).await;
    for _ in 0..WRITES {
        h.store.fail_next_append(AppendFault::BeforeSaving(StoreError::Full));
    }
    gate.notify_one();
    tokio::time::sleep(MOMENT).await;
    for refusal in told(&h, id).await {
        assert!(matches!(refusal, Refusal::Store(StoreError::Full)), "{refusal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_purge_that_waits_no_longer_for_what_cannot_be_saved_breaks_no_invariant() {
    let (store, runner) = (Arc::new(MemoryStore::new(7)), ScriptedRunner::new([vec![Step::Hang]]));
    let h = harness_with(store, Arc::new(runner), limits());
    let id = h.launch("hi").await;
    h.wait_for(id, |_| true).await;
    for _ in 0..WRITES {
        h.store.fail_next_append(AppendFault::BeforeSaving(StoreError::Full));
    }
    h.service.delete(id, Deletion::Purge).await.unwrap();
    while 0 < h.service.stats().active_agents {
        tokio::time::sleep(MOMENT).await;
    }
    assert!(matches!(h.service.get(id).await, Err(Refusal::NotFound(_))));
    assert_eq!(h.service.stats().invariant_violations, 0);
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_client_has_gone_is_stopped_whatever_the_store_answers() {
    let (h, id) = hanging("hi").await;
    h.store.lose_next_answer();
    h.service.cancel_turn_in_background(id, TurnNumber::FIRST);
    // Long before any timer of the turn.
    let seen = timeout(Duration::from_secs(1), h.watch(id)).await.expect("it is told to stop");
    assert_eq!(words(&seen), ["user hi", "notice reaped", "result cancelled -"]);
}

/// A cancel takes the lock of the queue twice: to save the stop, and to signal the run. Here, something else gets the
/// lock in between, and has it beyond the limit of the command.
#[tokio::test(start_paused = true)]
async fn a_turn_whose_stop_is_saved_is_signalled_even_if_its_queue_is_locked_for_too_long() {
    let (h, id) = hanging("hi").await;
    let handle = h.service.core.task_handle(id).expect("it runs");
    let before = handle.queue.lock().await;
    let began = Instant::now();
    let lock_next = async {
        // The cancel waits for the lock by then, and gets it first.
        tokio::time::sleep(MOMENT).await;
        tokio::join!(biased; handle.queue.lock(), async { drop(before) }).0
    };
    let (cancelled, between) = tokio::join!(h.service.cancel_turn(id, TurnNumber::FIRST), lock_next);
    cancelled.expect("the stop is saved");
    assert_eq!(began.elapsed(), tiny_limits().commands.command_timeout, "the lock was not free earlier");
    assert!(h.service.get(id).await.unwrap().status.is_active(), "the run has no signal yet");
    drop(between);
    let seen = timeout(Duration::from_secs(1), h.watch(id)).await.expect("it is told to stop");
    assert_eq!(words(&seen), ["user hi", "notice reaped", "result cancelled -"]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_behind_a_turn_is_cancelled_with_it_when_the_last_follower_has_left() {
    let h = harness(ScriptedRunner::new([vec![Step::Hang], vec![Step::Hang]]));
    let launch = Launch { prompt: "hi".into(), cancel_on_disconnect: true, ..Launch::default() };
    let id = h.service.launch(launch).await.unwrap().agent.id;
    h.wait_for(id, |_| true).await;
    h.service.send(id, "waits".into(), None).await.unwrap();
    h.store.refuse_cancels(2);
    let ended = async {
        while h.service.get(id).await.unwrap().status.is_active() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(10), ended).await.expect("nothing runs on");
    let mut told = words(&h.store.saved(id));
    told.retain(|word| word != "notice reaped");
    assert_eq!(told, ["user hi", "result cancelled -", "user waits", "result cancelled -"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_followers_runs_on_until_its_cancel_is_saved() {
    let h = harness(ScriptedRunner::new([vec![Step::Hang]]));
    let launch = Launch { prompt: "hi".into(), cancel_on_disconnect: true, ..Launch::default() };
    let id = h.service.launch(launch).await.unwrap().agent.id;
    h.wait_for(id, |_| true).await;
    h.store.refuse_cancels(u32::MAX);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(h.runner.cancels(), 0);
    h.store.refuse_cancels(0);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(words(&h.store.saved(id)).last().unwrap(), "result cancelled -");
}

#[tokio::test(start_paused = true)]
async fn a_message_waits_while_the_store_is_busy_but_not_longer_than_its_client() {
    let (h, id) = hanging("hi").await;
    h.store.refuse_messages(9);
    let accepted = h.service.send(id, "waits".into(), None).await.unwrap();
    assert_eq!((accepted.turn, accepted.queued), (TurnNumber(2), 1));
    h.store.refuse_messages(u32::MAX);
    let bound = limits().commands.command_timeout + MOMENT;
    let refused = timeout(bound, h.service.send(id, "more".into(), None)).await.expect("an answer");
    assert!(matches!(refused, Err(Refusal::Store(StoreError::Busy))), "{refused:?}");
    // The queue is free meanwhile: other commands do not wait for this one.
    let (refused, cancelled) = tokio::join!(h.service.send(id, "more".into(), None), async {
        timeout(Duration::from_secs(1), h.service.cancel(id)).await.expect("an answer")
    });
    assert!(refused.is_err());
    cancelled.unwrap();
}

/// After a failover of the database, another server may still save again that it has used the same key.
#[tokio::test(start_paused = true)]
async fn a_launch_waits_while_the_store_is_busy_but_not_longer_than_its_client() {
    let (h, _) = hanging("hi").await;
    let launch = || h.service.launch(Launch { prompt: "more".into(), ..Launch::default() });
    h.store.refuse_creations(9);
    launch().await.unwrap();
    h.store.refuse_creations(u32::MAX);
    let bound = limits().commands.command_timeout + MOMENT;
    let refused = timeout(bound, launch()).await.expect("an answer");
    assert!(matches!(refused, Err(Refusal::Store(StoreError::Busy))), "{refused:?}");
}

/// Runs an agent that prints something before and after the disk becomes full. Returns its journal.
async fn on_a_full_disk(before: &[&'static str], after: &[&'static str]) -> Vec<String> {
    on_a_full_disk_of(MemoryStore::new(7), before, after, Step::Hang).await
}

async fn on_a_full_disk_of(
    store: MemoryStore,
    before: &[&'static str],
    after: &[&'static str],
    last: Step,
) -> Vec<String> {
    let gate = Arc::new(tokio::sync::Notify::new());
    let mut script: Vec<_> = before.iter().map(|said| Step::line(*said)).collect();
    script.push(Step::Gate(Arc::clone(&gate)));
    script.extend(after.iter().map(|said| Step::line(*said)));
    script.push(last);
    let (store, runner) = (Arc::new(store), ScriptedRunner::new([script]));
    let h = harness_with(store, Arc::new(runner), limits());
    h.service.recover().await.unwrap();
    let id = h.launch("hi").await;
    h.wait_for(id, |event| (before.len() as u64) < event.sequence.0).await;
    for _ in 0..WRITES {
        h.store.fail_next_append(AppendFault::BeforeSaving(StoreError::Full));
    }
    gate.notify_one();
    let told = words(&h.watch(id).await);
    assert_eq!(h.service.stats().invariant_violations, 0);
    assert_eq!(h.service.stats().active_agents, 0);
    told
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_output_never_fits_ends_without_it() {
    let told = on_a_full_disk(&["say one"], &["say two"]).await;
    assert_eq!(told[..3], ["user hi", "+one", "abandoned"]);
    assert!(told.last().unwrap().contains("result failed storage_full"), "{told:?}");
}

/// A spool is not on the disk of a shared store, so ending the agent would free nothing there.
#[tokio::test(start_paused = true)]
async fn the_output_of_a_turn_waits_as_long_as_the_disk_of_a_shared_store_is_full() {
    let told = on_a_full_disk_of(
        MemoryStore::shared(7),
        &["say one"],
        &["say two", "end"],
        Step::line("close onetwo"),
    );
    let told = told.await;
    assert!(told.iter().any(|said| said == "+two"), "{told:?}");
    assert_eq!(told.last().unwrap(), "result completed -");
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_the_agents_own_that_never_fits_is_not_begun() {
    let told = on_a_full_disk(&["say one", "end"], &["close a", "next", "say two"]).await;
    assert_eq!(told[..2], ["user hi", "+one"]);
    assert!(told.last().unwrap().contains("result failed storage_full"), "{told:?}");
    assert!(!told.iter().any(|said| said.contains("two")), "{told:?}");
}
