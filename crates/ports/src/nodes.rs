//! The servers that use one store.

use std::time::Duration;

use async_trait::async_trait;
use tokenrail_domain::{AgentId, NodeId, Sequence, Timestamp};

use crate::{Epoch, StoreFigures, StoreResult};

/// The nodes: the servers that use one store, each with a data folder of its own.
///
/// Each agent has a home ([`Agent::home`](tokenrail_domain::Agent::home)): the node that has its folder and its runs.
/// Only that node runs its turns. If the node is lost, another one takes the agent over, to end its open turns.
///
/// A store that cannot be shared has one node, which is always alive.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait INodes: Send + Sync {
    /// Whether other nodes can use the same store. If not, this node is always alive, agents have no home, and the
    /// other methods have nothing to do.
    fn is_shared(&self) -> bool;

    /// What a shared store has done since it was opened.
    fn figures(&self) -> StoreFigures {
        StoreFigures::default()
    }

    /// What is known of failovers of a shared store to another server. The default is a store that has none.
    fn failovers(&self) -> Failovers {
        Failovers::default()
    }

    /// The time of a clock that all nodes on the store share. The default is a store that is not shared.
    async fn shared_time(&self) -> StoreResult<Option<Timestamp>> {
        Ok(None)
    }

    /// Saves how far this node has shown the journals of these agents, if that is further than they reach: a failover
    /// has lost their ends. After a failover, each node calls this, also if there are none: the others wait for it.
    async fn note_seen(&self, seen: Vec<(AgentId, Sequence)>) -> StoreResult<()> {
        let _ = seen;
        Ok(())
    }

    /// How far any node has shown an agent's journal, as noted after a failover.
    async fn seen(&self, agent: AgentId) -> StoreResult<Sequence> {
        let _ = agent;
        Ok(Sequence::START)
    }

    /// Whether, after a failover, other nodes may still repeat what was acknowledged to them, or say how far they have
    /// shown journals. Until then, [`INodes::claim_launches`], [`INodes::declare_lost`] and [`INodes::take_over`] do
    /// nothing, and [`INodes::errands`] has no purges of the agents of lost nodes.
    async fn is_catching_up(&self) -> StoreResult<bool> {
        Ok(false)
    }

    /// Starts this node, and returns its number: the same one as at its last start. It is alive from here on. It stays
    /// the owner of everything that it owned and that was not taken over meanwhile, with a higher
    /// [`Epoch`](crate::Epoch) for every agent that has an open turn. So an append that its previous process sent, and
    /// that arrives only now, changes nothing.
    ///
    /// A server calls this once, at its start, before anything else of the store's ports. Another server that has
    /// joined as the same node is fenced from here on: its next beat says so.
    async fn join(&self) -> StoreResult<NodeId>;

    /// Says that this node is alive, and returns all nodes, itself included, in the order of their numbers.
    ///
    /// # Errors
    /// [`StoreError::Fenced`](crate::StoreError::Fenced) if this node was declared lost or has left, or if another
    /// server has joined as this node. The caller must stop, and may join anew.
    async fn beat(&self) -> StoreResult<Vec<Node>>;

    /// Says which agent types this node runs. It may claim launches of these. Called after each join.
    async fn offer(&self, types: Vec<String>) -> StoreResult<()>;

    /// Counts a launch of any node. All nodes together may launch so many agents in a minute, and so many at once after
    /// a quiet minute. If there were too many, nothing is counted.
    async fn count_launch(&self, per_minute: u32) -> StoreResult<LaunchCount>;

    /// How many launches of all nodes wait for their place: their first turn is queued.
    async fn waiting_launches(&self) -> StoreResult<u64>;

    /// Makes this node the home and the owner of agents whose home is [`NodeId::ANY`]. Of several nodes, one gets each
    /// agent.
    async fn claim_launches(&self, claim: LaunchClaim) -> StoreResult<Vec<AgentId>>;

    /// Saves the folder that this node has made for an agent that had none.
    async fn set_folder(&self, agent: AgentId, cwd: String) -> StoreResult<()>;

    /// Says that this node stops and will be back. Its agents keep running.
    async fn leave(&self) -> StoreResult<()>;

    /// All nodes, in the order of their numbers.
    async fn nodes(&self) -> StoreResult<Vec<Node>>;

    /// Declares a node lost whose pulse is still the one that the caller saw. Returns false if it is not, or if the
    /// node is lost or gone already: then nothing changes.
    async fn declare_lost(&self, node: NodeId, seen: Pulse) -> StoreResult<bool>;

    /// Takes a node out for good that is away or lost. Returns false, and changes nothing, if there is no such node, or
    /// if it is alive. A node that is gone can join again, but is not told any more which files are left there
    /// ([`Errands::leftovers`]).
    async fn forget(&self, node: NodeId) -> StoreResult<bool>;

    /// The agents with open turns that nobody continues: their owner is lost or gone, or nobody owns them and their
    /// home is lost or gone. At most `limit`, the oldest first. If there are more, the next call goes on after them,
    /// and begins anew after the last.
    async fn orphans(&self, limit: usize) -> StoreResult<Vec<AgentId>>;

    /// Makes this node the owner of an agent that is an orphan, with a higher epoch. `None` if the agent is none, or no
    /// longer, or if this node is fenced: then nothing changes.
    async fn take_over(&self, agent: AgentId) -> StoreResult<Option<Epoch>>;

    /// Whether a turn of the agent that waits may have begun: its home is lost, and has not repeated, after a failover,
    /// what that may have lost.
    async fn may_have_begun(&self, agent: AgentId) -> StoreResult<bool>;

    /// Takes its home away from an agent, so that any node may take its next turn: it is treated like a launch that
    /// waits ([`INodes::claim_launches`]). Nobody owns it then, its epoch is higher, and it has no folder, unless it is
    /// a copy: the one that it had is left ([`Errands::leftovers`]) until its former home has removed it or has claimed
    /// the agent again.
    ///
    /// Its home is this node, or is lost or gone, or this node owns it. Returns false, and changes nothing, if that is
    /// not so, if a turn runs, if another node owns it, if it is deleted or imported, or if this node is fenced.
    async fn let_go(&self, agent: AgentId) -> StoreResult<bool>;

    /// The same for agents that are at home at this node: those of these types, and replays that are not over. At most
    /// `limit`. Returns how many there were.
    ///
    /// # Errors
    /// Like [`INodes::let_go`], [`StoreError::Busy`](crate::StoreError::Busy) while nodes catch up after a failover
    /// ([`INodes::is_catching_up`]).
    async fn let_all_go(&self, types: Vec<String>, limit: usize) -> StoreResult<usize>;

    /// What other nodes have saved and this one must carry out. At most `limit` of each kind. If there are more, the
    /// next call goes on after them, and begins anew after the last. So what cannot be done does not hide the rest.
    async fn errands(&self, limit: usize) -> StoreResult<Errands>;

    /// Says that this node has removed the files of an agent that were left here.
    async fn forget_leftover(&self, agent: AgentId) -> StoreResult<()>;

    /// Saves whether an agent is followed at this node. Only for agents that are cancelled when nobody follows them.
    async fn set_watched(&self, agent: AgentId, watched: bool) -> StoreResult<()>;

    /// Whether an agent is followed at another node that is alive.
    async fn is_watched_elsewhere(&self, agent: AgentId) -> StoreResult<bool>;

    /// The agents that are saved as followed at this node, also by its previous process. What lost nodes have saved
    /// becomes this node's: somebody must notice that their followers are gone.
    async fn take_watched(&self) -> StoreResult<Vec<AgentId>>;
}

