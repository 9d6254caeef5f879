//! What clients learn of a node's own agents that users change at a node whose hints do not arrive.

use tokenrail_domain::{Agent, AgentEdit, NewName, Timestamp};
use tokenrail_ports::Hint;

use super::*;
use crate::{KeptLifecycleEvent, UpdateCause};

/// The events that clients get, until none has come during several looks at the store.
async fn told(news: &mut LifecycleReader) -> Vec<Arc<KeptLifecycleEvent>> {
    let mut told = Vec::new();
    while let Ok(next) = tokio::time::timeout(Duration::from_secs(10), news.next()).await {
        told.extend(next.expect("the service runs").ok());
    }
    told
}

fn count(told: &[Arc<KeptLifecycleEvent>], is: impl Fn(&LifecycleEvent) -> bool) -> usize {
    told.iter().filter(|kept| is(&kept.event)).count()
}

#[tokio::test(start_paused = true)]
async fn clients_learn_once_what_users_change_at_another_node_with_and_without_hints() {
    for is_broken in [false, true] {
        let two = pair([said("one")]).await;
        let mut news = two.home.service.lifecycle_events();
        told(&mut news).await;
        if is_broken {
            two.other_bus.break_off();
        }
        let id = two.home.launch("hi").await;
        let at_launch = told(&mut news).await;
        assert_eq!(count(&at_launch, |event| matches!(event, LifecycleEvent::Created { .. })), 1);
        let is_edit = |event: &LifecycleEvent| {
            matches!(event, LifecycleEvent::Updated { cause: UpdateCause::Edit, .. })
        };
        assert_eq!(count(&at_launch, is_edit), 0, "nobody has changed it: {at_launch:?}");
        for (node, name) in [(&two.other, "there"), (&two.home, "here")] {
            let name = Some(NewName::Text(name.to_owned()));
            node.service.edit(id, AgentEdit { name, ..AgentEdit::default() }).await.unwrap();
            let told = told(&mut news).await;
            assert_eq!(count(&told, is_edit), 1, "broken: {is_broken}; {told:?}");
        }
        two.other.service.delete(id, Deletion::KeepHistory).await.unwrap();
        let told = told(&mut news).await;
        let deleted = |event: &LifecycleEvent| matches!(event, LifecycleEvent::Deleted { .. });
        assert_eq!(count(&told, deleted), 1, "broken: {is_broken}; {told:?}");
    }
}

fn is_updated(event: &LifecycleEvent) -> bool {
    matches!(event, LifecycleEvent::Updated { .. })
}

