//! The token that clients need. It is created at the first start, and only the owner of the data folder can read it.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::clock::SystemRandom;

const TOKEN_BYTES: usize = 32;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("other users can read the token file {}; run: chmod 600 {}", .0.display(), .0.display())]
    ReadableByOthers(PathBuf),
    #[error("the token file {} contains no token; delete it, and the next start creates a new one", .0.display())]
    Malformed(PathBuf),
    #[error("cannot read or create the token file {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The path of the token in a data folder.
pub(crate) fn token_file(data_dir: &Path) -> PathBuf {
    data_dir.join("token")
}

/// Reads the token of a data folder: 64 hexadecimal digits, 256 random bits.
///
/// # Errors
/// [`TokenError`]; [`TokenError::Io`] with [`io::ErrorKind::NotFound`] if no server has ever started on the folder.
pub(crate) fn read(data_dir: &Path) -> Result<String, TokenError> {
    let path = token_file(data_dir);
    let failed = |source| TokenError::Io { path: path.clone(), source };
    let file = OpenOptions::new().read(true).open(&path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(TokenError::ReadableByOthers(path));
    }
    let mut text = String::new();
    file.take(1024).read_to_string(&mut text).map_err(failed)?;
    let token = text.trim();
    if token.len() == 2 * TOKEN_BYTES && token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(token.to_owned())
    } else {
        Err(TokenError::Malformed(path))
    }
}

/// Reads the token, or creates one if there is none yet.
///
/// # Errors
/// [`TokenError`].
pub(crate) fn read_or_make(data_dir: &Path) -> Result<String, TokenError> {
    match read(data_dir) {
        Err(TokenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => make(data_dir),
        other => other,
    }
}

/// Replaces the token. A running server does not notice it until its restart.
///
/// # Errors
/// [`TokenError`]; [`TokenError::Io`] with [`io::ErrorKind::NotFound`] if no server has ever started on the folder.
pub(crate) fn rotate(data_dir: &Path) -> Result<String, TokenError> {
    match read(data_dir) {
        // Rotation also repairs a token file that holds no token.
        Ok(_) | Err(TokenError::Malformed(_)) => make(data_dir),
        Err(error) => Err(error),
    }
}

fn make(data_dir: &Path) -> Result<String, TokenError> {
    let path = token_file(data_dir);
    let failed = |source| TokenError::Io { path: path.clone(), source };
    let mut bytes = [0; TOKEN_BYTES];
    SystemRandom::fill(&mut bytes).map_err(failed)?;
    let mut token = String::with_capacity(2 * TOKEN_BYTES);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(token, "{byte:02x}");
    }
    write(&path, &token).map_err(failed)?;
    Ok(token)
}

/// Writes the whole token or nothing: a server that is killed meanwhile must not leave half a token.
fn write(path: &Path, token: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    writeln!(file, "{token}")?;
    file.sync_all()?;
    std::fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let token = read_or_make(folder.path()).unwrap();
        assert_eq!(token.len(), 64);
        assert_eq!(read_or_make(folder.path()).unwrap(), token);
        let path = token_file(folder.path());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(read(folder.path()), Err(TokenError::ReadableByOthers(_))));
    }

    #[test]
    fn a_rotation_replaces_the_token_and_makes_no_first_one() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(rotate(folder.path()), Err(TokenError::Io { .. })));
        let old = read_or_make(folder.path()).unwrap();
        let new = rotate(folder.path()).unwrap();
        assert_ne!(new, old);
        assert_eq!(read(folder.path()).unwrap(), new);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_start_that_was_cut_short_has_left_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(token_file(folder.path()).with_extension("new"), "ha").unwrap();
        let token = read_or_make(folder.path()).unwrap();
        assert_eq!(read(folder.path()).unwrap(), token);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_token_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = token_file(folder.path());
        std::fs::write(&path, "short").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(read_or_make(folder.path()), Err(TokenError::Malformed(_))));
    }
}
