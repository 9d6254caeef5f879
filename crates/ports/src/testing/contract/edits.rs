//! What users change about agents: names, and their places in lists.

use tokenrail_domain::{Agent, AgentEdit, AgentId, NewName, Timestamp, TurnNumber, TurnOutcome};

use super::{agent_now, homeless, launched, running, saved};
use crate::testing::samples::{WHOLE_LIST, launch, notice, permission_request, queued_turn};
use crate::{AgentFilter, ArchivedFilter, Deletion, Edited, Enqueued, IAgentRepository, IJournal};

fn named(name: &str) -> AgentEdit {
    AgentEdit { name: Some(NewName::Text(name.to_owned())), ..AgentEdit::default() }
}

fn pinned(pinned: bool) -> AgentEdit {
    AgentEdit { pinned: Some(pinned), ..AgentEdit::default() }
}

fn archived(archived: bool) -> AgentEdit {
    AgentEdit { archived: Some(archived), ..AgentEdit::default() }
}

async fn changed(store: &impl IAgentRepository, agent: AgentId, edit: AgentEdit) -> Agent {
    match store.edit(agent, edit).await.unwrap() {
        Edited::Saved(agent) => homeless(*agent),
        other => panic!("not saved: {other:?}"),
    }
}

pub async fn an_edit_changes_what_it_names<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, ..) = launched(store, 1).await;
    let (other, ..) = launched(store, 2).await;
    let mut expected = agent.clone();
    expected.name = Some("Ada".to_owned());
    assert_eq!(changed(store, agent.id, named("Ada")).await, expected);
    assert_eq!(agent_now(store, agent.id).await, expected);
    assert_eq!(changed(store, agent.id, named("Ada")).await, expected, "again");

    (expected.pinned, expected.archived) = (true, true);
    let both = AgentEdit { archived: Some(true), ..pinned(true) };
    assert_eq!(changed(store, agent.id, both).await, expected);
    (expected.archived, expected.name) = (false, None);
    let other_way = AgentEdit { name: Some(NewName::Removed), ..archived(false) };
    assert_eq!(changed(store, agent.id, other_way).await, expected);
    assert_eq!(agent_now(store, agent.id).await, expected);
    assert_eq!(agent_now(store, other.id).await, other, "the other one stays as it is");
    assert_eq!(store.edit(launch(9).0.id, pinned(true)).await.unwrap(), Edited::UnknownAgent);
}

pub async fn an_edit_outlives_the_turns_of_the_agent<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    let before = agent_now(store, agent.id).await;
    let edit = AgentEdit { pinned: Some(true), archived: Some(true), ..named("Ada") };
    let during = changed(store, agent.id, edit).await;
    assert_eq!((during.updated_at, during.head), (before.updated_at, before.head), "the journal stays");
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    let after = agent_now(store, agent.id).await;
    assert_eq!((after.name.as_deref(), after.pinned, after.archived), (Some("Ada"), true, true));
}

pub async fn a_deleted_agent_is_not_edited<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, ..) = launched(store, 1).await;
    assert!(store.delete(agent.id, Timestamp(10), Deletion::KeepHistory).await.unwrap());
    let before = agent_now(store, agent.id).await;
    assert_eq!(store.edit(agent.id, named("Ada")).await.unwrap(), Edited::Deleted);
    assert_eq!(agent_now(store, agent.id).await, before);
    assert!(store.purge(agent.id, Timestamp(12)).await.unwrap());
    assert_eq!(store.edit(agent.id, named("Ada")).await.unwrap(), Edited::UnknownAgent);
}

pub async fn a_message_brings_an_archived_agent_back<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    changed(store, agent.id, AgentEdit { archived: Some(true), ..pinned(true) }).await;
    let enqueue =
        async || store.enqueue(queued_turn(agent.id, TurnNumber(0), "more").into(), 16, None).await.unwrap();
    let first = enqueue().await;
    assert_eq!(first, Enqueued::New { turn: TurnNumber(2), queued: 1, unarchived: true });
    let now = agent_now(store, agent.id).await;
    assert_eq!((now.archived, now.pinned), (false, true));
    let second = enqueue().await;
    assert_eq!(second, Enqueued::New { turn: TurnNumber(3), queued: 2, unarchived: false });
}

pub async fn a_permission_request_brings_an_archived_agent_back<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    changed(store, agent.id, AgentEdit { archived: Some(true), ..pinned(true) }).await;
    saved(store, scribe.say(vec![notice("status")])).await;
    assert!(agent_now(store, agent.id).await.archived, "the agent needs nobody");
    let asks = scribe.say(vec![permission_request("1-1", None)]);
    saved(store, asks.clone()).await;
    let now = agent_now(store, agent.id).await;
    assert_eq!((now.archived, now.pinned), (false, true));
    changed(store, agent.id, archived(true)).await;
    saved(store, asks).await;
    assert!(agent_now(store, agent.id).await.archived, "it was saved before, so nothing has changed");
}

/// The numbers of the listed sample agents.
async fn numbers(store: &impl IAgentRepository, filter: AgentFilter) -> Vec<i64> {
    let agents = store.list(AgentFilter { limit: 10, ..filter }, WHOLE_LIST).await.unwrap().items;
    agents.iter().map(|listed| listed.agent.created_at.0 - launch(0).0.created_at.0).collect()
}

pub async fn lists_leave_archived_agents_out_or_show_only_them<S: IJournal + IAgentRepository>(store: &S) {
    for n in 1..=4 {
        launched(store, n).await;
    }
    for n in [2, 3] {
        changed(store, launch(n).0.id, archived(true)).await;
    }
    let list = async |archived, deleted| {
        numbers(store, AgentFilter { deleted, archived, ..AgentFilter::default() }).await
    };
    assert_eq!(list(ArchivedFilter::With, false).await, [4, 3, 2, 1]);
    assert_eq!(list(ArchivedFilter::Without, false).await, [4, 1]);
    assert_eq!(list(ArchivedFilter::Only, false).await, [3, 2]);
    store.delete(launch(3).0.id, Timestamp(1), Deletion::KeepHistory).await.unwrap();
    assert_eq!(list(ArchivedFilter::Only, false).await, [2]);
    assert_eq!(list(ArchivedFilter::With, true).await, [3]);
    changed(store, launch(2).0.id, archived(false)).await;
    assert_eq!(list(ArchivedFilter::Without, false).await, [4, 2, 1]);
}

pub async fn pinned_agents_are_listed<S: IJournal + IAgentRepository>(store: &S) {
    for n in 1..=4 {
        launched(store, n).await;
    }
    let pins = AgentFilter { pinned: true, ..AgentFilter::default() };
    assert_eq!(numbers(store, pins.clone()).await, Vec::<i64>::new());
    for n in [1, 3, 4] {
        changed(store, launch(n).0.id, pinned(true)).await;
    }
    changed(store, launch(4).0.id, archived(true)).await;
    assert_eq!(numbers(store, pins.clone()).await, [4, 3, 1]);
    let shown = AgentFilter { archived: ArchivedFilter::Without, ..pins.clone() };
    assert_eq!(numbers(store, shown).await, [3, 1]);
    assert_eq!(numbers(store, AgentFilter { before: Some(launch(3).0.id), ..pins.clone() }).await, [1]);
    changed(store, launch(3).0.id, pinned(false)).await;
    assert_eq!(numbers(store, pins).await, [4, 1]);
}
