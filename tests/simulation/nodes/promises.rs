//! What must hold after everything has ended.

use tokenrail_domain::{Event, EventBody, TurnState};

use super::readers::Reader;
use super::{Cluster, remover};
use crate::world::EPOCH_MS;

/// Whether all nodes are up, and no turn is open.
pub(super) fn has_ended(cluster: &Cluster) -> bool {
    cluster.commanders.get() == 0
        && remover::is_over(cluster)
        && cluster
            .nodes
            .iter()
            .all(|node| node.is_gone() || node.life().is_some_and(|life| !life.is_stopped()))
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
        let said = cluster.disk.saved(*id).last().map(|event| event.at.0 - EPOCH_MS);
        format!(
            "agent {slot} of {:?}: {turns:?}, last event at {said:?}; ",
            agent.and_then(|agent| agent.home)
        )
    };
    agents.iter().map(tell).collect::<String>() + &remover::left(cluster)
}

pub(super) fn everything(cluster: &Cluster, readers: &[Reader]) -> Result<(), String> {
    for reader in readers {
        let Some(id) = cluster.agents.borrow().get(&reader.slot).copied() else { continue };
        // What a reader of a purged agent has seen is a beginning.
        let is_purged = cluster.disk.saved_agent(id).is_none();
        let saved = if is_purged { cluster.promises.journal(id) } else { cluster.disk.saved(id) };
        let is_seen = |(seen, saved): (&Event, &Event)| seen == saved || is_lost(cluster, saved);
        if reader.seen.len() != saved.len() && !is_purged || !reader.seen.iter().zip(&saved).all(is_seen) {
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
            let is_of_lost_node = saved.iter().filter(is_result).any(is_of_lost_node);
            let has_begun = cluster.promises.has_begun(*id, turn.number);
            if cluster.faults.needs_no_home && cluster.failovers.get() == 0 && is_of_lost_node && !has_begun {
                return Err(format!(
                    "G29: turn {} of agent {slot} ends with a node that it needs not",
                    turn.number
                ));
            }
        }
    }
    for (agent, prompt) in &*cluster.accepted.borrow() {
        let turns = cluster.disk.saved_turns(*agent);
        let times = turns.iter().filter(|turn| turn.prompt == *prompt).count();
        if times != 1 && cluster.disk.saved_agent(*agent).is_some() {
            return Err(format!("G11: {prompt:?} was accepted, and is in {times} turns"));
        }
    }
    remover::check(cluster)?;
    told(cluster)
}

fn is_of_lost_node(event: &Event) -> bool {
    let EventBody::TurnResult(result) = &event.body else { return false };
    result.error.as_ref().is_some_and(|error| error.code.as_deref() == Some("node_lost"))
}

/// Whether the event says that the one with its number, which was shown, is lost.
fn is_lost(cluster: &Cluster, event: &Event) -> bool {
    let is_lost = matches!(&event.body, EventBody::Notice(notice) if notice.subtype == "events_lost");
    if is_lost {
        cluster.reach("an event that was shown is lost");
    }
    is_lost && 0 < cluster.failovers.get()
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
            let listed = cluster.disk.saved_agent(*id).filter(|agent| agent.deleted_at.is_none());
            let is = listed.map(|agent| agent.status);
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