fn is_created(event: &LifecycleEvent) -> bool {
    matches!(event, LifecycleEvent::Created { .. })
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_clients_learn_once_what_an_agent_does() {
    let two = pair([said("one"), vec![Step::Hang]]).await;
    let id = two.home.launch("hi").await;
    two.home.watch(id).await;
    // Long enough that it counts as old.
    sleep(Duration::from_secs(100)).await;
    two.kill_home().await;
    let back = two.restart_home().await;
    let mut news = back.service.lifecycle_events();
    told(&mut news).await;
    back.service.send(id, "go on".into(), None).await.unwrap();
    let begun = told(&mut news).await;
    assert_eq!(count(&begun, is_updated), 1, "it runs: {begun:?}");
    back.service.send(id, "wait".into(), None).await.unwrap();
    let waits = told(&mut news).await;
    assert_eq!(count(&waits, is_updated), 1, "a turn waits: {waits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hint_that_comes_after_a_look_tells_nothing_twice() {
    let two = pair([said("one")]).await;
    let mut news = two.home.service.lifecycle_events();
    told(&mut news).await;
    two.other_bus.break_off();
    let placed = Launch { prompt: "hi".into(), node: Some("node-1".into()), ..Launch::default() };
    let id = two.other.service.launch(placed).await.unwrap().agent.id;
    let found = told(&mut news).await;
    assert_eq!(count(&found, is_created), 1, "{found:?}");
    let name = Some(NewName::Text("there".into()));
    two.other.service.edit(id, AgentEdit { name, ..AgentEdit::default() }).await.unwrap();
    assert_eq!(count(&told(&mut news).await, is_updated), 1);
    for late in [Hint::Created(id), Hint::Changed(id)] {
        two.home.service.core.lifecycle_elsewhere.note(late);
    }
    let late = told(&mut news).await;
    assert_eq!(late.len(), 0, "{late:?}");
}

/// Also if it does not remember the deletion any more.
#[tokio::test(start_paused = true)]
async fn a_hint_of_an_agent_that_is_deleted_meanwhile_tells_nothing() {
    for is_remembered in [true, false] {
        let two = pair([said("one")]).await;
        let mut news = two.other.service.lifecycle_events();
        let id = two.home.launch("hi").await;
        two.home.service.delete(id, Deletion::KeepHistory).await.unwrap();
        told(&mut news).await;
        let elsewhere = &two.other.service.core.lifecycle_elsewhere;
        if !is_remembered {
            elsewhere.forget_told();
        }
        for late in [Hint::Created(id), Hint::Changed(id)] {
            elsewhere.note(late);
        }
        let late = told(&mut news).await;
        assert_eq!(late.len(), 0, "remembered: {is_remembered}; {late:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_users_do_at_a_node_without_the_agent_is_told_there_once() {
    let two = pair([vec![Step::Hang]]).await;
    let mut news = two.other.service.lifecycle_events();
    told(&mut news).await;
    let placed = Launch { prompt: "hi".into(), node: Some("node-1".into()), ..Launch::default() };
    let id = two.other.service.launch(placed).await.unwrap().agent.id;
    assert_eq!(count(&told(&mut news).await, is_created), 1);
    two.other.service.send(id, "wait".into(), None).await.unwrap();
    let waits = told(&mut news).await;
    assert_eq!(count(&waits, is_updated), 1, "{waits:?}");
    let name = Some(NewName::Text("there".into()));
    two.other.service.edit(id, AgentEdit { name, ..AgentEdit::default() }).await.unwrap();
    let edited = told(&mut news).await;
    assert_eq!(count(&edited, is_updated), 1, "{edited:?}");
}

/// What it prints changes nothing in a list.
#[tokio::test(start_paused = true)]
async fn an_agent_that_prints_is_told_once_at_another_node() {
    let gate = Arc::new(Notify::new());
    let script = vec![Step::line("say a"), Step::Gate(gate.clone()), Step::line("say b"), Step::Hang];
    let two = pair([script]).await;
    let mut news = two.other.service.lifecycle_events();
    told(&mut news).await;
    let id = two.home.launch("hi").await;
    while !matches!(news.next().await.unwrap().unwrap().event, LifecycleEvent::Updated { .. }) {}
    // Before a look finds that it has begun.
    gate.notify_one();
    until(&two.home, id, |agent| agent.head == Sequence(3)).await;
    let told = told(&mut news).await;
    assert_eq!(told.len(), 0, "{told:?}");
}

/// There are more agents than the node remembers of other nodes, and fewer than it remembers of its own.
#[tokio::test(start_paused = true)]
async fn however_many_agents_are_at_home_clients_hear_only_what_is_done() {
    const AGENTS: i64 = 1100;
    let two = pair([said("one")]).await;
    let mut news = two.home.service.lifecycle_events();
    let id = two.home.launch("hi").await;
    two.home.watch(id).await;
    let created_at = two.home.store.saved_agent(id).unwrap().created_at;
    for n in 1..=AGENTS {
        let at = Timestamp(created_at.0 + n);
        let agent = Agent::new(AgentId::new(at, [0; 10]), "scripted".into(), at);
        two.home.service.core.tell_created(&agent, at);
    }
    told(&mut news).await;
    two.home.service.send(id, "go on".into(), None).await.unwrap();
    let told = told(&mut news).await;
    // It begins, and it fails at once: its runner has no more to say.
    assert_eq!(count(&told, is_updated), 2, "{told:?}");
}

/// Its node does the rest when it is back, or another one when it is declared lost.
#[tokio::test(start_paused = true)]
async fn a_delete_does_not_wait_for_a_node_that_says_nothing_for_longer_than_its_limit() {
    for deletion in [Deletion::KeepHistory, Deletion::Purge] {
        let two = pair([vec![Step::Hang]]).await;
        let id = two.home.launch("hi").await;
        two.home.wait_for(id, |_| true).await;
        two.kill_home().await;
        let mut news = two.other.service.lifecycle_events();
        let (limit, started) = (tiny_limits().commands.shutdown_timeout, Instant::now());
        two.other.service.delete(id, deletion).await.unwrap();
        assert!(started.elapsed() < limit + Duration::from_secs(1), "{:?}", started.elapsed());
        until_told(&mut news, "deleted").await;
        let is_listed = |agent: &Agent| agent.deleted_at.is_none();
        assert!(!two.other.store.saved_agent(id).as_ref().is_some_and(is_listed));
        // A purge is done later.
        while deletion == Deletion::Purge && two.other.store.saved_agent(id).is_some() {
            sleep(Duration::from_secs(1)).await;
        }
    }
}
