//! The note in a data folder that its data is being moved to another database.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};

use uuid::Uuid;

use crate::sqlite::database::folder::Folder;
use crate::sqlite::error::OpenError;

const NOTE: &str = "move";

impl Folder {
    /// The id of the move that was begun. `None` if there is none.
    pub(crate) fn noted_move(&self) -> Result<Option<Uuid>, OpenError> {
        let path = self.path().join(NOTE);
        match fs::read_to_string(&path) {
            // A file that a crash has left without content was not used yet.
            Ok(text) => Ok(text.trim().parse().ok()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(OpenError::io(&path, error)),
        }
    }

    /// Notes durably that a move has begun.
    pub(crate) fn note_move(&self, id: Uuid) -> Result<(), OpenError> {
        let path = self.private_file(NOTE)?;
        let write = || {
            let mut file = File::create(&path)?;
            writeln!(file, "{id}")?;
            file.sync_all()?;
            File::open(self.path())?.sync_all()
        };
        write().map_err(|error| OpenError::io(&path, error))
    }

    /// Removes the note. At worst a file without meaning is left.
    pub(crate) fn forget_move(&self) {
        let _ = fs::remove_file(self.path().join(NOTE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noted_move_is_found_again_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let claimed = Folder::claim(folder.path()).unwrap();
        assert_eq!(claimed.noted_move().unwrap(), None);
        fs::write(folder.path().join(NOTE), "").unwrap();
        assert_eq!(claimed.noted_move().unwrap(), None);
        for id in [Uuid::from_u128(1), Uuid::from_u128(2)] {
            claimed.note_move(id).unwrap();
            assert_eq!(claimed.noted_move().unwrap(), Some(id));
        }
        claimed.forget_move();
        assert_eq!(claimed.noted_move().unwrap(), None);
    }
}
