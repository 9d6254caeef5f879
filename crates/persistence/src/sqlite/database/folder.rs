//! The data folder: private, and used by one server at a time.

mod node_id;

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock, statvfs};
use rustix::io::Errno;

use crate::sqlite::error::OpenError;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const LOCK: &str = "Lock";
/// A server that is killed while it starts an agent leaves a process that holds the lock until it becomes the
/// supervisor.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// The content of the lock file of a folder that has a database.
const MARK: &[u8] = b"tokenrail.db\n";
/// The content of the lock file of a folder whose database is elsewhere.
const MARK_ELSEWHERE: &[u8] = b"postgres\n";

/// The right to use a data folder whose database is elsewhere, until it is dropped. The output of running agents and
/// the token are still in the folder.
///
/// A folder stays with one kind of database. The server ends the runs in the folder that its database does not know, so
/// a server with the wrong database would end all of them.
pub struct DataFolder {
    _folder: Folder,
    node: [u8; 16],
}

impl DataFolder {
    /// Creates the folder if it does not exist.
    ///
    /// # Errors
    /// [`OpenError::Locked`] if another server uses it; [`OpenError::OtherDatabase`] if its data is in SQLite;
    /// [`OpenError::NoNodeId`] if the file with its identity is damaged.
    pub fn claim(path: &Path) -> Result<Self, OpenError> {
        let folder = Folder::claim(path)?;
        let has_database = std::fs::metadata(database_path(path)).is_ok_and(|file| 0 < file.len());
        // After a move, the old database is still there.
        if !folder.is_elsewhere()? && (has_database || folder.mark()? == MARK) {
            return Err(OpenError::OtherDatabase {
                folder: path.to_owned(),
                used: "SQLite",
                advice: "remove storage.url from the configuration to keep using it, run `tokenrail move` to move \
                         the data",
            });
        }
        folder.mark_with(MARK_ELSEWHERE)?;
        let node = node_id::of(path)?;
        Ok(Self { _folder: folder, node })
    }

    /// The identity of the folder, by which the nodes of a database are distinguished. It never changes.
    pub fn node(&self) -> [u8; 16] {
        self.node
    }
}

/// The right to use a data folder, until it is dropped.
pub(crate) struct Folder {
    path: PathBuf,
    /// The kernel releases the lock when the file is closed, also when the server is killed.
    lock: File,
}

impl Folder {
    pub(crate) fn claim(path: &Path) -> Result<Self, OpenError> {
        make(path).map_err(|error| OpenError::io(path, error))?;
        let lock_path = path.join(LOCK);
        let lock = private_file(&lock_path).map_err(|error| OpenError::io(&lock_path, error))?;
        let started = Instant::now();
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { path: path.to_owned(), lock }),
                Err(Errno::WOULDBLOCK) if started.elapsed() < LOCK_PATIENCE => std::thread::sleep(LOCK_PAUSE),
                Err(Errno::WOULDBLOCK) => return Err(OpenError::Locked { folder: path.to_owned() }),
                Err(error) => return Err(OpenError::io(&lock_path, error.into())),
            }
        }
    }

    /// The path of the database. The file exists, so that SQLite creates its own files with the same permissions.
    ///
    /// # Errors
    /// SQLite takes an empty file for a new database. If there was a database before, an empty file means that it was
    /// lost.
    pub(crate) fn database(&self) -> Result<PathBuf, OpenError> {
        let path = database_path(&self.path);
        let mark = self.mark()?;
        if self.is_elsewhere()? {
            return Err(OpenError::OtherDatabase {
                folder: self.path.clone(),
                used: "PostgreSQL",
                advice: "set storage.url in the configuration",
            });
        }
        let is_empty = std::fs::metadata(&path).is_ok_and(|file| file.len() == 0);
        if is_empty && !mark.is_empty() {
            let problem = "the file is empty, but it contained data before; restore a backup, or delete the file \
                           to start with an empty database";
            return Err(OpenError::Corrupt { path, problem: problem.to_owned() });
        }
        private_file(&path).map_err(|error| OpenError::io(&path, error))?;
        Ok(path)
    }

    /// Creates an empty file that only its owner can read.
    pub(crate) fn private_file(&self, name: &str) -> Result<PathBuf, OpenError> {
        let path = self.path.join(name);
        private_file(&path).map_err(|error| OpenError::io(&path, error))?;
        Ok(path)
    }

    /// Removes what claiming the folder created, if the folder is not used after all.
    pub(crate) fn leave_empty(self) {
        // At worst an empty file is left.
        let _ = std::fs::remove_file(self.path.join(LOCK));
    }

    /// Records that the folder has a database.
    pub(crate) fn mark_as_used(&self) -> Result<(), OpenError> {
        self.mark_with(MARK)
    }

    fn mark_with(&self, mark: &[u8]) -> Result<(), OpenError> {
        if !self.mark()?.is_empty() {
            return Ok(());
        }
        let failed = |error| OpenError::io(&self.path.join(LOCK), error);
        self.lock.write_all_at(mark, 0).map_err(failed)?;
        self.lock.sync_all().map_err(failed)
    }

    /// Whether the database is elsewhere.
    pub(crate) fn is_elsewhere(&self) -> Result<bool, OpenError> {
        Ok(self.mark()? == MARK_ELSEWHERE)
    }

    /// Records that the data has moved to another database. From now on, the folder belongs to that one.
    pub(crate) fn hand_over(&self) -> Result<(), OpenError> {
        let failed = |error| OpenError::io(&self.path.join(LOCK), error);
        // A power loss leaves the old line or the new one: a write of a few bytes is not divided.
        self.lock.write_all_at(MARK_ELSEWHERE, 0).map_err(failed)?;
        self.lock.sync_all().map_err(failed)?;
        self.lock.set_len(MARK_ELSEWHERE.len() as u64).map_err(failed)?;
        self.lock.sync_all().map_err(failed)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The first line of the lock file. Empty if the folder was never used.
    fn mark(&self) -> Result<Vec<u8>, OpenError> {
        // Longer than all marks, so that none is taken for another one.
        let mut content = vec![0; 64];
        let read = self.lock.read_at(&mut content, 0);
        content.truncate(read.map_err(|error| OpenError::io(&self.path.join(LOCK), error))?);
        if let Some(end) = content.iter().position(|byte| *byte == b'\n') {
            content.truncate(end + 1);
        }
        Ok(content)
    }
}

