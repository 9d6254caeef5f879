//! Announces saved events to followers and to clients that watch all agents.

use tokenrail_domain::{AgentStatus, EventBody};
use tokenrail_ports::{Append, TurnStep};

use crate::core::{Core, SaveError};
use crate::stats::Counters;
use crate::tails::Tail;

/// Saves an append, and announces it.
///
/// # Errors
/// See [`Core::save`].
pub(crate) async fn save_and_announce(core: &Core, tail: &Tail, append: Append) -> Result<(), SaveError> {
    announce(core, tail, &core.save(append).await?);
    Ok(())
}

/// Announces what has just been saved. No other code announces events. `saved` comes from [`Core::save`] or
/// [`Core::save_unless_full`].
pub(crate) fn announce(core: &Core, tail: &Tail, saved: &Append) {
    for part in saved.parts() {
        announce_part(core, tail, part);
    }
}

fn announce_part(core: &Core, tail: &Tail, saved: &Append) {
    let Append { agent, events, step, .. } = saved;
    let at = events.last().map_or_else(|| core.now(), |event| event.at);
    let status = match (step, events.last().map(|event| &event.body)) {
        (TurnStep::Start(_), _) => Some(AgentStatus::Running),
        (TurnStep::End, Some(EventBody::TurnResult(result))) => Some(AgentStatus::from(result.outcome)),
        _ => None,
    };
    tail.announce(events);
    match step {
        TurnStep::Start(_) => Counters::add(&core.counters.turns_started, 1),
        TurnStep::End => {
            Counters::add(&core.counters.turns_ended, 1);
            core.compaction.notify_one();
        }
        TurnStep::Continue => {}
    }
    if let Some(status) = status {
        core.tell_status(*agent, status, at);
    }
}
