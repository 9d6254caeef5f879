//! What other nodes have changed and clients that watch all agents must learn.
//!
//! Several things can reveal the same change, but clients must hear of it once. So [`LifecycleElsewhere`] remembers
//! what the clients of this node know. The teller is in `use_cases/nodes/lifecycle_elsewhere.rs`.
//!
//! | what happens | who tells it | what is remembered |
//! | --- | --- | --- |
//! | a task or a command changes an agent of this node | `announce.rs`, at once: [`LifecycleElsewhere::tell_own`] | `own` |
//! | the same, but nothing is known of the agent here | the teller, which reads it: [`LifecycleElsewhere::tell_read`] | `own`, `shown` |
//! | a hint says that an agent has changed | the teller, which reads it: [`LifecycleElsewhere::tell_read`] | `shown` |
//! | a look without a hint finds a change | the same, unless [`LifecycleElsewhere::is_told_as_it_is`] | `shown` |
//! | an agent is created | `announce.rs`, or the teller after a hint or a look: [`LifecycleElsewhere::tell_created`] | `created` |
//! | an agent is deleted | the same, if [`LifecycleElsewhere::note_deleted`] says that clients do not know it | `deleted` |
//! | hints were missed | the teller: clients load the list again ([`LifecycleElsewhere::forget_told`]) | only `own` |

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokenrail_domain::{Agent, AgentId, Copied, ListedAgent, Sequence};
use tokenrail_ports::Hint;
use tokio::sync::Notify;

use super::recent::Recent;
use crate::open_requests::Needs;

/// Changes that wait to be read. If there are more, clients load the list again.
pub(crate) const CHANGES_MAX: usize = 1024;

/// Changes that other nodes have made.
#[derive(Default)]
pub(crate) struct LifecycleElsewhere {
    pending: Mutex<Pending>,
    told: Mutex<Told>,
    pub(crate) woken: Notify,
}

#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) created: BTreeSet<AgentId>,
    pub(crate) changed: BTreeSet<AgentId>,
    pub(crate) deleted: BTreeSet<AgentId>,
    pub(crate) missed: bool,
    pub(crate) look: bool,
}

/// How many agents of this node are kept in mind: those that have changed last.
const OWN_MAX: usize = 8192;

/// How many new agents are kept in mind. They are created by all nodes.
const CREATED_MAX: usize = 4096;

/// What the clients of this node know.
struct Told {
    /// What users may change about the agents of this node.
    own: Recent<Own>,
    /// The agents that were read because of a hint or a look, as clients know them.
    shown: Recent<Shown>,
    /// The agents that clients were told of when they were created.
    created: BTreeSet<AgentId>,
    /// The newest one that has left no room for others there. The ids of agents are in the order of their times.
    forgotten: Option<AgentId>,
    deleted: Recent<()>,
}

impl Default for Told {
    fn default() -> Self {
        Self {
            own: Recent::new(OWN_MAX),
            shown: Recent::new(CHANGES_MAX),
            created: BTreeSet::new(),
            forgotten: None,
            deleted: Recent::new(CHANGES_MAX),
        }
    }
}

/// An agent as clients know it, without the fields that change with each event, which are not announced.
#[derive(Debug, PartialEq)]
struct Shown {
    listed: ListedAgent,
    needs: Needs,
}

impl Shown {
    fn new(mut listed: ListedAgent, needs: Needs) -> Self {
        listed.agent.head = Sequence::START;
        listed.agent.updated_at = listed.agent.created_at;
        Self { listed, needs }
    }
}

/// An agent of this node, as clients know it.
#[derive(Debug, Clone, Copy)]
struct Own {
    in_lists: InLists,
    /// How often its tasks and commands have told something without reading it.
    told: u64,
}

/// What users may change about an agent. A name may be long, so only its hash is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InLists {
    name: Option<u64>,
    pinned: bool,
    archived: bool,
}

impl InLists {
    fn of(agent: &Agent) -> Self {
        let hash = |name: &String| {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            hasher.finish()
        };
        Self { name: agent.name.as_ref().map(hash), pinned: agent.pinned, archived: agent.archived }
    }
}

/// An agent that was read, to tell clients of it.
pub(crate) struct ReadAgent {
    listed: ListedAgent,
    in_lists: InLists,
    /// Whether this node runs its turns.
    is_own: bool,
}

impl ReadAgent {
    pub(crate) fn new(agent: Agent, field_bytes: usize, is_own: bool) -> Self {
        Self { in_lists: InLists::of(&agent), listed: ListedAgent::new(agent, field_bytes), is_own }
    }
}

/// What has become of an agent that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Clients were told, or knew it.
    Told,
    /// Something newer was told meanwhile, so it must be read again.
    Outdated,
}

impl LifecycleElsewhere {
    /// Tells what one of this node's agents has done, with `tell`. Returns false, and tells nothing, if it is not known
    /// what clients know of the agent: then it must be read.
    pub(crate) fn tell_own(&self, agent: AgentId, tell: impl FnOnce()) -> bool {
        let mut told = self.told();
        let Some(own) = told.own.touch(agent) else { return false };
        own.told += 1;
        told.shown.remove(agent);
        // The lock is held until then. Otherwise, an older change could be announced after this one.
        tell();
        true
    }

