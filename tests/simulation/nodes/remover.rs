//! Clients that delete and purge agents, at any node, and mostly at a moment at which something goes wrong.

use std::time::Duration;

use tokenrail_application::{Deletion, Refusal};
use tokenrail_domain::{AgentId, NodeId, TurnState};
use tokio::time::{Instant, sleep};

use super::clients::{any, ask_within};
use super::node::{Life, Node};
use super::{Cluster, LOOK, Place};

/// How often, per mille, there are such clients in a simulation.
pub(super) const EXIST: u64 = 400;
/// How often, per mille, the agent of a slot is removed then.
const REMOVES: u64 = 750;
/// How often, per mille, it is also purged.
const PURGES: u64 = 800;
/// How often, per mille, a client gives up after its first request.
const GIVES_UP: u64 = 150;
/// How often a client asks again at most.
const ATTEMPTS: usize = 60;
/// Longer than a node makes a client wait.
const PATIENCE: Duration = Duration::from_mins(2);

/// When an agent is removed. If that does not come, after the storm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// Also while it runs.
    Any,
    Ended,
    /// It has ended, and its node is down, stopped or out of touch.
    HomeSilent,
    /// It has ended, and its node is declared lost.
    HomeLost,
    /// It has an open turn, and its node is declared lost: another one takes it over.
    Orphaned,
    /// It has ended, and a failover has lost the last moments.
    FailedOver,
}

const MOMENTS: [Moment; 7] = [
    Moment::Any,
    Moment::Ended,
    Moment::HomeSilent,
    Moment::HomeLost,
    Moment::HomeLost,
    Moment::Orphaned,
    Moment::FailedOver,
];

impl Moment {
    fn is_now(self, cluster: &Cluster, agent: AgentId) -> bool {
        let turns = cluster.disk.saved_turns(agent);
        let has_ended = turns.iter().all(|turn| matches!(turn.state, TurnState::Ended(_)));
        let home = cluster.disk.saved_agent(agent).and_then(|agent| agent.home);
        match self {
            _ if cluster.calm.is_cancelled() => has_ended,
            Self::Any => true,
            Self::Ended => has_ended,
            Self::HomeSilent => has_ended && home.is_some_and(|home| is_silent(cluster, home)),
            Self::HomeLost => has_ended && home.is_some_and(|home| cluster.promises.is_lost(home)),
            Self::Orphaned => !has_ended && home.is_some_and(|home| cluster.promises.is_lost(home)),
            Self::FailedOver => has_ended && 0 < cluster.failovers.get() && cluster.must_be_quiet(),
        }
    }
}

/// Whether the node is down, stopped or out of touch.
fn is_silent(cluster: &Cluster, node: NodeId) -> bool {
    let life = cluster.nodes.iter().find(|it| it.id == node).and_then(Node::life);
    let place = life.as_deref().and_then(Life::place);
    place.is_none_or(|place| place.is_stopped() || place.is_cut_off())
}

/// What a client wants to be removed.
struct Removal {
    slot: usize,
    agent: AgentId,
    purge: bool,
}

/// Removes the agent of a slot, or not.
pub(super) async fn remove(cluster: &Cluster, slot: usize) {
    let mut dice = cluster.dice(&format!("remover {slot}"));
    let (purge, gives_up) = (dice.chance(PURGES), dice.chance(GIVES_UP));
    let (moment, wait_ms) = (dice.pick(&MOMENTS), dice.pick(&[0, 5, 300, 3000, 20_000]));
    if dice.chance(REMOVES)
        && let Some(agent) = until(cluster, slot, moment).await
    {
        sleep(Duration::from_millis(wait_ms)).await;
        let removal = Removal { slot, agent, purge };
        for _ in 0..if gives_up { 1 } else { ATTEMPTS } {
            if let Some(life) = any(cluster, &mut dice)
                && removal.is_done(cluster, &life, moment).await
            {
                break;
            }
            sleep(Duration::from_millis(dice.pick(&[5, 300, 2000, 9000]))).await;
        }
    }
    cluster.removers.set(cluster.removers.get() - 1);
}

/// Waits for the moment. `None` if the agent was never launched.
async fn until(cluster: &Cluster, slot: usize, moment: Moment) -> Option<AgentId> {
    loop {
        sleep(LOOK).await;
        match cluster.agents.borrow().get(&slot) {
            Some(agent) if moment.is_now(cluster, *agent) => return Some(*agent),
            None if cluster.commanders.get() == 0 => return None,
            Some(_) | None => {}
        }
    }
}

