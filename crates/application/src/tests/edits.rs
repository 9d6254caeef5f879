//! What users change about agents, and what other clients learn of it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokenrail_domain::{Agent, AgentEdit, AgentId, NewName, Timestamp};
use tokenrail_ports::Deletion;
use tokenrail_ports::testing::{MemoryStore, ScriptedRunner, Step};

use super::harness::{Harness, hanging, harness, harness_with, tiny_limits};
use crate::{CommandKey, LifecycleEvent, LifecycleReader, Refusal, UpdateCause};

fn archived(archived: bool) -> AgentEdit {
    AgentEdit { archived: Some(archived), ..AgentEdit::default() }
}

/// The agents about whose edits was told so far.
fn edits(reader: &mut LifecycleReader) -> Vec<AgentId> {
    let mut told = Vec::new();
    while let Some(Some(Ok(item))) = reader.next().now_or_never() {
        if let LifecycleEvent::Updated { agent, cause: UpdateCause::Edit, .. } = &item.event {
            told.push(*agent);
        }
    }
    told
}

fn saved(h: &Harness, id: AgentId) -> Agent {
    h.store.saved_agent(id).unwrap()
}

/// Waits for the next event that reports an edit, and returns its agent.
async fn next_edit(reader: &mut LifecycleReader) -> AgentId {
    let waiting = async {
        loop {
            let item = reader.next().await.expect("the service runs").expect("no event is missed");
            if let LifecycleEvent::Updated { agent, cause: UpdateCause::Edit, .. } = &item.event {
                return *agent;
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.expect("an edit is told")
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_saved_and_told() {
    let h = harness(ScriptedRunner::new([vec![]]));
    let id = h.launch("hi").await;
    h.watch(id).await;
    let mut reader = h.service.lifecycle_events();
    let name = Some(NewName::Text("Ada".to_owned()));
    let edit = AgentEdit { name, pinned: Some(true), archived: Some(true) };
    let edited = h.service.edit(id, edit).await.unwrap();
    assert_eq!((edited.name.as_deref(), edited.pinned, edited.archived), (Some("Ada"), true, true));
    assert_eq!(edited, saved(&h, id));
    assert_eq!(edits(&mut reader), [id]);
}

#[tokio::test(start_paused = true)]
async fn an_edit_whose_outcome_is_unknown_is_told_when_it_is_repeated() {
    let h = harness(ScriptedRunner::new([vec![]]));
    let id = h.launch("hi").await;
    h.watch(id).await;
    h.store.lose_next_answer();
    assert!(matches!(h.service.edit(id, archived(true)).await, Err(Refusal::Store(_))));
    let mut reader = h.service.lifecycle_events();
    assert!(h.service.edit(id, archived(true)).await.unwrap().archived);
    assert_eq!(edits(&mut reader), [id]);
}

#[tokio::test(start_paused = true)]
async fn agents_that_are_deleted_or_unknown_are_not_edited() {
    let (h, id) = hanging("hi").await;
    h.service.delete(id, Deletion::KeepHistory).await.unwrap();
    assert!(matches!(h.service.edit(id, archived(true)).await, Err(Refusal::Deleted)));
    let unknown = AgentId::new(Timestamp(5), [9; 10]);
    assert!(matches!(h.service.edit(unknown, archived(true)).await, Err(Refusal::NotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn a_message_brings_an_archived_agent_back_and_clients_are_told() {
    for seed in 1..=20 {
        let (store, runner) =
            (Arc::new(MemoryStore::new(seed)), ScriptedRunner::new([vec![], vec![Step::Hang]]));
        let h = harness_with(store, Arc::new(runner), tiny_limits());
        let id = h.launch("hi").await;
        h.watch(id).await;
        h.service.edit(id, archived(true)).await.unwrap();
        let mut reader = h.service.lifecycle_events();
        h.store.lose_next_answer();
        let key = || Some(CommandKey { key: "k".to_owned(), body: "more".to_owned() });
        let unknown = h.service.send(id, "more".into(), key()).await;
        assert!(matches!(unknown, Err(Refusal::Store(_))), "seed {seed}: {unknown:?}");
        h.service.send(id, "more".into(), key()).await.unwrap();
        assert_eq!(edits(&mut reader), [id], "seed {seed}");
        assert!(!saved(&h, id).archived, "seed {seed}");

        h.service.edit(id, archived(true)).await.unwrap();
        assert_eq!(edits(&mut reader), [id], "seed {seed}");
        h.service.send(id, "and more".into(), None).await.unwrap();
        assert_eq!(edits(&mut reader), [id], "seed {seed}: it runs");
        assert!(!saved(&h, id).archived, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_archived_agent_that_asks_for_permission_comes_back() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let asks = Step::Lines(vec!["ask 1-1 yes no".to_owned()]);
    let h = harness(ScriptedRunner::new([vec![Step::Gate(Arc::clone(&gate)), asks, Step::Hang]]));
    let id = h.launch("go").await;
    h.wait_for(id, |_| true).await;
    h.service.edit(id, archived(true)).await.unwrap();
    let mut reader = h.service.lifecycle_events();
    gate.notify_one();
    assert_eq!(next_edit(&mut reader).await, id);
    assert!(!saved(&h, id).archived);
}
