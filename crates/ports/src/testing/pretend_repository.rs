//! Folders without version control, and with one that a test describes.

use std::path::Path;

use async_trait::async_trait;
use tokenrail_domain::CommitId;

use crate::{Changes, ChangesError, FileChoice, IGitRepository, Patch};

/// One repository for all folders, with the same answers to everybody. Without a head, no folder is in a repository.
#[derive(Debug, Clone, Default)]
pub struct PretendRepository {
    pub head: Option<CommitId>,
    pub changes: Changes,
    pub patch: Patch,
}

#[async_trait]
impl IGitRepository for PretendRepository {
    async fn head(&self, _folder: &Path) -> Option<CommitId> {
        tokio::task::yield_now().await;
        self.head.clone()
    }

    async fn changes(&self, _folder: &Path, base: &CommitId) -> Result<Changes, ChangesError> {
        tokio::task::yield_now().await;
        self.check(base)?;
        Ok(self.changes.clone())
    }

    async fn patch(
        &self,
        _folder: &Path,
        base: &CommitId,
        _file: Option<FileChoice>,
    ) -> Result<Patch, ChangesError> {
        tokio::task::yield_now().await;
        self.check(base)?;
        Ok(self.patch.clone())
    }
}

impl PretendRepository {
    fn check(&self, base: &CommitId) -> Result<(), ChangesError> {
        match &self.head {
            None => Err(ChangesError::NoRepository),
            Some(head) if head != base => Err(ChangesError::CommitGone(base.clone())),
            Some(_) => Ok(()),
        }
    }
}
