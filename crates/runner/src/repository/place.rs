//! Finds the repository of a folder.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The most that is read of `.git`, `HEAD` and other files with one line.
const LINE_BYTES: u64 = 8 << 10;

/// Where the parts of a repository are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The root of the work tree.
    pub(super) root: PathBuf,
    /// The folder with `HEAD` and `index`.
    pub(super) git: PathBuf,
    /// The folder with the objects and branches. Linked work trees share it.
    pub(super) common: PathBuf,
}

impl Place {
    /// The repository that contains the folder. Blocks. A repository that contains `ceiling` does not count if the
    /// folder is inside `ceiling`.
    pub(super) fn of(folder: &Path, ceiling: &Path) -> Option<Self> {
        let ceiling = ceiling.canonicalize().unwrap_or_else(|_| ceiling.to_owned());
        let inside = |root: &&Path| !ceiling.starts_with(root) || !folder.starts_with(&ceiling);
        folder.ancestors().take_while(inside).find_map(Self::at)
    }

    fn at(root: &Path) -> Option<Self> {
        let named = root.join(".git");
        let git = if named.is_dir() {
            named
        } else {
            let text = line_of(&named).ok()?;
            let path = text.strip_prefix(b"gitdir: ")?;
            root.join(std::ffi::OsStr::from_bytes(path))
        };
        let common = match line_of(&git.join("commondir")) {
            Ok(path) => git.join(std::ffi::OsStr::from_bytes(&path)),
            Err(_) => git.clone(),
        };
        // As git tells a repository from another folder.
        let is_one = git.join("HEAD").symlink_metadata().is_ok() && common.join("objects").is_dir();
        is_one.then(|| Self { root: root.to_owned(), git, common })
    }
}

/// The first line of a small file.
pub(super) fn line_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.take(LINE_BYTES).read_to_end(&mut bytes)?;
    let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(bytes.len());
    bytes.truncate(end);
    Ok(bytes)
}

/// Opens a regular file. The agent may have put a pipe in its place, which would never answer.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::InvalidInput.into()) }
}
