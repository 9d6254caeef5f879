//! Launches that run at another node than the one that was asked.

use tokenrail_domain::ImageType;
use tokenrail_ports::testing::CountingRandom;
use tokenrail_ports::testing::samples::image;

use super::*;

/// A node whose agents are of these types. Its ids begin at `first`, so that those of two nodes differ.
async fn node_with(
    (store, first): (MemoryStore, u64),
    bus: &Arc<MemoryBus>,
    scripts: Vec<Vec<Step>>,
    types: &[&str],
) -> Harness {
    let (store, runner) = (Arc::new(store), Arc::new(ScriptedRunner::new(scripts)));
    let workspace = Arc::new(NotedWorkspace::default());
    let random = Arc::new(CountingRandom::starting_at(first));
    let mut outside = Outside { bus: bus.clone(), random, ..outside(&store, &runner, &workspace) };
    let kind = outside.types.listed["scripted"].clone();
    outside.types.listed = types.iter().map(|name| ((*name).to_owned(), kind.clone())).collect();
    let service = AgentService::new(outside, tiny_limits(), Handle::current());
    service.recover().await.unwrap();
    Harness { service, store, runner, workspace }
}

/// Two nodes that know each other's types. The first one has the type `scripted`, and these are those of the second.
async fn two_with(home: Vec<Vec<Step>>, other: Vec<Vec<Step>>, types: &[&str]) -> Pair {
    let home_bus = Arc::new(MemoryBus::new(3));
    let other_bus = Arc::new(home_bus.another());
    let home = node_with((MemoryStore::shared(7), 0), &home_bus, home, &["scripted"]).await;
    let other = node_with((home.store.as_node(NodeId(2)), 1000), &other_bus, other, types).await;
    while !types.iter().all(|kind| home.service.core.membership.runs_elsewhere(kind)) {
        sleep(Duration::from_millis(100)).await;
    }
    Pair { home, other, home_bus, other_bus }
}

/// Two nodes with the same type. The first one has no free slot: two agents hang there.
async fn home_is_full(other: Vec<Vec<Step>>) -> (Pair, [AgentId; 2]) {
    let hang = || vec![Step::Hang];
    let two = two_with(vec![hang(), hang(), said("late")], other, &["scripted"]).await;
    let full = [two.home.launch("hi").await, two.home.launch("hi").await];
    for id in full {
        two.home.wait_for(id, |_| true).await;
    }
    (two, full)
}

fn orders(two: &Pair) -> (usize, usize) {
    (two.home.runner.orders().len(), two.other.runner.orders().len())
}

async fn ask(h: &Harness, change: impl FnOnce(&mut Launch)) -> Result<AgentId, Refusal> {
    let mut launch = Launch { prompt: "hi".into(), ..Launch::default() };
    change(&mut launch);
    h.service.launch(launch).await.map(|outcome| outcome.agent.id)
}

#[tokio::test(start_paused = true)]
async fn a_launch_at_a_node_without_a_free_place_runs_at_another_one() {
    for is_broken in [false, true] {
        let (two, _) = home_is_full(vec![said("there")]).await;
        if is_broken {
            two.home_bus.break_off();
            two.other_bus.break_off();
        }
        let id = two.home.launch("hi").await;
        let seen = two.home.watch(id).await;
        assert_eq!(words(&seen).last().unwrap(), "result completed -");
        assert_eq!(orders(&two), (2, 1));
        let agent = two.home.store.saved_agent(id).unwrap();
        assert_eq!((agent.home, agent.cwd.is_empty()), (Some(NodeId(2)), false));
        assert_eq!(two.other.workspace.own_folders(), [id], "its node has made its folder");
        assert!(!two.home.workspace.own_folders().contains(&id));
    }
}

#[tokio::test(start_paused = true)]
async fn a_launch_waits_for_the_first_place_that_is_free_anywhere_and_runs_once() {
    let hang = || vec![Step::Hang];
    let (two, full) = home_is_full(vec![hang(), hang(), said("there")]).await;
    for _ in 0..2 {
        let id = two.other.launch("hi").await;
        two.other.wait_for(id, |_| true).await;
    }
    let id = two.other.launch("hi").await;
    sleep(Duration::from_secs(10)).await;
    assert!(two.home.store.saved_agent(id).unwrap().is_unclaimed());
    two.other.service.cancel(full[0]).await.unwrap();
    let seen = two.other.watch(id).await;
    assert_eq!(words(&seen).last().unwrap(), "result completed -");
    assert_eq!(two.home.store.saved_agent(id).unwrap().home, Some(NodeId(1)));
    sleep(Duration::from_secs(10)).await;
    assert_eq!(orders(&two), (3, 2), "once");
}

