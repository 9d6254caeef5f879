//! Files that git neither tracks nor ignores. `git diff` does not show them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use memchr::memchr_iter;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2, readlinkat};
use tokenrail_ports::{Extent, FileChoice, Patch};

use super::RepositoryLimits;
use super::git::Output;
use super::listing::Listing;
use super::patch::{header, quoted};
use super::place::Place;
use super::request::Request;

/// How much of a file git looks at to tell whether it is text.
const TEXT_SAMPLE: usize = 8000;

/// The untracked files of a repository.
pub(super) struct Untracked {
    root: PathBuf,
    paths: Vec<Vec<u8>>,
    limits: RepositoryLimits,
    request: Request,
}

/// An untracked file, as a patch shows it.
struct Content {
    mode: &'static str,
    bytes: Vec<u8>,
}

impl Untracked {
    /// The files in the output of `git ls-files -z`, or only this one.
    pub(super) fn new(
        place: &Place,
        output: &Output,
        file: Option<&FileChoice>,
        limits: RepositoryLimits,
        request: Request,
    ) -> Self {
        let end = output.bytes.iter().rposition(|byte| *byte == 0).unwrap_or(0);
        let paths = output.bytes[..end].split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let is_wanted = |path: &&[u8]| file.is_none_or(|file| file.path == String::from_utf8_lossy(path));
        let paths = paths.filter(is_wanted).map(<[u8]>::to_vec).collect();
        Self { root: place.root.clone(), paths, limits, request }
    }

    /// Adds them to a list, as far as it has places. Blocks.
    pub(super) fn add_to_list(&self, mut list: Listing) -> io::Result<Listing> {
        let root = self.open_root()?;
        let mut left = self.limits.untracked_bytes;
        for path in &self.paths {
            if !list.wants(path) {
                continue;
            }
            let extent = match self.read(&root, path, &mut left) {
                Some(Content { bytes, .. }) if is_binary(&bytes) => Extent::Binary,
                Some(Content { bytes, .. }) => Extent::Lines { added: count_lines(&bytes), removed: 0 },
                None => Extent::Uncounted,
            };
            list.add_untracked(path, extent);
        }
        Ok(list)
    }

    /// Adds them to a patch, as far as they fit. Blocks.
    pub(super) fn add_to(&self, mut patch: Patch) -> io::Result<Patch> {
        let root = self.open_root()?;
        let mut left = self.limits.untracked_bytes;
        // A path with a slash at the end is a repository within the repository.
        for path in self.paths.iter().filter(|path| !path.ends_with(b"/")) {
            let shown = self.read(&root, path, &mut left).map(|content| written(path, &content));
            match shown.filter(|shown| patch.text.len() + shown.len() <= self.limits.patch_bytes) {
                Some(shown) => patch.text.extend(shown),
                None => patch.truncated = true,
            }
        }
        Ok(patch)
    }

    fn open_root(&self) -> io::Result<File> {
        File::open(&self.root)
    }

    /// The content of a file. `None` if it is none, if it is too large, or if enough was read.
    fn read(&self, root: &File, path: &[u8], left: &mut u64) -> Option<Content> {
        if self.request.is_late() {
            return None;
        }
        let content =
            content(root, Path::new(OsStr::from_bytes(path)), self.limits.untracked_file_bytes.min(*left));
        let content = content.ok()?;
        *left -= content.bytes.len() as u64;
        Some(content)
    }
}

/// The content of a regular file, or the target of a symbolic link, below a folder. No link is followed, because the
/// agent may replace a folder by a link to another place at any time.
fn content(root: &File, path: &Path, limit: u64) -> io::Result<Content> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = match openat2(root, path, flags, Mode::empty(), inside) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::LOOP) => {
            let target = readlinkat(parent(root, path)?, path.file_name().unwrap_or_default(), Vec::new())?;
            return Ok(Content { mode: "120000", bytes: target.into_bytes() });
        }
        Err(error) => return Err(error.into()),
    };
    let found = file.metadata()?;
    if !found.is_file() || limit < found.len() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    if limit < file.take(limit + 1).read_to_end(&mut bytes)? as u64 {
        return Err(ErrorKind::FileTooLarge.into());
    }
    let mode = if is_executable(&found) { "100755" } else { "100644" };
    Ok(Content { mode, bytes })
}

fn parent(root: &File, path: &Path) -> io::Result<File> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(root, folder, flags, Mode::empty(), inside)?.into())
}

fn is_executable(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    found.permissions().mode() & 0o100 != 0
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(TEXT_SAMPLE)].contains(&0)
}

fn count_lines(bytes: &[u8]) -> u64 {
    let ends = memchr_iter(b'\n', bytes).count() as u64;
    ends + u64::from(bytes.last().is_some_and(|last| *last != b'\n'))
}

/// A new file as a patch shows it.
fn written(path: &[u8], content: &Content) -> Vec<u8> {
    let Content { mode, bytes } = content;
    let new = quoted("b/", path);
    let mut out = [&*header(path, path), b"new file mode ", mode.as_bytes(), b"\n"].concat();
    if is_binary(bytes) {
        out.extend([b"Binary files /dev/null and ", &*new, b" differ\n"].concat());
        return out;
    }
    if bytes.is_empty() {
        // Without this line, git takes the file for one whose mode has changed.
        out.extend(b"index 0000000..e69de29\n");
        return out;
    }
    // A tab shows where a path with spaces ends.
    let end: &[u8] = if path.contains(&b' ') && !new.starts_with(b"\"") { b"\t\n" } else { b"\n" };
    out.extend([b"--- /dev/null\n+++ ", &*new, end].concat());
    let range = match count_lines(bytes) {
        1 => "@@ -0,0 +1 @@\n".to_owned(),
        lines => format!("@@ -0,0 +1,{lines} @@\n"),
    };
    out.extend(range.as_bytes());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        out.push(b'+');
        out.extend(line);
    }
    if bytes.last() != Some(&b'\n') {
        out.extend(b"\n\\ No newline at end of file\n");
    }
    out
}
