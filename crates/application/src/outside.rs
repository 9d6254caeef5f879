//! The ports of the application. The server crate chooses the adapter of each: `compose.rs`, and `store.rs` for the
//! store.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokenrail_domain::Agent;
use tokenrail_ports::{
    Abilities, IAgentRepository, IAgentRunner, IArchive, IBus, IClock, ICredentials, IGitRepository, IInbox,
    IJournal, IMessageParser, INodes, IRandom, IRuns, IWorkspace,
};

use crate::error::Refusal;

/// What the application needs from outside: the ports. Three of them differ between agent types: see [`AgentType`].
#[derive(Clone)]
pub struct Outside {
    /// `SqliteStore` or `PostgresStore` of the persistence crate, as are `agents`, `archive`, `nodes` and `inbox`.
    pub journal: Arc<dyn IJournal>,
    pub agents: Arc<dyn IAgentRepository>,
    pub archive: Arc<dyn IArchive>,
    pub nodes: Arc<dyn INodes>,
    pub inbox: Arc<dyn IInbox>,
    /// `PostgresStore` of the persistence crate. `None` if the store cannot be shared: then the presentation keeps
    /// credentials in memory.
    pub credentials: Option<Arc<dyn ICredentials>>,
    /// `PostgresBus` of the persistence crate, or `SilentBus` if the store cannot be shared.
    pub bus: Arc<dyn IBus>,
    pub clock: Arc<dyn IClock>,
    pub random: Arc<dyn IRandom>,
    pub runs: Arc<dyn IRuns>,
    pub git: Arc<dyn IGitRepository>,
    pub types: AgentTypes,
    /// The type of a launch that names none.
    pub default_type: Option<String>,
}

impl Outside {
    /// Ends the process of an agent that is idle until its next turn. The next step of a cancel between two turns is
    /// `IdleProcesses::dismiss` (`process/idle_processes.rs` in the runner crate).
    pub(crate) async fn dismiss(&self, agent: &Agent) {
        if let Some(kind) = self.types.get(&agent.kind) {
            kind.runner.dismiss(agent.id).await;
        }
    }

    /// The refusal of an unknown agent type. It lists the configured types.
    pub(crate) fn unknown_type(&self, name: &str) -> Refusal {
        let known: Vec<&str> = self.types.listed.keys().map(String::as_str).collect();
        Refusal::UnknownType { name: name.to_owned(), known: known.join(", ") }
    }
}

/// The agent types, by name.
#[derive(Clone, Default)]
pub struct AgentTypes {
    /// The configured and built-in types.
    pub listed: BTreeMap<String, AgentType>,
    /// Names that built-in types had in earlier versions. They work as before, but no list shows them.
    pub former: BTreeMap<String, AgentType>,
}

impl AgentTypes {
    /// The type with this name, or that had this name in an earlier version.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&AgentType> {
        self.listed.get(name).or_else(|| self.former.get(name))
    }

    /// All of them, with those that no list shows.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&String, &AgentType)> {
        self.listed.iter().chain(&self.former)
    }
}

/// Creates the parser of one run.
pub type MakeParser = Arc<dyn Fn() -> Box<dyn IMessageParser> + Send + Sync>;

/// One configured kind of agent. On a shared store, any node can run the next turn of an agent whose runner
/// [needs no home](IAgentRunner::needs_home).
#[derive(Clone)]
pub struct AgentType {
    /// A runner of the runner crate, as the type's block of configuration says: `agent_type` in `compose.rs`.
    pub runner: Arc<dyn IAgentRunner>,
    /// `Workspaces` of the runner crate.
    pub workspace: Arc<dyn IWorkspace>,
    /// A parser of the parser crate, as the type's `format` says: `formats` there, chosen by `parsers` in `compose.rs`.
    pub parser: MakeParser,
    pub abilities: Abilities,
    /// The names of the runner and the format in the configuration.
    pub runner_name: String,
    pub format: String,
}
