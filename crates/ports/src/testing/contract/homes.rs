//! Agents that have no home, because any node can run their turns.

use tokenrail_domain::{AgentId, NodeId, Timestamp, TurnNumber, TurnOutcome};

use super::nodes::{Servers, SharedStore, ended, lose};
use super::{agent_now, launched, running, saved};
use crate::testing::samples::{Scribe, launch, notice, queued_turn};
use crate::{Deletion, Epoch, LaunchClaim, StoreError};

async fn home<S: SharedStore>(store: &S, agent: AgentId) -> Option<NodeId> {
    store.get(agent).await.unwrap().unwrap().home
}

async fn tell<S: SharedStore>(store: &S, agent: AgentId) {
    store.enqueue(queued_turn(agent, TurnNumber(0), "go on").into(), 9, None).await.unwrap();
}

/// The agents of the samples that this node takes.
async fn claimed<S: SharedStore>(store: &S) -> Vec<AgentId> {
    let claim = LaunchClaim { types: vec![launch(1).0.kind], to_run: 9, to_stop: 9 };
    store.claim_launches(claim).await.unwrap()
}

/// Runs the turn that waits, as this node.
async fn run<S: SharedStore>(store: &S, agent: AgentId) -> Epoch {
    let epoch = store.claim(agent).await.unwrap().unwrap();
    let turn = store.open_turns(agent).await.unwrap().remove(0);
    let mut scribe = Scribe::new(&agent_now(store, agent).await).at_epoch(epoch);
    saved(store, scribe.start(&turn)).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    epoch
}

pub async fn an_agent_of_a_lost_node_goes_on_at_any_node<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    let (lost, _) = servers.two().await;
    let number = third.join().await.unwrap();
    let idle = ended(one, 1).await;
    assert!(!other.let_go(idle).await.unwrap(), "its home lives");
    lose(other, lost).await;
    assert!(other.let_go(idle).await.unwrap());
    assert!(!third.let_go(idle).await.unwrap(), "it has no home any more");
    let now = other.get(idle).await.unwrap().unwrap();
    assert!(now.is_unclaimed() && now.cwd.is_empty(), "{now:?}");
    for store in [other, third] {
        assert_eq!(claimed(store).await, [], "it has nothing to do");
        assert_eq!(store.orphans(9).await.unwrap(), []);
    }
    tell(other, idle).await;
    assert_eq!(claimed(third).await, [idle]);
    assert_eq!(home(other, idle).await, Some(number));
    assert!(Epoch::FIRST < run(third, idle).await);
    one.join().await.unwrap();
    assert_eq!((one.claim(idle).await.unwrap(), one.let_go(idle).await.unwrap()), (None, false));
}

pub async fn a_turn_that_waits_at_a_lost_node_is_let_go_by_its_taker<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    let (lost, _) = servers.two().await;
    third.join().await.unwrap();
    let (agent, turn, former) = launched(one, 1).await;
    lose(other, lost).await;
    assert!(!other.let_go(agent.id).await.unwrap(), "its owner could still begin the turn");
    let taken = other.take_over(agent.id).await.unwrap().unwrap();
    assert!(!third.let_go(agent.id).await.unwrap(), "another node owns it");
    one.join().await.unwrap();
    assert!(other.let_go(agent.id).await.unwrap(), "although its home is back");
    for (store, mut stale) in [(one, former.clone()), (other, former.at_epoch(taken))] {
        let late = store.append(stale.start(&turn)).await;
        assert!(matches!(late, Err(StoreError::Fenced)), "{late:?}");
    }
    assert_eq!(claimed(third).await, [agent.id]);
    assert!(taken < run(third, agent.id).await);
}

pub async fn a_running_turn_keeps_its_owner<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (lost, _) = servers.two().await;
    let (agent, scribe) = running(one, 1).await;
    assert!(!one.let_go(agent.id).await.unwrap());
    lose(other, lost).await;
    let epoch = other.take_over(agent.id).await.unwrap().unwrap();
    assert!(!other.let_go(agent.id).await.unwrap());
    let mut scribe = scribe.at_epoch(epoch);
    saved(other, scribe.say(vec![notice("still its owner")])).await;
    saved(other, scribe.end(TurnOutcome::Interrupted)).await;
    assert!(other.let_go(agent.id).await.unwrap());
}

