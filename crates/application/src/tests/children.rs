use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokenrail_domain::{AgentId, LaunchedBy, Timestamp};
use tokenrail_ports::Deletion;
use tokenrail_ports::testing::samples::json;
use tokenrail_ports::testing::{MemoryStore, ScriptedRunner, Step};
use tokio::join;

use super::harness::{Harness, harness_with};
use crate::{AdmissionLimits, CommandKey, Launch, LaunchOutcome, Limits, Refusal};

/// Agents that hang. At most two children of one agent are active, and they may be two deep.
fn hanging_agents() -> Harness {
    let runner = ScriptedRunner::new((0..20).map(|_| vec![Step::Hang]));
    let admission = AdmissionLimits { child_agents: 2, child_depth: 2, ..AdmissionLimits::default() };
    let limits = Limits { admission, ..Limits::default() };
    harness_with(Arc::new(MemoryStore::new(7)), Arc::new(runner), limits)
}

impl Harness {
    async fn parent(&self, cwd: Option<&str>) -> AgentId {
        let cwd = cwd.map(str::to_owned);
        let launch = Launch { prompt: "parent".into(), cwd, ..Launch::default() };
        self.service.launch(launch).await.unwrap().agent.id
    }

    async fn child(&self, parent: AgentId) -> Result<LaunchOutcome, Refusal> {
        let launch = Launch { prompt: "child".into(), parent: Some(parent), ..Launch::default() };
        self.service.launch(launch).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_has_only_so_many_active_children() {
    let h = hanging_agents();
    let (parent, other) = (h.parent(None).await, h.parent(None).await);
    let launched = join_all((0..5).map(|_| h.child(parent))).await;
    let children: Vec<_> = launched.iter().filter_map(|child| child.as_ref().ok()).collect();
    assert_eq!(children.len(), 2, "also of launches at the same moment");
    let refused = launched.iter().filter_map(|child| child.as_ref().err());
    assert!(refused.into_iter().all(|error| matches!(error, Refusal::TooManyChildren { limit: 2 })));
    h.child(other).await.expect("another agent has its own children");
    h.parent(None).await;
    let first = children[0].agent.id;
    h.service.cancel(first).await.unwrap();
    h.watch(first).await;
    h.child(parent).await.expect("one has ended");
    assert!(matches!(h.child(parent).await, Err(Refusal::TooManyChildren { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_repeated_launch_is_no_further_child() {
    let h = hanging_agents();
    let parent = h.parent(None).await;
    let idempotency = Some(CommandKey { key: "k".into(), body: "b".into() });
    let launch = Launch { prompt: "child".into(), parent: Some(parent), idempotency, ..Launch::default() };
    let first = h.service.launch(launch.clone()).await.unwrap();
    h.child(parent).await.unwrap();
    let again = h.service.launch(launch).await.unwrap();
    assert_eq!((again.again, again.agent.id), (true, first.agent.id));
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_is_repeated_while_it_takes_the_last_place_is_answered_like_it() {
    let h = hanging_agents();
    let parent = h.parent(None).await;
    h.child(parent).await.unwrap();
    let idempotency = Some(CommandKey { key: "k".into(), body: "b".into() });
    let launch = Launch { prompt: "child".into(), parent: Some(parent), idempotency, ..Launch::default() };
    let only = h.service.core.children.lock().await;
    let release = async {
        // Time passes when both wait for the lock.
        tokio::time::sleep(Duration::from_millis(1)).await;
        drop(only);
    };
    let both = join!(h.service.launch(launch.clone()), h.service.launch(launch), release);
    let (one, other) = (both.0.unwrap(), both.1.unwrap());
    assert_eq!(one.agent.id, other.agent.id);
    assert_ne!(one.again, other.again, "it was launched once");
    assert!(matches!(h.child(parent).await, Err(Refusal::TooManyChildren { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_child_keeps_the_metadata_of_its_launch() {
    let h = hanging_agents();
    let parent = h.parent(None).await;
    let metadata = Some(json(r#"{"ticket":7}"#));
    let launch = Launch { parent: Some(parent), metadata: metadata.clone(), ..Launch::default() };
    let child = h.service.launch(launch).await.unwrap().agent;
    let saved = h.service.get(child.id).await.unwrap();
    assert_eq!((saved.metadata, saved.launched_by.map(|by| by.agent)), (metadata, Some(parent)));
}

#[tokio::test(start_paused = true)]
async fn children_are_only_so_deep_and_know_their_parents() {
    let h = hanging_agents();
    let first = h.parent(None).await;
    let second = h.child(first).await.unwrap().agent;
    let third = h.child(second.id).await.unwrap().agent;
    assert_eq!(second.launched_by, Some(LaunchedBy { agent: first, depth: 1 }));
    let saved = h.service.get(third.id).await.unwrap();
    assert_eq!(saved.launched_by, Some(LaunchedBy { agent: second.id, depth: 2 }));
    assert!(matches!(h.child(third.id).await, Err(Refusal::TooDeep { limit: 2 })));
}

#[tokio::test(start_paused = true)]
async fn a_child_works_inside_the_folder_of_its_parent_or_in_one_of_its_own() {
    let h = hanging_agents();
    let parent = h.parent(Some("/allowed/a")).await;
    let child = async |parent, cwd: &str| {
        let (parent, cwd) = (Some(parent), Some(cwd.to_owned()));
        h.service.launch(Launch { prompt: "child".into(), parent, cwd, ..Launch::default() }).await
    };
    for outside in ["/allowed", "/allowed/ab", "/allowed/b"] {
        let refused = child(parent, outside).await;
        assert!(matches!(refused, Err(Refusal::OutsideParent)), "{outside}: {refused:?}");
    }
    let inside = child(parent, "/allowed/a/b").await.unwrap().agent;
    assert_eq!(inside.cwd, "/allowed/a/b");
    assert!(
        matches!(child(inside.id, "/allowed/a").await, Err(Refusal::OutsideParent)),
        "nor does its child"
    );
    let own = h.child(parent).await.unwrap().agent;
    assert_eq!(own.cwd, format!("/own/{}", own.id));
}

#[tokio::test(start_paused = true)]
async fn an_agent_of_another_server_is_no_parent_and_a_deleted_one_launches_nothing() {
    let h = hanging_agents();
    let launched = h.child(AgentId::new(Timestamp(5), [9; 10])).await.unwrap();
    assert_eq!(launched.agent.launched_by, None);
    let parent = h.parent(None).await;
    h.service.delete(parent, Deletion::KeepHistory).await.unwrap();
    let refused = h.child(parent).await.unwrap_err();
    assert!(matches!(refused, Refusal::ParentDeleted), "{refused:?}");
    assert!(refused.to_string().starts_with("the launching agent has been deleted"), "{refused}");
}
