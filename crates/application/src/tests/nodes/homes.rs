//! Agents that keep nothing on the disk of their node: any other one can run their next turn.

use tokenrail_ports::StoreError;
use tokenrail_ports::testing::RoamingRunner;

use super::*;
use crate::AtStop;

async fn roaming_node(store: MemoryStore, bus: &Arc<MemoryBus>, scripts: Vec<Vec<Step>>) -> Harness {
    roaming_node_with(store, bus, scripts, |_| {}).await
}

/// A node whose configuration is changed before it starts.
async fn roaming_node_with(
    store: MemoryStore,
    bus: &Arc<MemoryBus>,
    scripts: Vec<Vec<Step>>,
    change: impl FnOnce(&mut Outside),
) -> Harness {
    let (store, runner) = (Arc::new(store), Arc::new(ScriptedRunner::new(scripts)));
    let workspace = Arc::new(NotedWorkspace::default());
    let mut outside = Outside { bus: bus.clone(), ..outside(&store, &runner, &workspace) };
    for kind in outside.types.listed.values_mut() {
        kind.runner = Arc::new(RoamingRunner(Arc::clone(&runner)));
    }
    change(&mut outside);
    let service = AgentService::new(outside, tiny_limits(), Handle::current());
    service.recover().await.unwrap();
    Harness { service, store, runner, workspace }
}

async fn roaming(home: Vec<Vec<Step>>, other: Vec<Vec<Step>>) -> Pair {
    let home_bus = Arc::new(MemoryBus::new(3));
    let other_bus = Arc::new(home_bus.another());
    let home = roaming_node(MemoryStore::shared(7), &home_bus, home).await;
    let other = roaming_node(home.store.as_node(NodeId(2)), &other_bus, other).await;
    Pair { home, other, home_bus, other_bus }
}

fn results(events: &[Event]) -> Vec<String> {
    words(events).into_iter().filter(|word| word.starts_with("result")).collect()
}

fn orders(two: &Pair) -> (usize, usize) {
    (two.home.runner.orders().len(), two.other.runner.orders().len())
}

