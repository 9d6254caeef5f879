//! The file `node.id`: the identity of a data folder.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use rustix::rand::{GetRandomFlags, getrandom};
use uuid::{Builder, Uuid};

use super::private_file;
use crate::sqlite::error::OpenError;

const FILE: &str = "node.id";
const NEW_FILE: &str = "node.id.new";

/// The identity of this folder. Makes one, durably, if it has none.
pub(super) fn of(folder: &Path) -> Result<[u8; 16], OpenError> {
    let path = folder.join(FILE);
    match std::fs::read(&path) {
        Ok(content) => {
            let text = str::from_utf8(&content).unwrap_or_default();
            let id = Uuid::try_parse(text.trim_ascii_end()).ok().filter(|id| !id.is_nil());
            Ok(id.ok_or(OpenError::NoNodeId { path })?.into_bytes())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(folder).map_err(|error| OpenError::io(&path, error))
        }
        Err(error) => Err(OpenError::io(&path, error)),
    }
}

/// Whatever happens, the file has no content or all of it.
fn make(folder: &Path) -> io::Result<[u8; 16]> {
    let mut random = [0; 16];
    let filled = getrandom(&mut random, GetRandomFlags::empty())?;
    if filled < random.len() {
        return Err(io::Error::other("the system returned too few random bytes"));
    }
    let id = Builder::from_random_bytes(random).into_uuid();
    let new = folder.join(NEW_FILE);
    let mut file = private_file(&new)?;
    file.set_len(0)?;
    writeln!(file, "{id}")?;
    file.sync_all()?;
    std::fs::rename(&new, folder.join(FILE))?;
    File::open(folder)?.sync_all()?;
    Ok(id.into_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_folder_has_one_identity_and_keeps_it() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let id = of(one.path()).unwrap();
        assert_eq!(of(one.path()).unwrap(), id);
        assert_ne!(of(other.path()).unwrap(), id);
        let file = std::fs::metadata(one.path().join(FILE)).unwrap();
        assert_eq!((file.permissions().mode() & 0o777, file.len()), (0o600, 37));
        assert!(!one.path().join(NEW_FILE).exists());
    }

    #[test]
    fn a_start_that_was_killed_while_it_made_the_identity_leaves_nothing_that_counts() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join(NEW_FILE),
            "0123456789 and more than an identity has, so that it shows",
        )
        .unwrap();
        let id = of(folder.path()).unwrap();
        assert_eq!(of(folder.path()).unwrap(), id);
    }

    #[test]
    fn a_damaged_identity_is_an_error_that_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        for damaged in ["", "\n", "0123", "00000000-0000-0000-0000-000000000000\n", "\u{fffd}"] {
            std::fs::write(folder.path().join(FILE), damaged).unwrap();
            let error = of(folder.path()).unwrap_err();
            assert!(matches!(&error, OpenError::NoNodeId { .. }), "{damaged:?}: {error:?}");
            assert!(error.to_string().contains("restore it from a backup"), "{error}");
            assert_eq!(std::fs::read_to_string(folder.path().join(FILE)).unwrap(), damaged);
        }
    }
}
