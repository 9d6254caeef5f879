//! The data folder: made private, and used by one server at a time.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::OpenError;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The right to use a data folder; given back when it is dropped.
pub(crate) struct Folder {
    path: PathBuf,
    /// The kernel's lock on it goes when the file is closed, also when the server is killed.
    _lock: File,
}

impl Folder {
    pub(crate) fn claim(path: &Path) -> Result<Self, OpenError> {
        make(path).map_err(|error| OpenError::io(path, error))?;
        let lock_path = path.join("Lock");
        let lock = private_file(&lock_path).map_err(|error| OpenError::io(&lock_path, error))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::Locked { folder: path.to_owned() }),
            Err(error) => Err(OpenError::io(&lock_path, error.into())),
        }
    }

    /// The database's path. The file exists, so that SQLite gives its own files the same permissions.
    pub(crate) fn database(&self) -> Result<PathBuf, OpenError> {
        let path = database_path(&self.path);
        private_file(&path).map_err(|error| OpenError::io(&path, error))?;
        Ok(path)
    }
}

pub(crate) fn database_path(folder: &Path) -> PathBuf {
    folder.join("tokenrail.db")
}

fn make(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)?;
    // A umask may have taken away too much.
    std::fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE))
}

fn private_file(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(path)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}