async fn until_home_is(two: &Pair, state: NodeState) {
    while two.other.service.core.membership.state_of(NodeId::ONLY) != Some(state) {
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_to_an_agent_of_a_lost_node_runs_at_another_one() {
    let two = roaming(vec![said("one")], vec![said("two"), said("three")]).await;
    let id = two.home.launch("hi").await;
    two.home.watch(id).await;
    two.kill_home().await;
    until_home_is(&two, NodeState::Lost).await;
    assert_eq!(two.other.service.home_of(&two.home.store.saved_agent(id).unwrap()), None);
    for count in [2, 3] {
        two.other.service.send(id, "go on".into(), None).await.unwrap();
        assert_eq!(results(&two.other.watch(id).await), vec!["result completed -"; count]);
    }
    assert_eq!(orders(&two), (1, 2));
    let agent = two.home.store.saved_agent(id).unwrap();
    assert_eq!((agent.home, agent.cwd.is_empty()), (Some(NodeId(2)), false), "it is at home there");
    let back = two.restart_home().await;
    back.service.send(id, "again".into(), None).await.unwrap();
    until(&back, id, |agent| agent.turn.0 == 4 && !agent.status.is_active()).await;
    assert_eq!(orders(&two).0, 1, "it stays there");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waited_at_a_lost_node_runs_at_another_one() {
    let two = roaming(vec![vec![Step::line("say half"), Step::Hang]], vec![said("after")]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |event| matches!(event.body, EventBody::TextDelta { .. })).await;
    two.home.service.send(id, "wait".into(), None).await.unwrap();
    two.kill_home().await;
    let seen = two.other.watch(id).await;
    assert_eq!(results(&seen), ["result interrupted node_lost", "result completed -"]);
    assert_eq!(orders(&two), (1, 1));
    assert_eq!(two.other.service.stats().nodes.turns_of_lost_nodes, 1);
}

/// Otherwise, its prompt might run twice.
#[tokio::test(start_paused = true)]
async fn a_turn_of_a_lost_node_ends_if_a_failover_may_have_lost_that_it_ran() {
    let two = roaming(vec![vec![Step::line("say half"), Step::Hang]], vec![said("after")]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |event| matches!(event.body, EventBody::TextDelta { .. })).await;
    two.home.service.send(id, "wait".into(), None).await.unwrap();
    two.kill_home().await;
    two.other.store.lose_starts();
    let seen = two.other.watch(id).await;
    assert_eq!(results(&seen), ["result interrupted node_lost"; 2]);
    assert_eq!(orders(&two), (1, 0));
    // What comes later has not begun.
    two.other.service.send(id, "go on".into(), None).await.unwrap();
    let seen = two.other.watch(id).await;
    assert_eq!(results(&seen).last().unwrap(), "result completed -");
    assert_eq!(orders(&two), (1, 1));
}

/// The next message comes before anybody has ended the turn that waits.
#[tokio::test(start_paused = true)]
async fn a_message_lets_no_agent_go_whose_turn_may_have_run() {
    let two = roaming(vec![said("one")], vec![said("after")]).await;
    let id = two.home.launch("hi").await;
    two.home.watch(id).await;
    let pulse = two.other.store.nodes().await.unwrap()[0].pulse;
    two.kill_home().await;
    two.other.service.send(id, "it may have run".into(), None).await.unwrap();
    two.other.store.lose_starts();
    assert!(two.other.store.declare_lost(NodeId::ONLY, pulse).await.unwrap());
    two.other.service.core.membership.note_lost(NodeId::ONLY);
    two.other.service.send(id, "more".into(), None).await.unwrap();
    let seen = two.other.watch(id).await;
    let expected = ["result completed -", "result interrupted node_lost", "result completed -"];
    assert_eq!(results(&seen), expected, "only what came before the failover may have run");
    assert_eq!(orders(&two), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_while_the_turns_of_a_lost_node_end_is_accepted() {
    let two = roaming(vec![vec![Step::Hang]], vec![said("after")]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |_| true).await;
    let pulse = two.other.store.nodes().await.unwrap()[0].pulse;
    two.kill_home().await;
    assert!(two.other.store.declare_lost(NodeId::ONLY, pulse).await.unwrap());
    two.other.service.core.membership.note_lost(NodeId::ONLY);
    two.other.service.send(id, "more".into(), None).await.unwrap();
    let seen = two.other.watch(id).await;
    assert_eq!(results(&seen), ["result interrupted node_lost", "result completed -"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_ends_what_it_runs_and_others_take_the_rest() {
    let two = roaming(vec![said("one"), vec![Step::Hang]], vec![said("two"), said("three")]).await;
    let idle = two.home.launch("idle").await;
    two.home.watch(idle).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |_| true).await;
    two.home.service.send(id, "wait".into(), None).await.unwrap();
    assert!(two.home.service.shutdown(AtStop::Leave, Duration::from_mins(1)).await);
    let seen = two.other.watch(id).await;
    assert_eq!(results(&seen), ["result interrupted node_stopped", "result completed -"]);
    two.other.service.send(idle, "go on".into(), None).await.unwrap();
    assert_eq!(results(&two.other.watch(idle).await), ["result completed -"; 2]);
    assert_eq!(orders(&two), (2, 2));
    assert_eq!(two.other.service.nodes().await.unwrap()[0].node.state, NodeState::Away);
}

/// After a failover of the database, no agent is let go before all nodes have saved again what it has lost.
#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_waits_until_the_store_has_caught_up() {
    let two = roaming(vec![said("one")], vec![said("two")]).await;
    let id = two.home.launch("hi").await;
    two.home.watch(id).await;
    two.home.store.refuse_leaving(9, || StoreError::Busy);
    assert!(two.home.service.shutdown(AtStop::Leave, Duration::from_mins(1)).await);
    assert!(two.home.store.saved_agent(id).unwrap().is_unclaimed());
    two.other.service.send(id, "go on".into(), None).await.unwrap();
    assert_eq!(results(&two.other.watch(id).await), ["result completed -"; 2]);
}

/// Others do the rest when it is declared lost.
#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_does_not_wait_for_longer_than_its_patience() {
    let two = roaming(vec![said("one")], Vec::new()).await;
    let id = two.home.launch("hi").await;
    two.home.watch(id).await;
    two.home.store.refuse_leaving(u32::MAX, || StoreError::Busy);
    let (patience, started) = (Duration::from_mins(1), Instant::now());
    assert!(!two.home.service.shutdown(AtStop::Leave, patience).await);
    assert!(started.elapsed() < patience + Duration::from_secs(1));
    assert_eq!(two.home.store.saved_agent(id).unwrap().home, Some(NodeId::ONLY));
    assert_eq!(two.other.service.nodes().await.unwrap()[0].node.state, NodeState::Away);
}

/// Without the wait for the end of its patience: if the database is gone, a server must still stop.
#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_tries_again_a_few_times_if_the_store_fails() {
    for (error, failures, is_let_go) in [
        ((|| StoreError::Unreachable("cut".into())) as fn() -> _, 5, true),
        (|| StoreError::Unreachable("cut".into()), 6, false),
        (|| StoreError::Corrupt("a page".into()), 1, false),
    ] {
        let two = roaming(vec![said("one")], Vec::new()).await;
        let id = two.home.launch("hi").await;
        two.home.watch(id).await;
        two.home.store.refuse_leaving(failures, error);
        assert!(two.home.service.shutdown(AtStop::Leave, Duration::from_mins(1)).await);
        assert_eq!(two.home.store.saved_agent(id).unwrap().is_unclaimed(), is_let_go, "{failures}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_ends_all_turns_of_agents_that_need_it() {
    let two = pair([vec![Step::Hang], vec![Step::Hang], said("never")]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |_| true).await;
    two.home.service.send(id, "wait".into(), None).await.unwrap();
    let other = two.home.launch("hi").await;
    two.home.wait_for(other, |_| true).await;
    let without_a_place = two.home.launch("hi").await;
    assert!(two.home.service.shutdown(AtStop::Leave, Duration::from_mins(1)).await);
    let stopped = "result interrupted node_stopped";
    assert_eq!(results(&two.other.watch(id).await), [stopped; 2]);
    for agent in [other, without_a_place] {
        assert_eq!(results(&two.other.watch(agent).await), [stopped]);
        assert_eq!(two.home.store.saved_agent(agent).unwrap().home, Some(NodeId::ONLY));
    }
    assert_eq!(orders(&two), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_home_is_cancelled_and_purged_at_any_node() {
    let two = roaming(vec![said("one")], Vec::new()).await;
    let id = two.home.launch("hi").await;
    two.home.watch(id).await;
    assert!(two.home.service.shutdown(AtStop::Leave, Duration::from_mins(1)).await);
    assert!(two.home.store.saved_agent(id).unwrap().is_unclaimed());
    two.other.service.cancel(id).await.unwrap();
    let started = Instant::now();
    two.other.service.delete(id, Deletion::Purge).await.unwrap();
    assert!(two.home.store.saved_agent(id).is_none(), "no node has to be waited for");
    assert!(started.elapsed() < Duration::from_secs(1));
}

/// A node without the agent's type beside two that have it. It reads the beat of the home before the other one, so it
/// notices first that the home is lost.
async fn roaming_beside_a_stranger(other: Vec<Vec<Step>>) -> (Pair, Harness) {
    let home_bus = Arc::new(MemoryBus::new(3));
    let (other_bus, bus) = (Arc::new(home_bus.another()), Arc::new(home_bus.another()));
    let home =
        roaming_node(MemoryStore::shared(7), &home_bus, vec![vec![Step::line("say half"), Step::Hang]]).await;
    let forget_type = |outside: &mut Outside| {
        let kind = outside.types.listed.remove("scripted").expect("the type of all agents");
        outside.types.listed.insert("another".to_owned(), kind);
    };
    sleep(Duration::from_secs(1)).await;
    let stranger = roaming_node_with(home.store.as_node(NodeId(3)), &bus, Vec::new(), forget_type).await;
    sleep(Duration::from_secs(1)).await;
    let other = roaming_node(home.store.as_node(NodeId(2)), &other_bus, other).await;
    (Pair { home, other, home_bus, other_bus }, stranger)
}

#[tokio::test(start_paused = true)]
async fn a_node_without_the_type_leaves_the_turns_of_a_lost_node_to_one_that_has_it() {
    let (two, stranger) = roaming_beside_a_stranger(vec![said("after"), said("more")]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |event| matches!(event.body, EventBody::TextDelta { .. })).await;
    two.home.service.send(id, "wait".into(), None).await.unwrap();
    two.kill_home().await;
    let seen = stranger.watch(id).await;
    assert_eq!(results(&seen), ["result interrupted node_lost", "result completed -"]);
    assert_eq!((orders(&two), stranger.runner.orders().len()), ((1, 1), 0));
    stranger.service.send(id, "to its new home".into(), None).await.unwrap();
    until(&two.other, id, |agent| agent.turn.0 == 3 && !agent.status.is_active()).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_without_the_type_says_where_a_message_is_to_be_sent() {
    let (two, stranger) = roaming_beside_a_stranger(vec![said("after")]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |_| true).await;
    two.kill_home().await;
    two.other.watch(id).await;
    while stranger.service.core.membership.state_of(NodeId::ONLY) != Some(NodeState::Lost) {
        sleep(Duration::from_millis(100)).await;
    }
    let refused = stranger.service.send(id, "more".into(), None).await.unwrap_err();
    assert!(matches!(refused, Refusal::TypeNotHere { .. }), "{refused:?}");
    assert!(
        refused.to_string().ends_with("send the request to a node that has the type: node-2"),
        "{refused}"
    );
    two.other.service.send(id, "more".into(), None).await.unwrap();
    assert_eq!(two.other.watch(id).await.last().map(|event| event.turn.0), Some(2));
}

#[tokio::test(start_paused = true)]
async fn the_turns_of_a_lost_node_end_although_no_node_has_the_type() {
    let (two, stranger) = roaming_beside_a_stranger(Vec::new()).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |_| true).await;
    two.home.service.send(id, "wait".into(), None).await.unwrap();
    two.kill_other().await;
    two.kill_home().await;
    assert_eq!(results(&stranger.watch(id).await), ["result interrupted node_lost"; 2]);
    let refused = stranger.service.send(id, "more".into(), None).await.unwrap_err();
    assert!(refused.to_string().contains("add the type to the configuration of a node"), "{refused}");
}

/// Nobody needs it there: the agent has an empty folder at its new home.
#[tokio::test(start_paused = true)]
async fn the_folder_of_an_agent_that_has_left_its_home_is_removed_there() {
    let two = roaming(vec![said("one"), said("again")], vec![said("two")]).await;
    let id = two.home.launch("hi").await;
    two.home.watch(id).await;
    two.kill_home().await;
    until_home_is(&two, NodeState::Lost).await;
    two.other.service.send(id, "go on".into(), None).await.unwrap();
    two.other.watch(id).await;
    assert_eq!((two.home.workspace.own_folders(), two.other.workspace.own_folders()), (vec![id], vec![id]));
    let back = two.restart_home().await;
    while !back.workspace.own_folders().is_empty() {
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_secs(10)).await;
    let forgotten = back.runner.forgotten();
    assert_eq!((forgotten, two.other.workspace.own_folders()), (vec![id], vec![id]), "once, and only there");
}

#[tokio::test(start_paused = true)]
async fn the_folder_of_an_agent_that_comes_back_to_its_home_is_kept() {
    for wait in [0, 1, 500, 5_000] {
        let two = roaming(vec![said("one"), said("again")], Vec::new()).await;
        let id = two.home.launch("hi").await;
        two.home.watch(id).await;
        two.kill_other().await;
        assert!(two.home.store.let_go(id).await.unwrap());
        sleep(Duration::from_millis(wait)).await;
        two.home.service.send(id, "go on".into(), None).await.unwrap();
        until(&two.home, id, |agent| agent.turn.0 == 2 && !agent.status.is_active()).await;
        sleep(Duration::from_secs(10)).await;
        assert_eq!(two.home.workspace.own_folders(), [id], "after {wait} ms");
    }
}
