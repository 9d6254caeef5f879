//! Agents of a node that is lost, and who may continue or end them.

use tokenrail_domain::{Agent, AgentId, NodeId, TurnNumber, TurnOutcome};

use super::nodes::{Servers, SharedStore, ended, lose};
use super::{agent_now, everything, launched, running, saved};
use crate::testing::samples::{Scribe, launch, notice, queued_turn};
use crate::{Epoch, StoreError};

async fn orphans<S: SharedStore>(store: &S) -> Vec<AgentId> {
    store.orphans(9).await.unwrap()
}

async fn home<S: SharedStore>(store: &S, agent: AgentId) -> Option<NodeId> {
    store.get(agent).await.unwrap().unwrap().home
}

/// Sends a message to an agent.
async fn tell<S: SharedStore>(store: &S, agent: AgentId) {
    store.enqueue(queued_turn(agent, TurnNumber(0), "go on").into(), 9, None).await.unwrap();
}

/// Writes as the owner of this epoch.
async fn scribe_of<S: SharedStore>(store: &S, agent: AgentId, epoch: Epoch) -> Scribe {
    Scribe::new(&agent_now(store, agent).await).at_epoch(epoch)
}

async fn is_fenced<S: SharedStore>(store: &S, scribe: &Scribe) {
    let answer = store.append(scribe.rehearse(vec![notice("late")])).await;
    assert!(matches!(answer, Err(StoreError::Fenced)), "{answer:?}");
}

pub async fn what_a_lost_node_ran_is_taken_over_and_its_owner_fenced<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (lost, _) = servers.two().await;
    let (runs, mut former) = running(one, 1).await;
    saved(one, former.say(vec![notice("saved")])).await;
    let (waits, turn, queued) = launched(one, 2).await;
    let idle = ended(one, 3).await;
    running(other, 4).await;
    assert_eq!(orphans(other).await, []);
    lose(other, lost).await;
    assert_eq!(orphans(other).await, [runs.id, waits.id]);
    assert_eq!(other.orphans(1).await.unwrap(), [runs.id]);

    let epoch = other.take_over(runs.id).await.unwrap().unwrap();
    assert!(Epoch::FIRST < epoch);
    is_fenced(one, &former).await;
    assert_eq!(everything(other, runs.id).await.len(), 2);
    assert_eq!(other.claim(runs.id).await.unwrap(), Some(epoch), "it is the owner now");
    assert_eq!(one.claim(runs.id).await.unwrap(), None);
    assert_eq!(orphans(other).await, [waits.id]);
    let taken = other.errands(9).await.unwrap().turns;
    assert_eq!(taken[0].agent, runs.id, "also if the answer to the takeover was lost");
    assert_eq!(other.take_over(runs.id).await.unwrap(), None, "it has an owner");
    saved(other, former.at_epoch(epoch).end(TurnOutcome::Interrupted)).await;

    let epoch = other.take_over(waits.id).await.unwrap().unwrap();
    let late = one.append(queued.clone().start(&turn)).await;
    assert!(matches!(late, Err(StoreError::Fenced)), "{late:?}");
    saved(other, queued.at_epoch(epoch).end(TurnOutcome::Interrupted)).await;
    assert_eq!(orphans(other).await, []);
    assert_eq!(other.take_over(idle).await.unwrap(), None, "it has nothing to do");
    assert_eq!(other.take_over(launch(9).0.id).await.unwrap(), None, "there is no such agent");
}

pub async fn what_a_forgotten_node_ran_is_taken_over<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (gone, _) = servers.two().await;
    let (agent, former) = running(one, 1).await;
    one.leave().await.unwrap();
    assert_eq!(orphans(other).await, [], "it will be back");
    assert_eq!(other.take_over(agent.id).await.unwrap(), None);
    assert!(other.forget(gone).await.unwrap());
    assert_eq!(orphans(other).await, [agent.id]);
    assert!(other.take_over(agent.id).await.unwrap().is_some());
    is_fenced(one, &former).await;
}

