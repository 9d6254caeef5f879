//! The git repositories of the folders in which agents work, read by the program `git`.
//!
//! The files of a repository are written by agents, and the settings in `.git/config` can name programs that git then
//! runs: filters, monitors, hooks. So git never sees the repository's settings. For each request, the server creates a
//! git folder of its own with a copy of the index ([`shadow`]), and git takes only the objects and the files from the
//! repository. In this way, git also writes nothing into it.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`place`] | finds the repository of a folder |
//! | [`head`] | reads the commit that HEAD names, without a process |
//! | [`shadow`] | the server's own git folder for one request |
//! | [`git`] | runs git, with a bounded output and a bounded time |
//! | [`listing`] | what git says about files that it tracks |
//! | [`untracked`] | files that it does not track: their lines and their part of a patch |
//! | [`patch`] | cuts a patch between two files; quotes paths |

mod git;
mod head;
mod listing;
mod patch;
mod place;
mod shadow;
#[cfg(test)]
mod tests;
mod untracked;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokenrail_domain::CommitId;
use tokenrail_ports::{Changes, ChangesError, FileChoice, IRepository, Patch};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout, timeout_at};

use self::git::{Git, find_git};
use self::place::Place;
use self::shadow::Shadow;
use self::untracked::Untracked;
use crate::run_folder::blocking;

/// The limits of reading repositories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepositoryLimits {
    /// Requests that run git at the same time. Further requests wait, up to `timeout_ms`.
    pub at_once: usize,
    /// How long a request may take. After that, git is killed.
    pub timeout_ms: u64,
    /// How long reading HEAD at the start of a turn may take. Without an answer, the turn starts without a commit.
    pub head_timeout_ms: u64,
    /// The number of files in a list.
    pub files: usize,
    /// The size of a patch.
    pub patch_bytes: usize,
    /// The largest index that is copied.
    pub index_bytes: u64,
    /// The largest file that git does not track and whose lines are counted and shown.
    pub untracked_file_bytes: u64,
    /// How much of such files is read for one request.
    pub untracked_bytes: u64,
}

impl Default for RepositoryLimits {
    fn default() -> Self {
        Self {
            at_once: 2,
            timeout_ms: 10_000,
            head_timeout_ms: 500,
            files: 2000,
            patch_bytes: 4 << 20,
            index_bytes: 256 << 20,
            untracked_file_bytes: 1 << 20,
            untracked_bytes: 32 << 20,
        }
    }
}

/// Reads repositories with the program `git`, if it is installed.
pub struct Repositories {
    /// Contains a folder for each request that runs.
    scratch: PathBuf,
    /// Repositories that contain this folder are not those of the folders in it.
    ceiling: PathBuf,
    limits: RepositoryLimits,
    places: Semaphore,
    requests: AtomicU64,
}

impl Repositories {
    /// Uses `data_dir/changes` for its own files. A folder inside `data_dir` is in no repository that `data_dir` is in:
    /// agents have their own folders there.
    pub fn new(data_dir: &Path, limits: RepositoryLimits) -> Self {
        let scratch = data_dir.join("changes");
        // A server that was killed may have left something.
        if let Err(error) = fs::remove_dir_all(&scratch)
            && error.kind() != ErrorKind::NotFound
        {
            let path = scratch.display();
            tracing::warn!(error = &error as &dyn std::error::Error, %path, "cannot remove copies of indexes");
        }
        Self {
            scratch,
            ceiling: data_dir.to_owned(),
            limits,
            places: Semaphore::new(limits.at_once),
            requests: AtomicU64::new(0),
        }
    }

    fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.limits.timeout_ms)
    }

    /// Waits until git may run.
    async fn admitted(&self, deadline: Instant) -> Result<SemaphorePermit<'_>, ChangesError> {
        match timeout_at(deadline, self.places.acquire()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(ChangesError::Busy),
        }
    }

    /// Prepares git for the repository of the folder, and checks that it has the commit.
    async fn open(&self, folder: &Path, base: &CommitId, deadline: Instant) -> Result<Opened, ChangesError> {
        let program = find_git().ok_or(ChangesError::NoGit)?;
        let (folder, ceiling) = (folder.to_owned(), self.ceiling.clone());
        let find = blocking(move || Ok(Place::of(&folder, &ceiling)));
        let place = in_time(deadline, find).await?.ok_or(ChangesError::NoRepository)?;
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let scratch = self.scratch.join(format!("{}-{number}", std::process::id()));
        let (of, long_ids, index_bytes) = (place.clone(), base.as_str().len() == 64, self.limits.index_bytes);
        let make = blocking(move || Shadow::make(&scratch, &of, long_ids, index_bytes));
        let shadow = in_time(deadline, make).await?;
        let mut git = Git::new(program, shadow.path(), &place, deadline);
        git.take_settings(&place.common).await?;
        if !git.has(base).await? {
            return Err(ChangesError::CommitGone(base.clone()));
        }
        Ok(Opened { git, place, _shadow: shadow })
    }
}

/// A repository, ready for one request.
struct Opened {
    git: Git,
    place: Place,
    _shadow: Shadow,
}

#[async_trait]
impl IRepository for Repositories {
    async fn head(&self, folder: &Path) -> Option<CommitId> {
        let (folder, ceiling) = (folder.to_owned(), self.ceiling.clone());
        let read = blocking(move || Ok(Place::of(&folder, &ceiling).and_then(|place| head::of(&place))));
        timeout(Duration::from_millis(self.limits.head_timeout_ms), read).await.ok()?.ok()?
    }

    async fn changes(&self, folder: &Path, base: &CommitId) -> Result<Changes, ChangesError> {
        let deadline = self.deadline();
        let _place = self.admitted(deadline).await?;
        let Opened { git, place, _shadow } = self.open(folder, base, deadline).await?;
        let tracked = git.compare(base).await?;
        let mut changes = listing::changes(&tracked, self.limits.files);
        let left = self.limits.files - changes.files.len();
        let untracked = git.untracked(None).await?;
        changes.truncated |= !untracked.complete;
        let untracked = Untracked::new(&place, &untracked, self.limits, deadline);
        let (more, cut) = in_time(deadline, blocking(move || untracked.changes(left))).await?;
        changes.files.extend(more);
        changes.truncated |= cut;
        changes.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    async fn patch(
        &self,
        folder: &Path,
        base: &CommitId,
        file: Option<FileChoice>,
    ) -> Result<Patch, ChangesError> {
        let deadline = self.deadline();
        let _place = self.admitted(deadline).await?;
        let Opened { git, place, _shadow } = self.open(folder, base, deadline).await?;
        let tracked = git.patch(base, file.as_ref(), self.limits.patch_bytes).await?;
        let mut patch = patch::complete_files(tracked);
        let untracked = git.untracked(file.as_ref()).await?;
        patch.truncated |= !untracked.complete;
        let untracked = Untracked::new(&place, &untracked, self.limits, deadline);
        in_time(deadline, blocking(move || untracked.add_to(patch))).await
    }
}

/// Waits for file work, which goes on if it takes too long.
async fn in_time<T>(deadline: Instant, work: impl Future<Output = io::Result<T>>) -> Result<T, ChangesError> {
    timeout_at(deadline, work).await.map_err(|_| ChangesError::TimedOut)?.map_err(ChangesError::Failed)
}