pub async fn a_node_lets_only_its_own_agents_go<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (first, second) = servers.two().await;
    let (mine, theirs) = (ended(one, 1).await, ended(other, 2).await);
    assert!(!other.let_go(mine).await.unwrap() && !one.let_go(theirs).await.unwrap());
    assert!(!one.let_go(launch(9).0.id).await.unwrap(), "there is no such agent");
    assert_eq!((home(one, mine).await, home(one, theirs).await), (Some(first), Some(second)));
    one.delete(mine, Timestamp(9), Deletion::KeepHistory).await.unwrap();
    assert!(!one.let_go(mine).await.unwrap(), "nothing runs there any more");
    lose(one, second).await;
    assert!(!other.let_go(theirs).await.unwrap(), "a node that is lost");
    assert!(one.let_go(theirs).await.unwrap());
}

pub async fn a_node_that_leaves_lets_its_agents_go<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (first, second) = servers.two().await;
    let (idle, more) = (ended(one, 1).await, ended(one, 2).await);
    let (waits, ..) = launched(one, 3).await;
    let (runs, _) = running(one, 4).await;
    let theirs = ended(other, 5).await;
    let types = || vec![launch(1).0.kind];
    assert_eq!(one.let_all_go(vec!["another type".into()], 9).await.unwrap(), 0);
    assert_eq!(one.let_all_go(types(), 2).await.unwrap(), 2);
    assert_eq!(one.let_all_go(types(), 9).await.unwrap(), 1);
    assert_eq!(one.let_all_go(types(), 9).await.unwrap(), 0);
    for agent in [idle, more, waits.id] {
        assert_eq!(home(other, agent).await, Some(NodeId::ANY));
    }
    assert_eq!((home(other, runs.id).await, home(other, theirs).await), (Some(first), Some(second)));
    assert_eq!(claimed(other).await, [waits.id]);
    run(other, waits.id).await;
}

pub async fn an_agent_without_a_home_is_purged_by_any_node<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    servers.two().await;
    third.join().await.unwrap();
    let idle = ended(one, 1).await;
    assert!(one.let_go(idle).await.unwrap());
    one.delete(idle, Timestamp(9), Deletion::Purge).await.unwrap();
    for store in [one, other, third] {
        assert_eq!(store.errands(9).await.unwrap().to_purge, [idle]);
    }
    assert!(other.purge(idle, Timestamp(10)).await.unwrap());
    for (store, left) in [(one, vec![idle]), (other, vec![]), (third, vec![])] {
        let errands = store.errands(9).await.unwrap();
        assert_eq!((errands.to_purge, errands.leftovers), (vec![], left));
    }
}

pub async fn the_former_home_of_an_agent_learns_that_its_folder_is_left<S: SharedStore>(
    servers: &Servers<S>,
) {
    let Servers { one, other, third, .. } = servers;
    let (lost, _) = servers.two().await;
    third.join().await.unwrap();
    let left = async |store: &S| store.errands(9).await.unwrap().leftovers;
    let (first, second, gone) = (ended(one, 1).await, ended(one, 2).await, ended(other, 3).await);
    for agent in [first, second] {
        assert!(one.let_go(agent).await.unwrap());
    }
    assert_eq!(left(one).await, [first, second]);
    tell(third, first).await;
    assert_eq!(claimed(one).await, [first]);
    assert_eq!(left(one).await, [second], "it is at home there again, in its folder");
    run(one, first).await;
    tell(third, second).await;
    assert_eq!(claimed(third).await, [second]);
    assert_eq!((left(one).await, left(third).await), (vec![second], vec![]), "its new folder is in use");
    run(third, second).await;
    assert_eq!(other.let_all_go(vec![launch(1).0.kind], 9).await.unwrap(), 1);
    assert_eq!(left(other).await, [gone]);
    one.forget_leftover(second).await.unwrap();
    lose(other, lost).await;
    assert!(third.let_go(first).await.unwrap());
    one.join().await.unwrap();
    assert_eq!(left(one).await, [first]);
}
