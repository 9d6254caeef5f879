//! The version control of the folders in which agents work.

use std::path::Path;

use async_trait::async_trait;
use tokenrail_domain::CommitId;

/// Reads the git repository of a folder. Never writes into it, and runs no program that the repository names.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IGitRepository: Send + Sync {
    /// Returns the commit that HEAD names in the repository of the folder. In a repository without a commit, this is
    /// the empty tree. Returns `None` if the folder is in no repository, or if this cannot be read in a short time. A
    /// turn starts after that, so the answer comes within a second.
    async fn head(&self, folder: &Path) -> Option<CommitId>;

    /// Returns the files of the whole repository of the folder that differ from `base`: those that git tracks, and
    /// those that it neither tracks nor ignores. They are sorted by path.
    async fn changes(&self, folder: &Path, base: &CommitId) -> Result<Changes, ChangesError>;

    /// Returns the differences from `base` as a unified diff: of all files, or of one.
    async fn patch(
        &self,
        folder: &Path,
        base: &CommitId,
        file: Option<FileChoice>,
    ) -> Result<Patch, ChangesError>;
}

/// The files that differ from a commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    pub files: Vec<ChangedFile>,
    /// Whether there are more files than the limit allows.
    pub truncated: bool,
}

/// A file that differs from a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// The path below the root of the repository. Bytes that are not UTF-8 are replaced.
    pub path: String,
    pub status: FileStatus,
    pub extent: Extent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileStatus {
    Added,
    Modified,
    Deleted,
    Renamed {
        from: String,
    },
    /// Git does not track the file. All of it is new.
    Untracked,
}

/// How much of a file has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Lines {
        added: u64,
        removed: u64,
    },
    /// The file is not text.
    Binary,
    /// The file is too large to be counted, or is not a file: a repository within the repository.
    Uncounted,
}

/// One file of a repository, by its paths in [`Changes`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChoice {
    pub path: String,
    /// The path from which it was renamed.
    pub old_path: Option<String>,
}

/// A unified diff.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch {
    /// Complete files only, so that the patch can be applied. Not always UTF-8.
    pub text: Vec<u8>,
    /// Whether files are left out because of a limit.
    pub truncated: bool,
}

/// Why the changes of a repository cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    #[error("the folder is not in a git repository")]
    NoRepository,
    #[error("git is not installed on the server; install it")]
    NoGit,
    #[error("the repository no longer has the commit {0}")]
    CommitGone(CommitId),
    #[error("git took too long; raise limits.changes_timeout_s")]
    TimedOut,
    #[error("too many repositories are being read; try again later, or raise limits.changes_at_once")]
    Busy,
    #[error("git failed")]
    Failed(#[source] std::io::Error),
}
