//! The server's own git folder for one request, in place of the repository's.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::place::{Place, open_file};

/// The most that is copied of the list of ignored files.
const EXCLUDE_BYTES: u64 = 1 << 20;
/// How many parts of a split index are copied. Git uses one, and keeps others for two weeks.
const INDEX_PARTS: usize = 16;

/// A git folder without settings. Removed when it is dropped.
#[derive(Debug)]
pub(super) struct Shadow(PathBuf);

impl Shadow {
    /// Blocks. `long_ids`: whether the repository uses SHA-256.
    pub(super) fn make(path: &Path, place: &Place, long_ids: bool, index_bytes: u64) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        // Git runs in another folder.
        let shadow = Self(path.canonicalize()?);
        for folder in ["objects", "refs", "info"] {
            fs::create_dir(shadow.0.join(folder))?;
        }
        fs::write(shadow.0.join("HEAD"), "ref: refs/heads/none\n")?;
        let settings = if long_ids {
            "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"
        } else {
            "[core]\n\trepositoryformatversion = 0\n"
        };
        fs::write(shadow.0.join("config"), settings)?;
        shadow.copy(&place.common.join("info/exclude"), "info/exclude", EXCLUDE_BYTES)?;
        shadow.copy(&place.git.join("index"), "index", index_bytes)?;
        shadow.copy_parts(&place.git, index_bytes)?;
        Ok(shadow)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn copy_parts(&self, git: &Path, bytes: u64) -> io::Result<()> {
        let entries = fs::read_dir(git)?.filter_map(Result::ok);
        let is_part = |name: &String| name.starts_with("sharedindex.");
        let parts = entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(is_part);
        for part in parts.take(INDEX_PARTS) {
            self.copy(&git.join(&part), &part, bytes)?;
        }
        Ok(())
    }

    /// Copies a file if there is one. The copy has the same time of modification, because git compares it with those
    /// of the files in the index.
    fn copy(&self, from: &Path, name: &str, bytes: u64) -> io::Result<()> {
        let from = match open_file(from) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let modified = from.metadata()?.modified()?;
        let mut copy = File::create_new(self.0.join(name))?;
        if bytes < io::copy(&mut from.take(bytes + 1), &mut copy)? {
            return Err(io::Error::new(
                ErrorKind::FileTooLarge,
                format!("the file {name} of the repository is too large"),
            ));
        }
        copy.set_modified(modified)
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            let path = self.0.display();
            tracing::warn!(error = &error as &dyn std::error::Error, %path, "cannot remove a copy of an index");
        }
    }
}
