//! The folders in which agents may work.

use std::path::PathBuf;

use async_trait::async_trait;
use tokenrail_domain::AgentId;

/// Gives each agent a folder to work in.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IWorkspace: Send + Sync {
    /// The folder for a new agent, absolute and without symbolic links; it exists and lies inside one of the
    /// configured roots. Where none was asked for, a new folder of the agent's own.
    ///
    /// # Errors
    /// [`FolderError::NotAllowed`] for a folder that is outside, missing or no folder: which of these is not told.
    /// [`FolderError::NotMade`] for one of the agent's own.
    async fn folder(&self, agent: AgentId, asked: Option<String>) -> Result<PathBuf, FolderError>;

    /// Removes the folder that was made for the agent, with all that is in it. A folder that a launch asked for is
    /// never removed; where there is none of the agent's own, nothing happens.
    ///
    /// # Errors
    /// What the system says where something of it is left.
    async fn remove(&self, agent: AgentId) -> std::io::Result<()>;
}

/// Why there is no folder to work in.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error(transparent)]
    NotAllowed(#[from] CwdNotAllowed),
    #[error("cannot create a folder for the agent")]
    NotMade(#[from] std::io::Error),
}

/// The folder cannot be worked in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the working directory does not exist, or is not inside the cwd_roots of the agent type")]
pub struct CwdNotAllowed;
