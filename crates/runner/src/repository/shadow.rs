//! The server's own git folder for one request, in place of the repository's.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::mem;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use tokio::runtime::Handle;

use super::index;
use super::place::{Place, open_file};
use super::request::Request;
use crate::run_folder::blocking;

/// The most that is copied of the list of ignored files.
const EXCLUDE_BYTES: u64 = 1 << 20;
/// How much is copied before the time is checked.
const COPY_BYTES: usize = 256 << 10;

/// A git folder without settings. The request keeps its place until the folder is removed.
#[derive(Debug)]
pub(super) struct Shadow {
    /// Empty if the folder was removed.
    path: PathBuf,
    request: Request,
}

impl Shadow {
    /// Blocks. `long_ids`: whether the repository uses SHA-256. `index_bytes`: the most that is copied of the index, in
    /// all its parts.
    pub(super) fn make(
        path: &Path,
        place: &Place,
        long_ids: bool,
        index_bytes: u64,
        request: Request,
    ) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        // Git runs in another folder.
        let shadow = Self { path: path.canonicalize()?, request };
        for folder in ["objects", "refs", "info"] {
            fs::create_dir(shadow.path.join(folder))?;
        }
        fs::write(shadow.path.join("HEAD"), "ref: refs/heads/none\n")?;
        let settings = if long_ids {
            "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"
        } else {
            "[core]\n\trepositoryformatversion = 0\n"
        };
        fs::write(shadow.path.join("config"), settings)?;
        let mut exclude_bytes = EXCLUDE_BYTES;
        shadow.copy(&place.common.join("info/exclude"), "info/exclude", &mut exclude_bytes)?;
        shadow.copy_index(&place.git, long_ids, index_bytes)?;
        Ok(shadow)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder. If this is not called, the folder is removed some time after the drop.
    pub(super) async fn remove(mut self) {
        let (path, request) = (mem::take(&mut self.path), self.request.clone());
        let removed = blocking(move || {
            remove(&path, &request);
            Ok(())
        });
        // An error has been logged.
        let _ = removed.await;
    }

    /// Copies the index, and the shared index that it names. Git keeps other shared ones for two weeks.
    fn copy_index(&self, git: &Path, long_ids: bool, mut bytes: u64) -> io::Result<()> {
        let mut next = Some("index".to_owned());
        let mut parts = 0;
        while let Some(name) = next.take().filter(|_| parts < 2) {
            parts += 1;
            if self.copy(&git.join(&name), &name, &mut bytes)? {
                let shared = index::check(&self.path.join(&name), long_ids, &self.request)?;
                next = shared.map(|id| format!("sharedindex.{id}"));
            }
        }
        Ok(())
    }

    /// Copies a file of at most `left` bytes. Returns false if there is none. The copy has the same time of
    /// modification, because git compares it with those of the files in the index.
    fn copy(&self, from: &Path, name: &str, left: &mut u64) -> io::Result<bool> {
        let mut from = match open_file(from) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        let modified = from.metadata()?.modified()?;
        let mut copy = File::create_new(self.path.join(name))?;
        let mut part = vec![0; COPY_BYTES];
        loop {
            self.request.check()?;
            let read = from.read(&mut part)?;
            if read == 0 {
                break;
            }
            *left = left.checked_sub(read as u64).ok_or_else(|| too_large(name))?;
            copy.write_all(&part[..read])?;
        }
        copy.set_modified(modified)?;
        Ok(true)
    }
}

fn too_large(name: &str) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, format!("the file {name} of the repository is too large"))
}

/// Removes a folder for the request, which has its place until then. Blocks.
fn remove(path: &Path, _request: &Request) {
    if let Err(error) = fs::remove_dir_all(path) {
        let path = path.display();
        tracing::warn!(error = &error as &dyn std::error::Error, %path, "cannot remove a temporary copy of a git index file");
    }
}

impl Drop for Shadow {
    /// The future of a request may be dropped on a thread that serves connections, so another thread removes the
    /// folder.
    fn drop(&mut self) {
        let (path, request) = (mem::take(&mut self.path), self.request.clone());
        if path.as_os_str().is_empty() {
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || remove(&path, &request))),
            Err(_) => remove(&path, &request),
        }
    }
}
