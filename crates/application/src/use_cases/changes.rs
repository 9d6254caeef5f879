//! What an agent has changed in the git repository of its folder.

use std::path::Path;

use tokenrail_domain::{Agent, AgentId, CommitId, TurnNumber};
use tokenrail_ports::{Changes, ChangesError, FileChoice, Patch, TurnRange};

use super::turns::Prompts;
use crate::error::{NoChanges, Refusal};
use crate::service::AgentService;

/// The files that differ from the commit at the start of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentChanges {
    pub turn: TurnNumber,
    pub base: CommitId,
    pub changes: Changes,
}

impl AgentService {
    /// The files that differ from the commit at the start of this turn: or, without one, of the first turn that started
    /// in a repository. They include what others changed since then.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::ChangesUnknown`], [`Refusal::TooManyChanges`], [`Refusal::Store`].
    pub async fn changes(&self, id: AgentId, turn: Option<TurnNumber>) -> Result<AgentChanges, Refusal> {
        let (agent, turn, base) = self.changed_since(id, turn).await?;
        let changes = self.core.outside.git.changes(Path::new(&agent.cwd), &base).await;
        Ok(AgentChanges { turn, base, changes: changes.map_err(|error| refused(id, &error))? })
    }

    /// The same changes as a unified diff: of all files, or of one.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::ChangesUnknown`], [`Refusal::TooManyChanges`], [`Refusal::Store`].
    pub async fn patch(
        &self,
        id: AgentId,
        turn: Option<TurnNumber>,
        file: Option<FileChoice>,
    ) -> Result<Patch, Refusal> {
        let (agent, _, base) = self.changed_since(id, turn).await?;
        let patch = self.core.outside.git.patch(Path::new(&agent.cwd), &base, file).await;
        patch.map_err(|error| refused(id, &error))
    }

    async fn changed_since(
        &self,
        id: AgentId,
        turn: Option<TurnNumber>,
    ) -> Result<(Agent, TurnNumber, CommitId), Refusal> {
        let agent = self.get(id).await?;
        if agent.copy.is_some() {
            return Err(NoChanges::Copy.into());
        }
        if !self.core.is_here(&agent) {
            return Err(NoChanges::OtherNode.into());
        }
        let found = if let Some(number) = turn {
            self.turn(id, number).await?
        } else {
            let first = TurnRange { with_base: true, limit: 1, ..TurnRange::default() };
            self.list_turns(id, first, Prompts::LeftOut).await?.items.pop().map(|listed| listed.turn)
        };
        let found = found.and_then(|turn| Some((turn.number, turn.base?)));
        let (number, base) = found.ok_or(NoChanges::NoCommit)?;
        Ok((agent, number, base))
    }
}

fn refused(agent: AgentId, error: &ChangesError) -> Refusal {
    let why = match error {
        ChangesError::Busy => return Refusal::TooManyChanges,
        ChangesError::NoRepository => NoChanges::NoRepository,
        ChangesError::CommitGone(_) => NoChanges::CommitGone,
        ChangesError::NoGit => NoChanges::NoGit,
        ChangesError::TimedOut => NoChanges::TimedOut,
        ChangesError::Failed(_) => {
            let error = error as &dyn std::error::Error;
            tracing::warn!(%agent, error, "cannot read the changes of a repository");
            NoChanges::GitFailed
        }
    };
    why.into()
}