pub async fn a_message_for_an_agent_whose_home_is_lost_is_taken_over<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (lost, _) = servers.two().await;
    let idle = ended(one, 1).await;
    tell(other, idle).await;
    assert_eq!(orphans(other).await, []);
    assert_eq!(other.take_over(idle).await.unwrap(), None);
    lose(other, lost).await;
    for _ in 0..2 {
        assert_eq!(orphans(other).await, [idle]);
        let epoch = other.take_over(idle).await.unwrap().unwrap();
        assert_eq!(home(other, idle).await, Some(lost), "its folder is there still");
        let turn = other.open_turns(idle).await.unwrap().remove(0);
        let mut scribe = scribe_of(other, idle, epoch).await;
        saved(other, scribe.start(&turn)).await;
        saved(other, scribe.end(TurnOutcome::Interrupted)).await;
        assert_eq!(orphans(other).await, []);
        assert_eq!(other.claim(idle).await.unwrap(), None, "it is not at home here");
        tell(other, idle).await;
    }
    one.join().await.unwrap();
    assert_eq!(orphans(other).await, []);
    assert!(one.claim(idle).await.unwrap().is_some());
}

pub async fn nothing_is_taken_over_of_a_node_that_lives_or_is_back<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (lost, _) = servers.two().await;
    let (agent, former) = running(one, 1).await;
    assert_eq!(other.take_over(agent.id).await.unwrap(), None);
    lose(other, lost).await;
    one.join().await.unwrap();
    assert_eq!(orphans(other).await, []);
    assert_eq!(other.take_over(agent.id).await.unwrap(), None);
    let epoch = one.claim(agent.id).await.unwrap().unwrap();
    saved(one, former.at_epoch(epoch).say(vec![notice("goes on")])).await;
}

pub async fn one_of_two_takers_wins<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    let (lost, _) = servers.two().await;
    third.join().await.unwrap();
    let mut agents = Vec::new();
    for n in 0..10 {
        agents.push(running(one, n).await);
    }
    lose(other, lost).await;
    for (agent, former) in agents {
        let taken = tokio::join!(other.take_over(agent.id), third.take_over(agent.id));
        let (winner, loser, epoch) = match (taken.0.unwrap(), taken.1.unwrap()) {
            (Some(epoch), None) => (other, third, epoch),
            (None, Some(epoch)) => (third, other, epoch),
            both => panic!("{both:?}"),
        };
        assert_eq!(winner.claim(agent.id).await.unwrap(), Some(epoch));
        assert_eq!(loser.claim(agent.id).await.unwrap(), None);
        saved(winner, former.at_epoch(epoch).end(TurnOutcome::Interrupted)).await;
    }
    assert_eq!(orphans(third).await, []);
}

pub async fn what_a_taker_leaves_behind_is_taken_over_too<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    let (first, second) = servers.two().await;
    third.join().await.unwrap();
    let (agent, former) = running(one, 1).await;
    lose(other, first).await;
    let taken = other.take_over(agent.id).await.unwrap().unwrap();
    lose(third, second).await;
    assert_eq!(orphans(third).await, [agent.id]);
    one.join().await.unwrap();
    assert_eq!(orphans(third).await, [agent.id], "its home is back, but its owner is not");
    let epoch = third.take_over(agent.id).await.unwrap().unwrap();
    assert!(taken < epoch);
    is_fenced(other, &former.clone().at_epoch(taken)).await;
    saved(third, former.at_epoch(epoch).end(TurnOutcome::Interrupted)).await;
    assert!(taken < one.claim(agent.id).await.unwrap().unwrap());
}

pub async fn an_agent_of_another_home_cannot_be_claimed<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (first, second) = servers.two().await;
    let mine = ended(one, 1).await;
    let (idle, _) = launch(2);
    other.create_idle(Agent { home: Some(first), ..idle.clone() }).await.unwrap();
    assert_eq!((home(other, mine).await, home(one, idle.id).await), (Some(first), Some(second)));
    for agent in [mine, idle.id] {
        tell(one, agent).await;
    }
    assert_eq!((other.claim(mine).await.unwrap(), one.claim(idle.id).await.unwrap()), (None, None));
    for (store, agent) in [(one, mine), (other, idle.id)] {
        let epoch = store.claim(agent).await.unwrap().unwrap();
        assert_eq!(store.claim(agent).await.unwrap(), Some(epoch));
    }
    let (runs, _) = running(one, 3).await;
    assert_eq!(other.claim(runs.id).await.unwrap(), None);
    assert_eq!(other.claim(mine).await.unwrap(), None);
}
