//! A copy of a database that is in use.

use std::fs::File;
use std::io;
use std::path::Path;

use rusqlite::named_params;

use crate::sqlite::config::SqliteLimits;
use crate::sqlite::database::connection::open_source;
use crate::sqlite::database::folder::{Folder, database_path};
use crate::sqlite::error::OpenError;
use crate::sqlite::maintenance::doctor::{SqliteDiagnosis, sqlite_doctor};

/// The name until the copy is complete, so that nobody takes an incomplete copy for a database.
const UNFINISHED: &str = "tokenrail.db.unfinished";

/// Copies what is committed in `folder` now into `to`, a data folder of its own, and examines the copy. A running
/// server is not disturbed; turns that run there are interrupted turns to a server that starts on the copy. Blocks
/// until everything is copied and read; the log of the server cannot be restarted meanwhile.
///
/// # Errors
/// [`OpenError`] as for a start in either folder, and [`OpenError::NotEmpty`].
pub fn sqlite_backup(folder: &Path, to: &Path) -> Result<SqliteDiagnosis, OpenError> {
    let source = database_path(folder);
    std::fs::metadata(&source).map_err(|error| OpenError::io(&source, error))?;
    if std::fs::read_dir(to).is_ok_and(|mut there| there.next().is_some()) {
        return Err(OpenError::NotEmpty { folder: to.to_owned() });
    }
    let target = Folder::claim(to)?;
    let unfinished = target.private_file(UNFINISHED)?;
    if let Err(error) = copy(&source, &unfinished) {
        // The folder is left as empty as it was, for the next try. The first error is the one to report.
        let _ = std::fs::remove_file(&unfinished);
        target.leave_empty();
        return Err(error);
    }
    let finished = database_path(to);
    std::fs::rename(&unfinished, &finished).map_err(|error| OpenError::io(&finished, error))?;
    sync(to)?;
    sqlite_doctor(to)
}

fn copy(source: &Path, to: &Path) -> Result<(), OpenError> {
    let failed = |error| OpenError::sqlite(source, error);
    let db = open_source(source, SqliteLimits::default().busy_timeout_ms).map_err(failed)?;
    let name = to.to_str().ok_or_else(|| OpenError::io(to, io::ErrorKind::InvalidFilename.into()))?;
    db.execute("VACUUM INTO :to", named_params! { ":to": name }).map_err(failed)?;
    sync(to)
}

/// After this, the written data survives a power cut.
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
            let refused = sqlite_backup(from.path(), to.path());
            assert!(matches!(refused, Err(OpenError::Corrupt { .. })), "{refused:?}");
            assert_eq!(std::fs::read_dir(to.path()).unwrap().count(), 0);
        }
    }
}