/// What is known of failovers of a store to another server, since this node started. Such a server may lack the newest
/// commits: until all nodes have repeated what was acknowledged to them, the store may be behind what was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Failovers {
    /// The number that each failover raises. 0 if it is not known.
    pub timeline: u32,
    pub count: u64,
    /// Changes that a failover had lost, and that were saved again.
    pub repeated: u64,
    /// Changes that a failover has lost, and that could not be saved again.
    pub lost: u64,
    /// How long ago the newest failover was noticed.
    pub since: Option<Duration>,
}

/// A node, as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub id: NodeId,
    /// A label for people. Several nodes may have the same one.
    pub name: String,
    /// The version of its program.
    pub version: String,
    pub state: NodeState,
    /// The agent types that it runs.
    pub types: Vec<String>,
    pub pulse: Pulse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeState {
    /// It beats, as far as the other nodes know.
    Alive,
    /// It has stopped, and will be back. Its agents keep running.
    Away,
    /// It was silent for too long. What ran there is taken over.
    Lost,
    /// It was taken out for good.
    Gone,
}

impl NodeState {
    pub const ALL: [Self; 4] = [Self::Alive, Self::Away, Self::Lost, Self::Gone];

    /// The name of the state in the API and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Away => "away",
            Self::Lost => "lost",
            Self::Gone => "gone",
        }
    }

    /// The inverse of [`NodeState::as_str`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether nobody continues what runs there.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Lost | Self::Gone)
    }
}

/// How often a node has joined, and how often it has beaten since then. It changes with each beat. No clock is
/// compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pulse {
    pub incarnation: u64,
    pub beat: u64,
}

/// What other nodes have saved and this one must carry out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Errands {
    /// Agents with open turns that this node runs or has taken over: those with a turn that waits or is to be stopped,
    /// and all that were taken over. Those with a turn to be stopped are first, then the oldest.
    pub turns: Vec<OpenErrand>,
    /// Agents that are marked to be purged: those of this node, and those without an open turn whose node is lost, or
    /// that have none.
    pub to_purge: Vec<AgentId>,
    /// Agents that another node has purged, and agents that were let go ([`INodes::let_go`]), whose home was this node.
    /// Their files are still here.
    pub leftovers: Vec<AgentId>,
}

/// The agents that a node takes in one go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaunchClaim {
    /// The agent types that the node runs.
    pub types: Vec<String>,
    /// Maximum number of agents of these types. The oldest are taken.
    pub to_run: usize,
    /// Maximum number of agents that have only turns to be stopped, of any type.
    pub to_stop: usize,
}

/// The outcome of [`INodes::count_launch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchCount {
    Counted,
    /// The next one can be counted after this time.
    TooMany {
        wait: Duration,
    },
}

/// An agent with a turn that waits or is to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenErrand {
    pub agent: AgentId,
    /// Whether a turn is to be stopped that waits or runs.
    pub stop: bool,
    /// Whether the running turn is to be stopped.
    pub stop_running: bool,
}