#[tokio::test(start_paused = true)]
async fn a_launch_runs_where_its_type_is() {
    let two = two_with(vec![], vec![said("there")], &["rare"]).await;
    let id = ask(&two.home, |launch| launch.kind = Some("rare".into())).await.unwrap();
    two.home.watch(id).await;
    assert_eq!(orders(&two), (0, 1));
    let refused = ask(&two.home, |launch| launch.kind = Some("none".into())).await;
    assert!(matches!(&refused, Err(Refusal::UnknownType { name, .. }) if name == "none"), "{refused:?}");
    two.other.service.core.closing.cancel();
    while two.home.service.core.membership.runs_elsewhere("rare") {
        sleep(Duration::from_millis(100)).await;
    }
    let refused = ask(&two.home, |launch| launch.kind = Some("rare".into())).await;
    assert!(matches!(refused, Err(Refusal::UnknownType { .. })), "its node is lost: {refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_launch_and_an_image_wait_for_a_node_that_is_away() {
    let two = two_with(vec![], vec![said("one")], &["rare"]).await;
    let old = ask(&two.home, |launch| launch.kind = Some("rare".into())).await.unwrap();
    two.home.watch(old).await;
    assert!(two.other.service.shutdown(crate::AtStop::Keep, Duration::from_secs(5)).await);
    while two.home.service.core.membership.state_of(NodeId(2)) != Some(NodeState::Away) {
        sleep(Duration::from_millis(100)).await;
    }
    let new = ask(&two.home, |launch| launch.kind = Some("rare".into())).await.unwrap();
    assert!(two.home.store.saved_agent(new).unwrap().is_unclaimed());
    let prompt = crate::Prompt { text: "look".into(), images: vec![image(ImageType::Png, "one")] };
    two.home.service.send(old, prompt, None).await.unwrap();
    let store = two.home.store.as_node(NodeId(2));
    let back = node_with((store, 2000), &two.other_bus, vec![said("two"), said("three")], &["rare"]).await;
    for id in [old, new] {
        assert_eq!(words(&two.home.watch(id).await).last().unwrap(), "result completed -");
    }
    assert_eq!(back.runner.orders().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_needs_the_disk_of_a_node_stays_there() {
    let (two, full) = home_is_full(vec![]).await;
    let id = ask(&two.home, |launch| launch.cwd = Some("/allowed/work".into())).await.unwrap();
    sleep(Duration::from_secs(10)).await;
    assert_eq!(orders(&two), (2, 0));
    two.home.service.cancel(full[0]).await.unwrap();
    two.home.watch(id).await;
    assert_eq!(orders(&two), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_launch_may_name_its_node() {
    let two = two_with(vec![said("here")], vec![said("one"), said("two")], &["scripted"]).await;
    for node in ["node-2", "2"] {
        let id = ask(&two.home, |launch| launch.node = Some(node.into())).await.unwrap();
        assert_eq!(words(&two.home.watch(id).await).last().unwrap(), "result completed -");
        assert!(two.other.workspace.own_folders().contains(&id));
    }
    let id = ask(&two.home, |launch| launch.node = Some("node-1".into())).await.unwrap();
    two.home.watch(id).await;
    assert_eq!(orders(&two), (1, 2));
    let with_folder = |launch: &mut Launch| {
        (launch.node, launch.cwd) = (Some("node-2".into()), Some("/allowed/work".into()));
    };
    assert!(matches!(ask(&two.home, with_folder).await, Err(Refusal::FolderElsewhere)));
    let refused = ask(&two.home, |launch| launch.node = Some("node-3".into())).await;
    assert!(matches!(&refused, Err(Refusal::NoNodeNamed(node)) if node == "node-3"), "{refused:?}");
    let rare = |launch: &mut Launch| {
        (launch.node, launch.kind) = (Some("node-2".into()), Some("rare".into()));
    };
    let refused = ask(&two.home, rare).await;
    assert!(matches!(&refused, Err(Refusal::UnknownType { known, .. }) if known.contains("scripted")));
    two.other.service.core.closing.cancel();
    while two.home.service.nodes().await.unwrap()[1].node.state == NodeState::Alive {
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_secs(5)).await;
    let refused = ask(&two.home, |launch| launch.node = Some("node-2".into())).await;
    assert!(matches!(&refused, Err(Refusal::NodeNotAlive { node }) if node == "node-2"), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn on_a_store_of_one_node_a_launch_may_name_that_node() {
    let h = crate::tests::harness::harness(ScriptedRunner::new([said("a")]));
    h.service.recover().await.unwrap();
    let id = ask(&h, |launch| launch.node = Some("1".into())).await.unwrap();
    h.watch(id).await;
    let refused = ask(&h, |launch| launch.node = Some("2".into())).await;
    assert!(matches!(refused, Err(Refusal::NoNodeNamed(_))), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_waits_for_a_node_can_be_cancelled_and_purged() {
    let hang = || vec![Step::Hang];
    let (two, _) = home_is_full(vec![hang(), hang()]).await;
    for _ in 0..2 {
        let id = two.other.launch("hi").await;
        two.other.wait_for(id, |_| true).await;
    }
    let cancelled = two.home.launch("hi").await;
    two.home.service.cancel(cancelled).await.unwrap();
    assert_eq!(words(&two.home.watch(cancelled).await).last().unwrap(), "result cancelled -");
    let purged = two.home.launch("hi").await;
    two.home.service.delete(purged, Deletion::Purge).await.unwrap();
    until_gone(&two.home, purged).await;
    assert_eq!(orders(&two), (2, 2));
}

async fn until_gone(h: &Harness, id: AgentId) {
    while h.store.saved_agent(id).is_some() {
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_launch_whose_node_dies_ends_as_lost() {
    let (two, _) = home_is_full(vec![vec![Step::line("say half"), Step::Hang]]).await;
    let id = two.home.launch("hi").await;
    two.home.wait_for(id, |event| matches!(event.body, EventBody::TextDelta { .. })).await;
    two.other.service.core.closing.cancel();
    assert_eq!(errors(&two.home.watch(id).await), ["node_lost"]);
    assert_eq!(orders(&two), (2, 1), "no prompt runs twice");
}

#[tokio::test(start_paused = true)]
async fn a_message_to_an_agent_that_waits_for_a_node_runs_after_its_first_turn() {
    let hang = || vec![Step::Hang];
    let (two, full) = home_is_full(vec![hang(), hang()]).await;
    for _ in 0..2 {
        let id = two.other.launch("hi").await;
        two.other.wait_for(id, |_| true).await;
    }
    let id = two.other.launch("one").await;
    two.other.service.send(id, "two".into(), None).await.unwrap();
    two.home.service.cancel(full[0]).await.unwrap();
    until(&two.home, id, |agent| 1 <= agent.turn.0).await;
    two.other.service.cancel(id).await.unwrap();
    two.other.watch(id).await;
}

#[tokio::test(start_paused = true)]
async fn launches_that_wait_have_one_limit_for_all_nodes() {
    let hang = || vec![Step::Hang];
    let (two, full) = home_is_full(vec![hang(), hang()]).await;
    for _ in 0..2 {
        let id = two.other.launch("hi").await;
        two.other.wait_for(id, |_| true).await;
    }
    two.home.launch("waits").await;
    for h in [&two.home, &two.other] {
        let refused = ask(h, |_| {}).await;
        assert!(matches!(refused, Err(Refusal::TooManyQueuedLaunches)), "{refused:?}");
        let bound = ask(h, |launch| launch.cwd = Some("/allowed/work".into())).await;
        assert!(matches!(bound, Err(Refusal::TooManyQueuedLaunches)), "{bound:?}");
    }
    two.home.service.cancel(full[0]).await.unwrap();
    while ask(&two.other, |_| {}).await.is_err() {
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn launches_in_a_minute_have_one_limit_for_all_nodes() {
    let two = two_with(vec![], vec![], &["scripted"]).await;
    for _ in 0..120 {
        two.other.store.count_launch(120).await.unwrap();
    }
    for h in [&two.home, &two.other] {
        let refused = ask(h, |_| {}).await;
        assert!(
            matches!(refused, Err(Refusal::TooManyLaunches { wait }) if wait <= Duration::from_millis(500))
        );
    }
    sleep(Duration::from_secs(1)).await;
    ask(&two.home, |_| {}).await.unwrap();
}