/// Whether a server uses the data folder now. A server that starts at this very moment is not disturbed: it retries.
pub fn is_in_use(folder: &Path) -> bool {
    let Ok(lock) = File::open(folder.join(LOCK)) else { return false };
    matches!(flock(&lock, FlockOperation::NonBlockingLockShared), Err(Errno::WOULDBLOCK))
}

pub(crate) fn database_path(folder: &Path) -> PathBuf {
    folder.join("tokenrail.db")
}

fn make(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)?;
    // A umask may have removed too many permissions.
    std::fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE))
}

fn private_file(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(path)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

/// The bytes that the disk of this file has free.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let disk = statvfs(path)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stays_with_its_kind_of_database() {
        let (sqlite, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Folder::claim(sqlite.path()).unwrap().mark_as_used().unwrap();
        for _ in 0..2 {
            drop(DataFolder::claim(elsewhere.path()).unwrap());
        }
        let told = |error: OpenError| {
            assert!(matches!(error, OpenError::OtherDatabase { .. }));
            error.to_string()
        };
        assert!(told(DataFolder::claim(sqlite.path()).err().unwrap()).contains("remove storage.url"));
        let wrong = Folder::claim(elsewhere.path()).unwrap().database().unwrap_err();
        assert!(told(wrong).contains("set storage.url"));
        assert!(!database_path(elsewhere.path()).exists());
        Folder::claim(sqlite.path()).unwrap().database().unwrap();
    }

    #[test]
    fn a_folder_that_was_handed_over_belongs_to_the_other_database() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(database_path(folder.path()), "anything").unwrap();
        let claimed = Folder::claim(folder.path()).unwrap();
        claimed.mark_as_used().unwrap();
        // A power loss may leave the end of the old line.
        claimed.lock.write_all_at(MARK_ELSEWHERE, 0).unwrap();
        assert!(claimed.is_elsewhere().unwrap());
        claimed.hand_over().unwrap();
        drop(claimed);
        assert_eq!(std::fs::read(folder.path().join(LOCK)).unwrap(), MARK_ELSEWHERE);
        drop(DataFolder::claim(folder.path()).unwrap());
        let wrong = Folder::claim(folder.path()).unwrap().database().unwrap_err();
        assert!(wrong.to_string().contains("set storage.url"), "{wrong}");
    }

    #[test]
    fn a_folder_of_an_earlier_version_is_recognised_by_its_database() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(database_path(folder.path()), "anything").unwrap();
        assert!(matches!(DataFolder::claim(folder.path()), Err(OpenError::OtherDatabase { .. })));
    }

    #[test]
    fn one_server_at_a_time_uses_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let used = DataFolder::claim(folder.path()).unwrap();
        assert!(is_in_use(folder.path()));
        assert!(matches!(DataFolder::claim(folder.path()), Err(OpenError::Locked { .. })));
        drop(used);
        assert!(!is_in_use(folder.path()));
    }
}