impl Removal {
    /// Asks a node. Returns whether nothing more is to be asked.
    async fn is_done(&self, cluster: &Cluster, life: &Life, moment: Moment) -> bool {
        let Self { slot, agent, purge } = *self;
        let (began, home) = (Instant::now(), cluster.disk.saved_agent(agent).and_then(|agent| agent.home));
        let deletion = if purge { Deletion::Purge } else { Deletion::KeepHistory };
        match ask_within(PATIENCE, life, life.service.delete(agent, deletion)).await {
            Some(Ok(())) => {}
            Some(Err(Refusal::NotFound(_))) => {
                if cluster.disk.saved_agent(agent).is_some() {
                    cluster.fail(format!("G11: agent {slot} is unknown to who removes it"));
                }
                return true;
            }
            Some(Err(_)) | None => return false,
        }
        cluster.note(0xdead + slot as u64);
        let is_quick = began.elapsed() < cluster.faults.limits.commands.shutdown_timeout;
        if let Err(how) = self.check_told(cluster, is_quick && !life.is_closing.get()) {
            cluster.fail(how);
        }
        cluster.removed.borrow_mut().insert(agent);
        if purge {
            let asked = life.place().map(Place::node);
            cluster.reach(reached(moment, home == asked));
        }
        true
    }

    /// What must be true when a client was told that the agent is removed. `is_complete` if the node had the time for
    /// all of it, and was not shut down.
    fn check_told(&self, cluster: &Cluster, is_complete: bool) -> Result<(), String> {
        let Self { slot, agent, purge } = self;
        let Some(left) = cluster.disk.saved_agent(*agent) else { return Ok(()) };
        if *purge && is_complete {
            return Err(format!("G27: agent {slot} is told to be purged, and its rows are there"));
        }
        if left.deleted_at.is_none() {
            return Err(format!("G11: agent {slot} is told to be deleted, and is not"));
        }
        Ok(())
    }
}

fn reached(moment: Moment, is_home: bool) -> &'static str {
    match (moment, is_home) {
        (Moment::Any | Moment::Ended, true) => "an agent was purged at its home",
        (Moment::Any | Moment::Ended, false) => "an agent was purged at another node",
        (Moment::HomeSilent, _) => "an agent of a silent node was purged",
        (Moment::HomeLost, _) => "an agent of a lost node was purged",
        (Moment::Orphaned, _) => "an agent that was taken over was purged",
        (Moment::FailedOver, _) => "an agent was purged after a failover",
    }
}

/// Whether everything is removed that was to be purged, wherever it was, and all readers know that.
pub(super) fn is_over(cluster: &Cluster) -> bool {
    let is_gone = |(slot, agent): (&usize, &AgentId)| match cluster.disk.saved_agent(*agent) {
        Some(_) => !cluster.disk.is_saved_to_purge(*agent),
        None => {
            is_off_disks(cluster, *agent)
                && cluster.readers_of(*slot).all(|reader| cluster.told_gone.borrow().contains(&reader))
        }
    };
    cluster.removers.get() == 0 && cluster.agents.borrow().iter().all(is_gone)
}

/// Whether no node that runs has a folder or a process of an agent. One that never comes back keeps them.
fn is_off_disks(cluster: &Cluster, agent: AgentId) -> bool {
    let folders = cluster.promises.folders(agent);
    cluster.nodes.iter().filter(|node| !node.is_gone()).all(|node| {
        let has_process = |life: &Life| {
            let now = life.world.now_ms();
            let state = life.world.lock();
            let mut runs = state.processes.iter().filter(|((of, _), _)| *of == agent);
            runs.any(|(_, process)| process.is_alive(now) && !process.unread)
        };
        !folders.contains(&node.id) && !node.life().is_some_and(|life| has_process(&life))
    })
}

/// What is left of the agents that were to be purged.
pub(super) fn left(cluster: &Cluster) -> String {
    let agents = cluster.agents.borrow();
    let to_purge = agents.iter().filter(|(_, agent)| cluster.promises.may_be_purged(**agent));
    let tell = |(slot, agent): (&usize, &AgentId)| {
        let (purged, folders) = (cluster.promises.purged_ms(*agent), cluster.promises.folders(*agent));
        let told: Vec<_> = cluster.told_gone.borrow().iter().copied().collect();
        let is_there = cluster.disk.saved_agent(*agent).is_some();
        format!(
            "agent {slot} is purged since {purged:?} and there: {is_there}, with folders at {folders:?}; {told:?} know it; "
        )
    };
    to_purge.map(tell).collect()
}

/// What must hold after everything has ended.
pub(super) fn check(cluster: &Cluster) -> Result<(), String> {
    for (slot, agent) in &*cluster.agents.borrow() {
        let is_told = cluster.removed.borrow().contains(agent);
        let saved = cluster.disk.saved_agent(*agent);
        let is_deleted = saved.as_ref().is_none_or(|agent| agent.deleted_at.is_some());
        if is_told && !is_deleted {
            return Err(format!("G11: the deletion of agent {slot} was undone"));
        }
        if is_deleted && !cluster.promises.may_be_deleted(*agent) {
            return Err(format!("G11: agent {slot} is deleted, and nobody asked for it"));
        }
        if saved.is_none() && !cluster.promises.may_be_purged(*agent) {
            return Err(format!("G11: agent {slot} is gone, and nobody purged it"));
        }
    }
    Ok(())
}
