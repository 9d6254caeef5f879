//! What is left of the agents of a lost node.

use tokenrail_domain::{Copied, Timestamp, TurnOutcome};

use super::nodes::{Servers, SharedStore, ended, lose};
use super::{running, saved};
use crate::Deletion;
use crate::testing::samples::launch;

pub async fn what_is_to_be_purged_of_a_lost_node_is_everybodys<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    let (lost, _) = servers.two().await;
    third.join().await.unwrap();
    let idle = ended(one, 1).await;
    let (runs, mut scribe) = running(one, 2).await;
    for agent in [idle, runs.id] {
        other.delete(agent, Timestamp(10), Deletion::Purge).await.unwrap();
    }
    assert_eq!(other.errands(9).await.unwrap().to_purge, [], "its home lives");
    lose(other, lost).await;
    for store in [other, third] {
        assert_eq!(store.errands(9).await.unwrap().to_purge, [idle], "the other one has an open turn");
    }
    scribe = scribe.at_epoch(other.take_over(runs.id).await.unwrap().unwrap());
    saved(other, scribe.end(TurnOutcome::Interrupted)).await;
    assert_eq!(third.errands(9).await.unwrap().to_purge, [idle, runs.id]);
    assert_eq!(third.errands(1).await.unwrap().to_purge, [idle]);
    assert_eq!(third.to_purge().await.unwrap(), [], "a start looks only for its own");
    one.join().await.unwrap();
    assert_eq!(third.errands(9).await.unwrap().to_purge, [], "its home is back");
    assert_eq!(one.errands(9).await.unwrap().to_purge, [idle, runs.id]);
}

pub async fn the_home_of_a_purged_agent_learns_that_its_files_are_left<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (lost, _) = servers.two().await;
    let agents = [ended(one, 1).await, ended(one, 2).await, ended(one, 3).await];
    let import = tokenrail_domain::Agent { copy: Some(Copied::File), ..launch(4).0 };
    one.begin_import(import.clone()).await.unwrap();
    one.purge(agents[2], Timestamp(10)).await.unwrap();
    lose(other, lost).await;
    for agent in [agents[0], agents[1], import.id] {
        assert!(other.purge(agent, Timestamp(11)).await.unwrap());
        assert!(!other.purge(agent, Timestamp(12)).await.unwrap());
    }
    let left = async |store: &S| store.errands(9).await.unwrap().leftovers;
    assert_eq!(left(other).await, []);
    one.join().await.unwrap();
    assert_eq!(left(one).await, agents[..2], "it has removed the third itself, and an import has no files");
    assert_eq!(one.errands(1).await.unwrap().leftovers, agents[..1]);
    other.forget_leftover(agents[0]).await.unwrap();
    assert_eq!(left(one).await, agents[..2], "they are not there");
    for _ in 0..2 {
        one.forget_leftover(agents[0]).await.unwrap();
        assert_eq!(left(one).await, agents[1..2]);
    }
}

pub async fn a_node_that_was_forgotten_has_nothing_to_remove<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let (lost, _) = servers.two().await;
    let (before, after) = (ended(one, 1).await, ended(one, 2).await);
    lose(other, lost).await;
    assert!(other.purge(before, Timestamp(11)).await.unwrap());
    assert!(other.forget(lost).await.unwrap());
    assert!(other.purge(after, Timestamp(12)).await.unwrap());
    one.join().await.unwrap();
    assert_eq!(one.errands(9).await.unwrap().leftovers, []);
}

/// What is not done is found again and again, and must not hide the rest.
pub async fn a_look_goes_on_where_the_one_before_has_ended<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    let (lost, _) = servers.two().await;
    third.join().await.unwrap();
    let mut agents = Vec::new();
    for n in 1..6 {
        let agent = ended(one, n).await;
        other.delete(agent, Timestamp(10), Deletion::Purge).await.unwrap();
        agents.push(agent);
    }
    let to_purge = async || one.errands(2).await.unwrap().to_purge;
    assert_eq!(to_purge().await, agents[..2]);
    assert_eq!(to_purge().await, agents[2..4]);
    assert_eq!(to_purge().await, [agents[0], agents[4]]);
    assert_eq!(to_purge().await, agents[1..3]);
    assert_eq!(one.errands(5).await.unwrap().to_purge, agents);
    assert_eq!(to_purge().await, agents[..2], "all were returned");

    let mut open = Vec::new();
    for n in 6..11 {
        let (agent, turn) = launch(n);
        one.create(agent.clone(), turn.into(), None).await.unwrap();
        open.push(agent.id);
    }
    let turns = async || {
        let turns = one.errands(2).await.unwrap().turns;
        turns.into_iter().map(|errand| errand.agent).collect::<Vec<_>>()
    };
    assert_eq!(turns().await, open[..2]);
    assert_eq!(turns().await, open[2..4]);
    assert_eq!(turns().await, [open[0], open[4]]);
    for agent in &open[2..] {
        one.cancel(*agent, Timestamp(11)).await.unwrap();
    }
    assert_eq!(turns().await, [open[2], open[1]], "a turn to be stopped, and another one");
    assert_eq!(turns().await, [open[3], open[0]]);
    assert_eq!(turns().await, [open[4], open[1]]);

    lose(other, lost).await;
    assert_eq!(other.orphans(2).await.unwrap(), open[..2]);
    assert_eq!(other.orphans(2).await.unwrap(), open[2..4]);
    assert_eq!(third.orphans(2).await.unwrap(), open[..2], "each node looks for itself");
    assert_eq!(other.orphans(2).await.unwrap(), [open[0], open[4]]);
    for agent in &agents[..3] {
        assert!(other.purge(*agent, Timestamp(12)).await.unwrap());
    }
    one.join().await.unwrap();
    assert_eq!(one.errands(2).await.unwrap().leftovers, agents[..2]);
    assert_eq!(one.errands(2).await.unwrap().leftovers, [agents[0], agents[2]]);
}
