//! Reads the events of agents of other nodes that are followed here: one read for all readers of an agent, and one
//! query for all agents that have something new.
//!
//! The step before is `Wanted::want` (`node_state/wanted.rs`), which `listening.rs` (`hear`) calls for each hint. The
//! next step is [`Tail::announce_gathered`](crate::tails::Tail::announce_gathered), which wakes `Follower::next`.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokenrail_domain::{AgentId, Event, Sequence};
use tokenrail_ports::StoreError;
use tokio::time::Instant;

use crate::core::Core;
use crate::planted::{self, Bug};
use crate::stats::Counters;

/// Reads what is wanted until the server shuts down. One query is under way at a time: what is wanted meanwhile goes
/// with the next one.
pub(crate) async fn gather(core: Arc<Core>) {
    let mut pause = core.limits.saving.retry_pause;
    loop {
        tokio::select! {
            biased;
            () = core.closing.cancelled() => return,
            () = core.wanted.woken.notified() => {}
        }
        loop {
            let wanted = core.wanted.take(&core.tails);
            if wanted.is_empty() {
                break;
            }
            match read(&core, wanted).await {
                Ok(()) => pause = core.limits.saving.retry_pause,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "cannot read new events of other nodes; retrying"
                    );
                    let Some(longer) = core.pause(pause).await else { return };
                    pause = longer;
                }
            }
        }
    }
}

async fn read(core: &Core, wanted: Vec<(AgentId, Sequence)>) -> Result<(), StoreError> {
    let begun = Instant::now();
    // `read_many` in `store/ports.rs` of `postgres/`, in the persistence crate.
    let pages = core.outside.journal.read_many(wanted.clone(), core.limits.reading.history()).await?;
    Counters::add(&core.counters.gathers, 1);
    let took_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    Counters::add(&core.counters.gather_us, took_us);
    let is_limited = !pages.is_empty();
    let mut unread: BTreeMap<AgentId, Sequence> = wanted.into_iter().collect();
    for (agent, events) in pages {
        unread.remove(&agent);
        core.wanted.go_on_after(agent);
        put_into_tail(core, agent, events);
    }
    // Those that found no room in this page come with the next one. If nothing was read at all, there is nothing: the
    // agent was purged, or the hint was wrong.
    if !is_limited {
        for agent in unread.keys() {
            core.wanted.forget(*agent);
        }
    }
    Ok(())
}

fn put_into_tail(core: &Core, agent: AgentId, mut events: Vec<Event>) {
    planted::only_if_planted(Bug::GatherSkips, || {
        if 2 < events.len() {
            events.remove(1);
        }
    });
    if let Some(tail) = core.tails.get(agent) {
        Counters::add(&core.counters.events_gathered, events.len() as u64);
        tail.announce_gathered(&events.into());
    }
}
