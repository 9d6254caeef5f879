//! What is left of the agents of a lost node.

use tokenrail_domain::{Copied, Timestamp, TurnOutcome};

use super::nodes::{ISharedStore, Servers, ended, lose};
use super::{running, saved};
use crate::testing::samples::launch;

pub async fn what_is_to_be_purged_of_a_lost_node_is_everybodys<S: ISharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    let (lost, _) = servers.two().await;
    third.join().await.unwrap();
    let idle = ended(one, 1).await;
    let (runs, mut scribe) = running(one, 2).await;
    for agent in [idle, runs.id] {
        other.delete(agent, Timestamp(10), true).await.unwrap();
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

pub async fn the_home_of_a_purged_agent_learns_that_its_files_are_left<S: ISharedStore>(
    servers: &Servers<S>,
) {
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
