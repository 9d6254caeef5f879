//! Which agents a list contains.

use tokenrail_domain::{AgentId, AgentStatus};

/// Which agents to list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentFilter {
    /// Any of these. Empty: all.
    pub statuses: Vec<AgentStatus>,
    pub kind: Option<String>,
    pub name: Option<String>,
    /// Only agents launched before this one.
    pub before: Option<AgentId>,
    /// Only agents launched after this one.
    pub after: Option<AgentId>,
    /// The oldest first.
    pub oldest_first: bool,
    /// Deleted agents instead of the others.
    pub deleted: bool,
    /// Only pinned agents.
    pub pinned: bool,
    pub archived: ArchivedFilter,
    /// Only agents that this one has launched.
    pub launched_by: Option<AgentId>,
    pub limit: usize,
}

/// Whether a list contains archived agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArchivedFilter {
    /// Archived agents and the others.
    #[default]
    With,
    Without,
    Only,
}

impl ArchivedFilter {
    /// The value that agents must have. `None`: any.
    pub fn wanted(self) -> Option<bool> {
        match self {
            Self::With => None,
            Self::Without => Some(false),
            Self::Only => Some(true),
        }
    }
}
