//! The folders in which agents may work.

use std::path::PathBuf;

use async_trait::async_trait;
use tokenrail_domain::AgentId;

/// Provides each agent with a folder to work in.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IWorkspace: Send + Sync {
    /// Returns the folder for an agent: absolute, existing, and without symbolic links. If `asked` is given, this is
    /// the folder, and it lies inside one of the configured roots or allowed folders. Otherwise it is a
    /// folder of the agent's own, which is made if it is not there.
    ///
    /// # Errors
    /// [`FolderError::NotAllowed`] if the requested folder is outside of those, is missing or is not a folder. The
    /// error does not say which. [`FolderError::NotMade`] if the agent's own folder cannot be created.
    async fn folder(&self, agent: AgentId, asked: Option<String>) -> Result<PathBuf, FolderError>;

    /// Removes the agent's own folder and everything in it. A folder that a launch asked for is never removed. Does
    /// nothing if the agent has no folder of its own.
    ///
    /// # Errors
    /// The error of the operating system if a part of the folder could not be removed.
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

/// Agents are not allowed to work in the requested folder, or it does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the working directory does not exist, or agents are not allowed to work in it; on the server, run \
     `tokenrail allow FOLDER`, or add the folder to the cwd_roots of the agent type"
)]
pub struct CwdNotAllowed;
