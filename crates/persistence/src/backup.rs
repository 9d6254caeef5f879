//! A copy of a database that is in use.

use std::fs::File;
use std::io;
use std::path::Path;

use rusqlite::named_params;

use crate::config::StoreLimits;
use crate::connection::open_source;
use crate::folder::{Folder, database_path};
use crate::{Diagnosis, OpenError, doctor};

/// Until it is whole, so that nobody takes half of it for a database.
const UNFINISHED: &str = "tokenrail.db.unfinished";

/// Writes what is committed in `folder` now into `to`, which is then a data folder of its own, and examines it there.
/// A running server is not disturbed; what runs there is, to whoever starts the copy, interrupted. Blocks, for as long
/// as copying and reading all of it takes; the log of the server cannot be cut meanwhile.
///
/// # Errors
/// [`OpenError`]: what a start would refuse in either folder, and [`OpenError::NotEmpty`].
pub fn backup(folder: &Path, to: &Path) -> Result<Diagnosis, OpenError> {
    let source = database_path(folder);
    std::fs::metadata(&source).map_err(|error| OpenError::io(&source, error))?;
    if std::fs::read_dir(to).is_ok_and(|mut there| there.next().is_some()) {
        return Err(OpenError::NotEmpty { folder: to.to_owned() });
    }
    let target = Folder::claim(to)?;
    let unfinished = target.private_file(UNFINISHED)?;
    if let Err(error) = copy(&source, &unfinished) {
        // The folder is as empty as it was, for the next try. What went wrong first is what has to be said.
        let _ = std::fs::remove_file(&unfinished);
        target.leave_empty();
        return Err(error);
    }
    let finished = database_path(to);
    std::fs::rename(&unfinished, &finished).map_err(|error| OpenError::io(&finished, error))?;
    sync(to)?;
    doctor(to)
}

fn copy(source: &Path, to: &Path) -> Result<(), OpenError> {
    let failed = |error| OpenError::sqlite(source, error);
    let db = open_source(source, StoreLimits::default().busy_timeout_ms).map_err(failed)?;
    let name = to.to_str().ok_or_else(|| OpenError::io(to, io::ErrorKind::InvalidFilename.into()))?;
    db.execute("VACUUM INTO :to", named_params! { ":to": name }).map_err(failed)?;
    sync(to)
}

/// What was written survives a power loss.
fn sync(path: &Path) -> Result<(), OpenError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(|error| OpenError::io(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_of_what_is_no_database_leaves_nothing_behind() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(database_path(from.path()), "this is no database".repeat(100)).unwrap();
        for _ in 0..2 {
            let refused = backup(from.path(), to.path());
            assert!(matches!(refused, Err(OpenError::Corrupt { .. })), "{refused:?}");
            assert_eq!(std::fs::read_dir(to.path()).unwrap().count(), 0);
        }
    }
}
