//! What must hold after everything has ended.

use tokenrail_domain::{EventBody, TurnState};

use super::Cluster;
use super::readers::Reader;

/// Whether all nodes are up, and no turn is open.
pub(super) fn has_ended(cluster: &Cluster) -> bool {
    cluster.commanders.get() == 0
        && cluster.nodes.iter().all(|node| node.life().is_some_and(|life| !life.is_stopped()))
        && cluster.agents.borrow().values().all(|id| {
            let turns = cluster.disk.saved_turns(*id);
            turns.iter().all(|turn| matches!(turn.state, TurnState::Ended(_)))
        })
}

pub(super) fn open(cluster: &Cluster) -> String {
    let agents = cluster.agents.borrow();
    let tell = |(slot, id): (&usize, &_)| {
        let agent = cluster.disk.saved_agent(*id);
        let turns: Vec<_> =
            cluster.disk.saved_turns(*id).into_iter().map(|turn| (turn.number, turn.state)).collect();
        format!("agent {slot} of {:?}: {turns:?}; ", agent.and_then(|agent| agent.home))
    };
    agents.iter().map(tell).collect()
}

pub(super) fn everything(cluster: &Cluster, readers: &[Reader]) -> Result<(), String> {
    for reader in readers {
        let Some(id) = cluster.agents.borrow().get(&reader.slot).copied() else { continue };
        let saved = cluster.disk.saved(id);
        if reader.seen != saved {
            let (seen, all) = (reader.seen.len(), saved.len());
            return Err(format!(
                "G2: a reader of agent {} has {seen} events of {all}, or others",
                reader.slot
            ));
        }
    }
    for (slot, id) in &*cluster.agents.borrow() {
        let saved = cluster.disk.saved(*id);
        for turn in cluster.disk.saved_turns(*id) {
            let is_result = |event: &&tokenrail_domain::Event| {
                event.turn == turn.number && matches!(event.body, EventBody::TurnResult(_))
            };
            let results = saved.iter().filter(is_result).count();
            if results != 1 {
                return Err(format!("G9: turn {} of agent {slot} has {results} results", turn.number));
            }
        }
    }
    for (agent, prompt) in &*cluster.accepted.borrow() {
        let turns = cluster.disk.saved_turns(*agent);
        let times = turns.iter().filter(|turn| turn.prompt == *prompt).count();
        if times != 1 {
            return Err(format!("G11: {prompt:?} was accepted, and is in {times} turns"));
        }
    }
    told(cluster)
}

/// A client that watches all agents at a node knows how they are. Hints that are lost without a word are made up for
/// only by what is read anyway, so this does not hold with them.
fn told(cluster: &Cluster) -> Result<(), String> {
    if 0 < cluster.bus_faults.lost {
        return Ok(());
    }
    for node in &cluster.nodes {
        let Some(life) = node.life() else { continue };
        for (slot, id) in &*cluster.agents.borrow() {
            let told = life.told.borrow().get(id).copied();
            let is = cluster.disk.saved_agent(*id).map(|agent| agent.status);
            if told != is {
                return Err(format!(
                    "node {} tells that agent {slot} is {told:?}, and it is {is:?}",
                    node.id
                ));
            }
        }
    }
    Ok(())
}
