//! Ownership: only an append of the current epoch is written.

use tokenrail_domain::{AgentStatus, Timestamp, TurnNumber, TurnOutcome};

use super::{agent_now, everything, launched, running, saved};
use crate::testing::samples::{launch, notice, queued_turn, text_delta};
use crate::{Append, Deletion, Epoch, IAgentRepository, IJournal, INodes, StoreError};

pub async fn the_creator_owns_an_agent_and_stays_its_owner<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, mut scribe) = running(store, 1).await;
    for _ in 0..2 {
        assert_eq!(store.claim(agent.id).await.unwrap(), Some(Epoch::FIRST));
    }
    saved(store, scribe.say(vec![notice("a")])).await;
    assert_eq!(store.claim(agent.id).await.unwrap(), Some(Epoch::FIRST));
}

pub async fn an_idle_agent_can_be_claimed<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, _) = launch(1);
    store.create_idle(agent.clone()).await.unwrap();
    let turn = queued_turn(agent.id, TurnNumber(0), "go on");
    store.enqueue(turn.into(), 4, None).await.unwrap();
    let epoch = store.claim(agent.id).await.unwrap().unwrap();
    let open = store.open_turns(agent.id).await.unwrap();
    let mut scribe = crate::testing::samples::Scribe::new(&agent_now(store, agent.id).await).at_epoch(epoch);
    saved(store, scribe.start(&open[0])).await;
    saved(store, scribe.end(TurnOutcome::Completed)).await;
    assert!(epoch <= store.claim(agent.id).await.unwrap().unwrap());
}

pub async fn an_agent_that_is_not_there_cannot_be_claimed<S: IJournal + IAgentRepository>(store: &S) {
    assert_eq!(store.claim(launch(9).0.id).await.unwrap(), None);
    let (agent, _, _) = launched(store, 1).await;
    store.delete(agent.id, Timestamp(1), Deletion::Purge).await.unwrap();
    store.purge(agent.id, Timestamp(2)).await.unwrap();
    assert_eq!(store.claim(agent.id).await.unwrap(), None);
}

pub async fn what_a_former_process_sends_late_changes_nothing<S: IJournal + IAgentRepository + INodes>(
    store: &S,
) {
    let (agent, mut former) = running(store, 1).await;
    let before = former.say(vec![notice("saved"), text_delta(0, "a")]);
    saved(store, before.clone()).await;
    let kept = everything(store, agent.id).await;

    store.join().await.unwrap();
    let late = former.rehearse(vec![notice("late")]);
    let end = former.clone().end(TurnOutcome::Completed);
    let chain = Append::chain(vec![end.clone(), end.clone()]).unwrap();
    for append in [late, end, chain] {
        let answer = store.append(append).await;
        assert!(matches!(answer, Err(StoreError::Fenced)), "{answer:?}");
    }
    assert_eq!(everything(store, agent.id).await, kept);
    assert_eq!(agent_now(store, agent.id).await.status, AgentStatus::Running);
    // It was saved before, so its outcome is known.
    store.append(before).await.unwrap();

    let epoch = store.claim(agent.id).await.unwrap().unwrap();
    assert!(Epoch::FIRST < epoch);
    let mut owner = former.clone().at_epoch(epoch);
    saved(store, owner.say(vec![notice("goes on")])).await;
    let other = former.say(vec![notice("under the same number")]);
    let answer = store.append(other).await;
    assert!(matches!(answer, Err(StoreError::Fenced)), "{answer:?}");
    saved(store, owner.end(TurnOutcome::Completed)).await;
    assert_eq!(agent_now(store, agent.id).await.status, AgentStatus::Completed);
}

pub async fn an_epoch_from_the_future_is_fenced_too<S: IJournal + IAgentRepository>(store: &S) {
    let (agent, scribe) = running(store, 1).await;
    let append = scribe.at_epoch(Epoch(Epoch::FIRST.0 + 1)).say(vec![notice("a")]);
    let answer = store.append(append).await;
    assert!(matches!(answer, Err(StoreError::Fenced)), "{answer:?}");
    assert_eq!(everything(store, agent.id).await.len(), 1);
}

pub async fn a_node_that_joins_again_owns_what_it_owned<S: IJournal + IAgentRepository + INodes>(store: &S) {
    let (queued, turn, scribe) = launched(store, 1).await;
    let mut last = Epoch::FIRST;
    for _ in 0..3 {
        store.join().await.unwrap();
        let epoch = store.claim(queued.id).await.unwrap().unwrap();
        assert!(last < epoch);
        last = epoch;
    }
    saved(store, scribe.at_epoch(last).start(&turn)).await;
}
