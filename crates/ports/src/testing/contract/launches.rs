//! Launches that another node takes than the one that has saved them.

use std::time::Duration;

use tokenrail_domain::{Agent, AgentId, NodeId, Timestamp, Turn, TurnNumber};

use super::nodes::{Servers, SharedStore, lose};
use super::saved;
use crate::testing::samples::{Scribe, launch, queued_turn};
use crate::{Created, Epoch, LaunchClaim, LaunchCount};

/// Launches the `n`th sample agent for another node.
async fn launched_for<S: SharedStore>(store: &S, n: u8, home: NodeId, kind: &str) -> (Agent, Turn) {
    let (agent, turn) = launch(n);
    let agent = Agent { home: Some(home), kind: kind.to_owned(), cwd: String::new(), ..agent };
    assert_eq!(store.create(agent.clone(), turn.clone().into(), None).await.unwrap(), Created::New);
    (agent, turn)
}

async fn claimed<S: SharedStore>(store: &S, types: &[&str], room: usize) -> Vec<AgentId> {
    let types = types.iter().map(|&kind| kind.to_owned()).collect();
    store.claim_launches(LaunchClaim { types, to_run: room, to_stop: 9 }).await.unwrap()
}

async fn home_of<S: SharedStore>(store: &S, agent: AgentId) -> Option<NodeId> {
    store.get(agent).await.unwrap().unwrap().home
}

pub async fn a_launch_for_any_node_is_taken_by_one<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    let (first, second) = servers.two().await;
    third.join().await.unwrap();
    let (agent, turn) = launched_for(one, 1, NodeId::ANY, "a").await;
    let read = one.get(agent.id).await.unwrap().unwrap();
    assert!(read.is_unclaimed() && read.cwd.is_empty() && read.queued == 1, "{read:?}");
    for store in [one, other] {
        assert_eq!(store.claim(agent.id).await.unwrap(), None, "nobody runs it yet");
        assert_eq!(store.errands(9).await.unwrap().turns, []);
        assert_eq!(store.with_open_turns(9).await.unwrap(), []);
    }
    lose(other, first).await;
    assert_eq!(other.orphans(9).await.unwrap(), [], "that its writer is lost does not matter");
    assert_eq!(claimed(other, &["a"], 9).await, [agent.id]);
    for store in [other, third] {
        assert_eq!(claimed(store, &["a"], 9).await, []);
    }
    assert_eq!(home_of(one, agent.id).await, Some(second));
    let epoch = other.claim(agent.id).await.unwrap().unwrap();
    assert!(Epoch::FIRST < epoch);
    assert_eq!(other.errands(9).await.unwrap().turns.len(), 1, "a restart finds it");
    other.set_folder(agent.id, "/made".into()).await.unwrap();
    assert_eq!(third.get(agent.id).await.unwrap().unwrap().cwd, "/made");
    let mut scribe = Scribe::new(&agent).at_epoch(epoch);
    saved(other, scribe.start(&turn)).await;
}

pub async fn nodes_take_the_oldest_launches_that_they_can_run<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    servers.two().await;
    third.join().await.unwrap();
    let mut agents = Vec::new();
    for (n, kind) in [(1, "a"), (2, "b\0"), (3, "a"), (4, "a")] {
        agents.push(launched_for(one, n, NodeId::ANY, kind).await.0.id);
    }
    assert_eq!(claimed(other, &["a", "b\0"], 0).await, []);
    assert_eq!(claimed(other, &[], 9).await, []);
    assert_eq!(claimed(other, &["a"], 1).await, agents[..1]);
    assert_eq!(claimed(third, &["c", "b\0"], 9).await, agents[1..2]);
    assert_eq!(claimed(one, &["a", "b\0"], 9).await, agents[2..]);
}

pub async fn a_launch_that_is_only_to_be_ended_is_taken_by_any_node<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (_, second) = servers.two().await;
    let (cancelled, turn) = launched_for(one, 1, NodeId::ANY, "a").await;
    let (waits, _) = launched_for(one, 2, NodeId::ANY, "a").await;
    one.cancel(cancelled.id, Timestamp(10)).await.unwrap();
    assert_eq!(other.claim_launches(LaunchClaim::default()).await.unwrap(), []);
    assert_eq!(claimed(other, &[], 0).await, [cancelled.id]);
    assert_eq!(home_of(one, cancelled.id).await, Some(second));
    let epoch = other.claim(cancelled.id).await.unwrap().unwrap();
    saved(other, Scribe::new(&cancelled).at_epoch(epoch).start(&turn)).await;
    assert_eq!(home_of(one, waits.id).await, Some(NodeId::ANY));
}