    /// How often [`LifecycleElsewhere::tell_own`] has told something of an agent.
    pub(crate) fn told_so_far(&self, agent: AgentId) -> u64 {
        self.told().own.get(agent).map_or(0, |own| own.told)
    }

    /// Tells of an agent that was read, with `tell`, unless clients know it as it is, or know that it was deleted.
    /// `told_before` is what [`LifecycleElsewhere::told_so_far`] was before it was read.
    pub(crate) fn tell_read(
        &self,
        read: ReadAgent,
        needs: Needs,
        told_before: u64,
        tell: impl FnOnce(&Agent),
    ) -> Outcome {
        let ReadAgent { listed, in_lists, is_own } = read;
        let (id, now) = (listed.agent.id, Shown::new(listed, needs));
        let mut told = self.told();
        if told.deleted.get(id).is_some() {
            return Outcome::Told;
        }
        let own = told.own.get(id).copied();
        if own.is_some_and(|own| own.told != told_before) {
            return Outcome::Outdated;
        }
        let is_known = told.shown.touch(id).is_some_and(|shown| *shown == now)
            && (!is_own || own.is_some_and(|own| own.in_lists == in_lists));
        if is_own {
            told.own.insert(id, Own { in_lists, told: told_before });
        } else {
            told.own.remove(id);
        }
        if !is_known {
            tell(&now.listed.agent);
            told.shown.insert(id, now);
        }
        Outcome::Told
    }

    /// Tells that an agent was created, with `tell`, unless clients know it, or know that it was deleted.
    pub(crate) fn tell_created(&self, created: ReadAgent, tell: impl FnOnce(ListedAgent)) {
        let ReadAgent { listed, in_lists, is_own } = created;
        let id = listed.agent.id;
        let mut told = self.told();
        if told.deleted.get(id).is_some() || !told.created.insert(id) {
            return;
        }
        if CREATED_MAX < told.created.len() {
            let oldest = told.created.pop_first();
            told.forgotten = told.forgotten.max(oldest);
        }
        if is_own && told.own.get(id).is_none() {
            told.own.insert(id, Own { in_lists, told: 0 });
        }
        let is_untouched = listed.agent.head == Sequence::START || listed.agent.copy == Some(Copied::File);
        tell(listed.clone());
        // What it has done since is an update too, and what it needs is not told with it.
        if is_untouched {
            told.shown.insert(id, Shown::new(listed, Needs::default()));
        }
    }

    /// Whether clients were told that the agent was created, or it is not known any more.
    pub(crate) fn may_know(&self, agent: AgentId) -> bool {
        let told = self.told();
        told.created.contains(&agent) || told.forgotten.is_some_and(|forgotten| agent <= forgotten)
    }

    /// Records a user's change of one of this node's agents, which is announced to clients.
    pub(crate) fn note_edited(&self, agent: &Agent) {
        let mut told = self.told();
        let in_lists = InLists::of(agent);
        match told.own.touch(agent.id) {
            Some(own) => own.in_lists = in_lists,
            None => told.own.insert(agent.id, Own { in_lists, told: 0 }),
        }
    }

    /// Records that an archived agent is listed again because it needs its user. This is announced to clients.
    pub(crate) fn note_unarchived(&self, agent: AgentId) {
        if let Some(own) = self.told().own.touch(agent) {
            own.in_lists.archived = false;
        }
    }

    /// Whether clients were told of an agent of this node since users have changed it.
    pub(crate) fn is_told_as_it_is(&self, agent: &Agent) -> bool {
        let in_lists = InLists::of(agent);
        self.told().own.touch(agent.id).is_some_and(|own| own.in_lists == in_lists)
    }

    /// Notes that clients learn of a delete. Returns false if they knew it.
    pub(crate) fn note_deleted(&self, agent: AgentId) -> bool {
        let mut told = self.told();
        told.own.remove(agent);
        told.shown.remove(agent);
        let is_known = told.deleted.get(agent).is_some();
        told.deleted.insert(agent, ());
        !is_known
    }

    /// Clients load the list again. What was deleted may be back after a failover.
    pub(crate) fn forget_told(&self) {
        let mut told = self.told();
        told.shown.clear();
        told.deleted.clear();
        told.created.clear();
        told.forgotten = None;
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, hint: Hint) {
        let mut pending = self.pending();
        match hint {
            Hint::Created(agent) => pending.created.insert(agent),
            Hint::Changed(agent) => pending.changed.insert(agent),
            Hint::Deleted(agent) => pending.deleted.insert(agent),
            Hint::Head { .. } | Hint::Errand(_) | Hint::Letter(_) => false,
        };
        let Pending { created, changed, deleted, .. } = &*pending;
        if CHANGES_MAX < created.len() + changed.len() + deleted.len() {
            *pending = Pending { missed: true, ..Pending::default() };
        }
        drop(pending);
        self.woken.notify_one();
    }

    /// Changes may have been missed.
    pub(crate) fn missed(&self) {
        *self.pending() = Pending { missed: true, ..Pending::default() };
        self.woken.notify_one();
    }

    /// Looks for what has changed, because another node may be unable to send hints.
    pub(crate) fn look(&self) {
        self.pending().look = true;
        self.woken.notify_one();
    }

    pub(crate) fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
