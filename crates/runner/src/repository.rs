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
//! | [`index`] | checks the copy of the index before git reads it |
//! | [`request`] | the time of a request, and its place among others |
//! | [`git`] | runs git, with a bounded output, memory and time |
//! | [`listing`] | the list of the files that differ |
//! | [`untracked`] | files that it does not track: their lines and their part of a patch |
//! | [`patch`] | cuts a patch between two files, or chooses one; quotes paths |

mod git;
mod head;
mod index;
mod listing;
mod patch;
mod place;
mod request;
mod shadow;
#[cfg(test)]
mod tests;
mod untracked;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokenrail_domain::CommitId;
use tokenrail_ports::{Changes, ChangesError, FileChoice, IGitRepository, Patch};
use tokio::sync::Semaphore;

use self::git::{Git, find_git};
use self::listing::Listing;
use self::place::Place;
use self::request::Request;
use self::shadow::Shadow;
use self::untracked::Untracked;

/// The limits of reading repositories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepositoryLimits {
    /// Requests that run git at the same time. Further requests wait, up to `changes_timeout_ms`.
    pub changes_at_once: usize,
    /// How long a request may take, without the wait for others. After that, git is killed.
    pub changes_timeout_ms: u64,
    /// The memory of git.
    pub changes_memory_bytes: u64,
    /// Reads of HEAD at the same time. Further ones wait, up to `head_timeout_ms`.
    pub heads_at_once: usize,
    /// How long reading HEAD at the start of a turn may take. Without an answer, the turn starts without a commit.
    pub head_timeout_ms: u64,
    /// The number of files in a list.
    pub changes_files: usize,
    /// The size of a patch.
    pub patch_bytes: usize,
    /// The largest index that is copied, with the shared index that it may name.
    pub index_bytes: u64,
    /// The largest file that git does not track and whose lines are counted and shown.
    pub untracked_file_bytes: u64,
    /// How much of such files is read for one request.
    pub untracked_bytes: u64,
}

impl Default for RepositoryLimits {
    fn default() -> Self {
        Self {
            changes_at_once: 2,
            changes_timeout_ms: 10_000,
            changes_memory_bytes: 1 << 30,
            heads_at_once: 8,
            head_timeout_ms: 500,
            changes_files: 2000,
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
    places: Arc<Semaphore>,
    heads: Arc<Semaphore>,
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
            tracing::warn!(error = &error as &dyn std::error::Error, %path, "cannot remove temporary copies of git index files");
        }
        Self {
            scratch,
            ceiling: data_dir.to_owned(),
            limits,
            places: Arc::new(Semaphore::new(limits.changes_at_once)),
            heads: Arc::new(Semaphore::new(limits.heads_at_once)),
            requests: AtomicU64::new(0),
        }
    }

    /// Waits until git may run.
    async fn admitted(&self) -> Result<Request, ChangesError> {
        Request::admitted(&self.places, Duration::from_millis(self.limits.changes_timeout_ms)).await
    }

    /// Prepares git for the repository of the folder.
    async fn open(&self, folder: &Path, base: &CommitId, request: &Request) -> Result<Opened, ChangesError> {
        let (folder, ceiling) = (folder.to_owned(), self.ceiling.clone());
        let find = move || Ok((find_git(), Place::of(&folder, &ceiling)));
        let (program, place) = request.blocking(find).await?;
        let (program, place) =
            (program.ok_or(ChangesError::NoGit)?, place.ok_or(ChangesError::NoRepository)?);
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let scratch = self.scratch.join(format!("{}-{number}", std::process::id()));
        let (of, long_ids, index_bytes) = (place.clone(), base.as_str().len() == 64, self.limits.index_bytes);
        let own = request.clone();
        let make = move || Shadow::make(&scratch, &of, long_ids, index_bytes, own);
        let shadow = request.blocking(make).await?;
        let git = Git::new(program, shadow.path(), &place, self.limits.changes_memory_bytes, request.clone());
        Ok(Opened { git, place, shadow })
    }

    async fn list(
        &self,
        opened: &mut Opened,
        base: &CommitId,
        request: &Request,
    ) -> Result<Changes, ChangesError> {
        let git = opened.ready(base).await?;
        let mut list = Listing::of(&git.compare(base).await?, self.limits.changes_files);
        let untracked = git.untracked(None).await?;
        if !untracked.complete {
            list.cut();
        }
        let untracked = Untracked::new(&opened.place, &untracked, None, self.limits, request.clone());
        Ok(request.blocking(move || untracked.add_to_list(list)).await?.into_changes())
    }

    async fn diff(
        &self,
        opened: &mut Opened,
        base: &CommitId,
        file: Option<&FileChoice>,
        request: &Request,
    ) -> Result<Patch, ChangesError> {
        let git = opened.ready(base).await?;
        let mut patch = patch::complete_files(git.patch(base, file, self.limits.patch_bytes).await?);
        if let Some(file) = file {
            patch = patch::only(patch, file);
        }
        let untracked = git.untracked(file).await?;
        patch.truncated |= !untracked.complete;
        let untracked = Untracked::new(&opened.place, &untracked, file, self.limits, request.clone());
        request.blocking(move || untracked.add_to(patch)).await
    }
}

/// A repository during one request.
struct Opened {
    git: Git,
    place: Place,
    shadow: Shadow,
}

impl Opened {
    /// Git with the repository's settings, after a check that the repository has the commit.
    async fn ready(&mut self, base: &CommitId) -> Result<&Git, ChangesError> {
        self.git.take_settings(&self.place.common).await?;
        if !self.git.has(base).await? {
            return Err(ChangesError::CommitGone(base.clone()));
        }
        Ok(&self.git)
    }
}

#[async_trait]
impl IGitRepository for Repositories {
    async fn head(&self, folder: &Path) -> Option<CommitId> {
        let time = Duration::from_millis(self.limits.head_timeout_ms);
        let request = Request::admitted(&self.heads, time).await.ok()?;
        let (folder, ceiling) = (folder.to_owned(), self.ceiling.clone());
        let read = move || Ok(Place::of(&folder, &ceiling).and_then(|place| head::of(&place)));
        request.blocking(read).await.ok()?
    }

    async fn changes(&self, folder: &Path, base: &CommitId) -> Result<Changes, ChangesError> {
        let request = self.admitted().await?;
        let mut opened = self.open(folder, base, &request).await?;
        let changes = self.list(&mut opened, base, &request).await;
        opened.shadow.remove().await;
        changes
    }

    async fn patch(
        &self,
        folder: &Path,
        base: &CommitId,
        file: Option<FileChoice>,
    ) -> Result<Patch, ChangesError> {
        let request = self.admitted().await?;
        let mut opened = self.open(folder, base, &request).await?;
        let patch = self.diff(&mut opened, base, file.as_ref(), &request).await;
        opened.shadow.remove().await;
        patch
    }
}
