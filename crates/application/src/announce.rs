//! Announces what is saved: events to followers, and lifecycle events to clients that watch all agents.

use tokenrail_domain::{Agent, AgentId, AgentStatus, EventBody, ListedAgent, Sequence, Timestamp};
use tokenrail_ports::{Append, Hint, TurnStep, rules};

use crate::core::{Core, SaveError};
use crate::lifecycle::{LifecycleEvent, UpdateCause};
use crate::node_state::ReadAgent;
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

/// Announces what this node has just saved. Besides [`hold`], only `use_cases/nodes/gatherer.rs` also puts events into
/// a tail: those that other nodes have saved. `saved` comes from [`Core::save`] or [`Core::save_unless_full`].
pub(crate) fn announce(core: &Core, tail: &Tail, saved: &Append) {
    for part in saved.parts() {
        announce_part(core, tail, part);
    }
}

/// Holds back what this node has just saved, until it is announced with further events or by [`release`]. Returns
/// false, and does nothing, if it must be announced now: if it changes more than the journal, or if the tail says so.
pub(crate) fn hold(tail: &Tail, saved: &Append) -> bool {
    let only_adds_events =
        saved.step == TurnStep::Continue && saved.then.is_none() && !rules::needs_user(saved);
    only_adds_events && tail.hold(&saved.events)
}

/// Announces what is held back, up to `head`.
pub(crate) fn release(core: &Core, agent: AgentId, tail: &Tail, head: Sequence) {
    tail.release();
    core.send_hint(Hint::Head { agent, head });
}

/// Also counts turns that begin and end, and wakes the compactor after an end.
fn announce_part(core: &Core, tail: &Tail, saved: &Append) {
    let Append { agent, events, step, .. } = saved;
    let at = events.last().map_or_else(|| core.now(), |event| event.at);
    let status = match (step, events.last().map(|event| &event.body)) {
        (TurnStep::Start(_), _) => Some(AgentStatus::Running),
        (TurnStep::End, Some(EventBody::TurnResult(result))) => Some(AgentStatus::from(result.outcome)),
        _ => None,
    };
    if core.outside.nodes.is_shared() && rules::needs_user(saved) {
        core.lifecycle_elsewhere.note_unarchived(*agent);
    }
    tail.announce(events);
    if let Some(head) = events.last().map(|event| event.sequence) {
        core.send_hint(Hint::Head { agent: *agent, head });
    }
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

impl Core {
    /// Announces a new agent. Call this before the agent's first event is announced.
    pub(crate) fn tell_created(&self, agent: &Agent, at: Timestamp) {
        let field_bytes = self.limits.lists.list_field_bytes;
        let tell = |listed| self.lifecycle.tell(LifecycleEvent::Created { agent: Box::new(listed), at });
        if self.outside.nodes.is_shared() {
            // A look may have found it already.
            let created = ReadAgent::new(agent.clone(), field_bytes, self.is_here(agent));
            self.lifecycle_elsewhere.tell_created(created, tell);
        } else {
            tell(ListedAgent::new(agent.clone(), field_bytes));
        }
        self.send_hint(Hint::Created(agent.id));
    }

    pub(crate) fn tell_deleted(&self, agent: AgentId, at: Timestamp) {
        if !self.outside.nodes.is_shared() || self.lifecycle_elsewhere.note_deleted(agent) {
            self.lifecycle.tell(LifecycleEvent::Deleted { agent, at });
        }
        self.send_hint(Hint::Deleted(agent));
    }

    /// Records a user's change of an agent, which the caller announces next. Without this, the next look at the changes
    /// of other nodes would announce it again.
    pub(crate) fn note_edited(&self, agent: &Agent) {
        if self.outside.nodes.is_shared() && self.is_here(agent) {
            self.lifecycle_elsewhere.note_edited(agent);
        }
    }

    /// Reports the status and the needs of an agent.
    pub(crate) fn tell_status(&self, agent: AgentId, status: AgentStatus, at: Timestamp) {
        self.tell_updated(agent, status, UpdateCause::Turns, at);
    }

    /// Like [`Core::tell_status`], for an agent whose name or place in lists may have changed.
    pub(crate) fn tell_edited(&self, agent: AgentId, status: AgentStatus, at: Timestamp) {
        self.tell_updated(agent, status, UpdateCause::Edit, at);
    }

    /// An agent of this node needs nothing any more, because its run is left. Another node may have taken it over and
    /// ended its turn, so on a shared store the saved status is announced.
    pub(crate) fn tell_left(&self, agent: AgentId) {
        if self.outside.nodes.is_shared() {
            self.lifecycle_elsewhere.note(Hint::Changed(agent));
            self.send_hint(Hint::Changed(agent));
        } else {
            self.tell_status(agent, AgentStatus::Running, self.now());
        }
    }

    fn tell_updated(&self, agent: AgentId, status: AgentStatus, cause: UpdateCause, at: Timestamp) {
        // What it needs is read only then, under the lock of `tell_own`.
        let tell = || {
            let needs = self.open_requests.needs(agent);
            self.lifecycle.tell(LifecycleEvent::Updated { agent, status, needs, cause, at });
        };
        if !self.outside.nodes.is_shared() {
            tell();
        } else if !self.lifecycle_elsewhere.tell_own(agent, tell) {
            // An agent of another node, or one of which nothing was told since this server started. It is read and told
            // like a change of another node: otherwise a look that finds it would tell it again.
            self.lifecycle_elsewhere.note(Hint::Changed(agent));
        }
        self.send_hint(Hint::Changed(agent));
    }
}