pub async fn of_several_nodes_one_takes_each_launch<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    servers.two().await;
    third.join().await.unwrap();
    let mut agents = Vec::new();
    for n in 0..12 {
        agents.push(launched_for(one, n, NodeId::ANY, "a").await.0.id);
    }
    let mut all = Vec::new();
    while all.len() < agents.len() {
        let (a, b, c) =
            tokio::join!(claimed(one, &["a"], 2), claimed(other, &["a"], 2), claimed(third, &["a"], 2));
        all.extend([a, b, c].concat());
    }
    all.sort();
    assert_eq!(all, agents, "each once");
}

pub async fn what_a_lost_node_has_taken_is_taken_over<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (_, second) = servers.two().await;
    let (agent, _) = launched_for(one, 1, NodeId::ANY, "a").await;
    assert_eq!(claimed(other, &["a"], 9).await, [agent.id]);
    lose(one, second).await;
    assert_eq!(one.orphans(9).await.unwrap(), [agent.id]);
    let (next, _) = launched_for(one, 2, NodeId::ANY, "a").await;
    assert_eq!(claimed(other, &["a"], 9).await, [], "a lost node takes nothing");
    assert_eq!(claimed(one, &["a"], 9).await, [next.id]);
}

pub async fn a_launch_for_one_node_is_found_by_that_node<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (_, second) = servers.two().await;
    let (agent, _) = launched_for(one, 1, second, "a").await;
    assert_eq!(claimed(one, &["a"], 9).await, []);
    assert_eq!(one.claim(agent.id).await.unwrap(), None);
    assert_eq!(one.errands(9).await.unwrap().turns, []);
    let errands = other.errands(9).await.unwrap().turns;
    assert_eq!(errands.iter().map(|errand| errand.agent).collect::<Vec<_>>(), [agent.id]);
    assert!(other.claim(agent.id).await.unwrap().is_some());
}

pub async fn the_agent_types_of_a_node_are_known<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    servers.two().await;
    let types = vec!["a".to_owned(), "b \0 \"ä\"".to_owned()];
    one.offer(types.clone()).await.unwrap();
    for nodes in [other.nodes().await.unwrap(), other.beat().await.unwrap(), one.beat().await.unwrap()] {
        assert_eq!(nodes.into_iter().map(|node| node.types).collect::<Vec<_>>(), [types.clone(), Vec::new()]);
    }
    one.offer(Vec::new()).await.unwrap();
    assert_eq!(other.nodes().await.unwrap()[0].types, Vec::<String>::new());
}

pub async fn the_launches_of_all_nodes_are_counted_together<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    for store in [one, other, third] {
        assert_eq!(store.count_launch(3).await.unwrap(), LaunchCount::Counted);
    }
    for store in [one, other, one] {
        let LaunchCount::TooMany { wait } = store.count_launch(3).await.unwrap() else {
            panic!("it counted")
        };
        assert!(Duration::from_secs(1) < wait && wait <= Duration::from_secs(20), "{wait:?}");
    }
}

pub async fn launches_that_wait_are_counted_whoever_has_saved_them<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    let (_, second) = servers.two().await;
    assert_eq!(third.waiting_launches().await.unwrap(), 0);
    let (here, turn) = launch(1);
    one.create(here.clone(), turn.clone().into(), None).await.unwrap();
    let (anywhere, _) = launched_for(one, 2, NodeId::ANY, "a").await;
    launched_for(one, 3, second, "a").await;
    assert_eq!(other.waiting_launches().await.unwrap(), 3);
    saved(one, Scribe::new(&here).start(&turn)).await;
    other.cancel(anywhere.id, Timestamp(10)).await.unwrap();
    assert_eq!(other.waiting_launches().await.unwrap(), 1);
    one.enqueue(queued_turn(here.id, TurnNumber(0), "p").into(), 9, None).await.unwrap();
    assert_eq!(other.waiting_launches().await.unwrap(), 1, "a message is no launch");
}
