//! All run folders of a data folder: ends runs that have no reader any more, and removes their files.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rustix::fs::{StatVfs, statvfs};
use tokenrail_domain::{AgentId, TurnNumber};
use tokenrail_ports::{IRuns, RunnerError};

use crate::run_folder::{
    FurtherRun, RunFolder, RunName, SupervisorRecord, all_runs, blocking, kill_marked, run_of,
};

/// What the files of a run need before its agent prints: 7 of them, with a page each.
const RUN_BYTES: u64 = 64 << 10;
const RUN_FILES: u64 = 10;

/// The runs of process agents in `<data folder>/runs`, whichever agent type they belong to.
pub struct RunFolders(Arc<Place>);

struct Place {
    runs: PathBuf,
    kill_grace_ms: u64,
}

impl RunFolders {
    /// The runs in this folder. If a process survives SIGKILL for `kill_grace_ms`, ending its run fails.
    pub fn new(runs: PathBuf, kill_grace_ms: u64) -> Self {
        Self(Arc::new(Place { runs, kill_grace_ms }))
    }
}

#[async_trait]
impl IRuns for RunFolders {
    async fn sweep(&self, keep: &BTreeSet<(AgentId, TurnNumber)>) -> Result<u32, RunnerError> {
        let (place, keep) = (Arc::clone(&self.0), keep.clone());
        Ok(blocking(move || place.remove_where(|folder, run| is_leftover(&keep, folder, run))).await?)
    }

    async fn end(&self, agent: AgentId, run: TurnNumber) -> Result<(), RunnerError> {
        let place = Arc::clone(&self.0);
        Ok(blocking(move || place.end_one(agent, run)).await?)
    }

    async fn forget(&self, agent: AgentId) -> Result<(), RunnerError> {
        let place = Arc::clone(&self.0);
        blocking(move || place.remove_where(|_, run| Ok(run.agent == agent))).await?;
        Ok(())
    }

    async fn has_room(&self) -> bool {
        let place = Arc::clone(&self.0);
        blocking(move || Ok(has_room(&statvfs(&place.runs)?))).await.unwrap_or(true)
    }
}

fn has_room(disk: &StatVfs) -> bool {
    // File systems that do not know their size, or have no fixed number of files, say that it is 0.
    let has_files = disk.f_files == 0 || RUN_FILES <= disk.f_favail;
    let has_bytes = disk.f_blocks == 0 || RUN_BYTES <= disk.f_bavail.saturating_mul(disk.f_frsize);
    has_files && has_bytes
}

impl Place {
    /// Ends a run and keeps its spool. Blocks.
    fn end_one(&self, agent: AgentId, run: TurnNumber) -> io::Result<()> {
        let mut folder = RunFolder::of_run(&self.runs, agent, run);
        if !folder.path().try_exists()? {
            let Some((of_earlier, _)) = run_of(&self.runs, agent, run)? else { return Ok(()) };
            folder = of_earlier;
        }
        self.end(&folder)?;
        folder.keep_spool()
    }

    /// Ends and removes the chosen runs. One that cannot be ended stays, and the others are removed all the same.
    fn remove_where(&self, is_chosen: impl Fn(&RunFolder, &RunName) -> io::Result<bool>) -> io::Result<u32> {
        let mut removed = 0;
        let mut failed = Ok(());
        for (folder, run) in all_runs(&self.runs)? {
            let done = is_chosen(&folder, &run).and_then(|chosen| {
                if chosen {
                    self.remove(&folder, &run)?;
                }
                Ok(u32::from(chosen))
            });
            match done {
                Ok(done) => removed += done,
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        failed.map(|()| removed)
    }

    fn remove(&self, folder: &RunFolder, run: &RunName) -> io::Result<()> {
        if !run.kept {
            self.end(folder)?;
            tracing::info!(agent = %run.agent, turn = %run.run, "removing a run that belongs to no turn");
        }
        folder.remove()
    }

    /// Kills the supervisor and all its descendants, and then all other processes that the agent has started.
    fn end(&self, folder: &RunFolder) -> io::Result<()> {
        // Without its order, a supervisor that is only slow starts no agent any more.
        folder.forget_order()?;
        let supervisor: Option<SupervisorRecord> = folder.read(RunFolder::SUPERVISOR)?;
        if let Some(supervisor) = supervisor {
            supervisor.kill_with_descendants()?;
        }
        let (_, left) = kill_marked(&folder.marker(), self.kill_grace_ms)?;
        if 0 < left {
            let text = format!("cannot terminate {left} processes of the run {}", folder.name());
            return Err(io::Error::new(ErrorKind::TimedOut, text));
        }
        Ok(())
    }
}

/// Whether neither the first run of a folder nor a further run in its process is in `keep`. A kept spool is not a
/// leftover run.
fn is_leftover(
    keep: &BTreeSet<(AgentId, TurnNumber)>,
    folder: &RunFolder,
    run: &RunName,
) -> io::Result<bool> {
    if run.kept || keep.contains(&(run.agent, run.run)) {
        return Ok(false);
    }
    let further: Option<FurtherRun> = folder.read(RunFolder::FURTHER)?;
    let goes_on = |further: FurtherRun| {
        keep.iter().any(|(agent, kept)| *agent == run.agent && u64::from(kept.0) == further.run)
    };
    Ok(!further.is_some_and(goes_on))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_needs_bytes_and_files() {
        let here = tempfile::tempdir().unwrap();
        let mut disk = statvfs(here.path()).unwrap();
        (disk.f_frsize, disk.f_blocks, disk.f_files) = (4096, 1000, 1000);
        for (bytes, files, is_enough) in [
            (RUN_BYTES, RUN_FILES, true),
            (RUN_BYTES - 1, RUN_FILES, false),
            (RUN_BYTES, RUN_FILES - 1, false),
        ] {
            (disk.f_bavail, disk.f_favail) = (bytes / 4096, files);
            assert_eq!(has_room(&disk), is_enough, "{bytes} bytes, {files} files");
        }
        (disk.f_blocks, disk.f_files, disk.f_bavail, disk.f_favail) = (0, 0, 0, 0);
        assert!(has_room(&disk), "nothing is known");
    }
}
