//! The agent's requests for files.
//!
//! They reach the agent's working folder and nothing outside of it: not by an absolute path, not by `..` and not by a
//! link. The kernel checks this when it opens the file, so nothing can change between the check and the use.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, ftruncate, mkdirat, openat, openat2};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::value::RawValue;

use super::messages::FileRequest;
use crate::converse::conversation::Outbox;
use crate::converse::rpc::{METHOD_NOT_FOUND, Rpc, text};

const NOT_FOUND: i32 = -32002;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL: i32 = -32603;

/// The agent's working folder.
#[derive(Debug)]
pub(super) struct Files {
    root: PathBuf,
    /// Stays the same folder, even if another one is put at its path.
    folder: Result<OwnedFd, Errno>,
    /// The maximum size of a file, in bytes. `None` if the agent gets no files.
    bytes_max: Option<usize>,
}

/// Why a request for a file has failed.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("Resource not found: {0}")]
    NotFound(String),
    #[error("{0} is outside the agent's working directory")]
    Outside(String),
    #[error("{0} is not a regular file")]
    NotAFile(String),
    #[error("{path} is larger than {bytes_max} bytes (limits.file_bytes)")]
    TooLarge { path: String, bytes_max: usize },
    #[error("cannot read or write {path}: {source}")]
    Io { path: String, source: io::Error },
}

#[derive(Serialize)]
struct Content {
    content: String,
}

#[derive(Serialize)]
struct Nothing {}

impl Files {
    pub(super) fn new(root: &str, bytes_max: Option<usize>) -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Self { root: PathBuf::from(root), folder: openat(CWD, root, flags, Mode::empty()), bytes_max }
    }

    pub(super) fn read(&self, id: &RawValue, request: &FileRequest<'_>, out: &mut Outbox) {
        let number = |raw: Option<&RawValue>| raw.and_then(|raw| raw.get().parse::<usize>().ok());
        let (from, lines) = (number(request.line).unwrap_or(1), number(request.limit).unwrap_or(usize::MAX));
        self.answer(id, request, out, |path, bytes_max| {
            let content = self.read_text(path, bytes_max)?;
            let wanted = content.split_inclusive('\n').skip(from.saturating_sub(1)).take(lines);
            Ok(Content { content: wanted.collect() })
        });
    }

    pub(super) fn write(&self, id: &RawValue, request: &FileRequest<'_>, out: &mut Outbox) {
        let Some(content) = text(request.content) else {
            return Rpc::refuse(id, INVALID_PARAMS, "the content is not text", out);
        };
        self.answer(id, request, out, |path, bytes_max| {
            self.write_text(path, &content, bytes_max)?;
            Ok(Nothing {})
        });
    }

    fn answer<R: Serialize>(
        &self,
        id: &RawValue,
        request: &FileRequest<'_>,
        out: &mut Outbox,
        done: impl FnOnce(&str, usize) -> Result<R, FileError>,
    ) {
        let Some(bytes_max) = self.bytes_max else {
            return Rpc::refuse(id, METHOD_NOT_FOUND, "this client does not provide file access", out);
        };
        match done(&text(request.path).unwrap_or_default(), bytes_max) {
            Ok(result) => Rpc::reply(id, result, out),
            Err(error) => Rpc::refuse(id, error.code(), error.to_string(), out),
        }
    }

    fn read_text(&self, path: &str, bytes_max: usize) -> Result<String, FileError> {
        let file = self.open(path, OFlags::RDONLY)?;
        let mut bytes = Vec::new();
        let read = file.take(bytes_max as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|source| FileError::of(path, source))?;
        if bytes_max < bytes.len() {
            return Err(FileError::TooLarge { path: path.to_owned(), bytes_max });
        }
        String::from_utf8(bytes).map_err(|error| {
            let source = io::Error::new(io::ErrorKind::InvalidData, error);
            FileError::of(path, source)
        })
    }

    fn write_text(&self, path: &str, content: &str, bytes_max: usize) -> Result<(), FileError> {
        if bytes_max < content.len() {
            return Err(FileError::TooLarge { path: path.to_owned(), bytes_max });
        }
        self.create_folders(path)?;
        let mut file = self.open(path, OFlags::WRONLY | OFlags::CREATE)?;
        let emptied = ftruncate(&file, 0).map_err(io::Error::from);
        emptied
            .and_then(|()| file.write_all(content.as_bytes()))
            .map_err(|source| FileError::of(path, source))
    }

    /// Opens a regular file. Anything else is opened without waiting, closed again, and refused.
    fn open(&self, path: &str, flags: OFlags) -> Result<File, FileError> {
        let inside = self.inside(path)?;
        let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o666) } else { Mode::empty() };
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = self.folder().and_then(|root| beneath(&root, inside, flags, mode));
        let file = opened.map_err(|error| FileError::of(path, error.into()))?;
        let kind = fstat(&file).map_err(|error| FileError::of(path, error.into()))?.st_mode;
        if FileType::from_raw_mode(kind) != FileType::RegularFile {
            return Err(FileError::NotAFile(path.to_owned()));
        }
        Ok(File::from(file))
    }

    /// Creates the missing folders on the way to a file.
    fn create_folders(&self, path: &str) -> Result<(), FileError> {
        let inside = self.inside(path)?;
        let made = self.folder().and_then(|root| {
            let mut reached = root.try_clone_to_owned().map_err(|_| Errno::IO)?;
            let mut way = PathBuf::new();
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            for name in inside.parent().into_iter().flat_map(Path::components) {
                way.push(name);
                reached = match beneath(&root, &way, flags, Mode::empty()) {
                    Err(Errno::NOENT) => {
                        mkdirat(&reached, Path::new(&name), Mode::from_raw_mode(0o777))?;
                        beneath(&root, &way, flags, Mode::empty())?
                    }
                    opened => opened?,
                };
            }
            Ok(())
        });
        made.map_err(|error| FileError::of(path, error.into()))
    }

    fn folder(&self) -> Result<BorrowedFd<'_>, Errno> {
        self.folder.as_ref().map(AsFd::as_fd).map_err(|error| *error)
    }

    /// The path relative to the folder.
    fn inside<'a>(&self, path: &'a str) -> Result<&'a Path, FileError> {
        let inside = Path::new(path).strip_prefix(&self.root).ok();
        let plain = |inside: &&Path| inside.components().all(|part| matches!(part, Component::Normal(_)));
        match inside.filter(plain) {
            Some(inside) if inside.as_os_str().is_empty() => Err(FileError::NotAFile(path.to_owned())),
            inside => inside.ok_or_else(|| FileError::Outside(path.to_owned())),
        }
    }
}

/// Opens a path, unless it leads out of the folder.
fn beneath(folder: &impl AsFd, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    openat2(folder, path, flags, mode, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS)
}

impl FileError {
    fn of(path: &str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT) => Self::NotFound(path),
            Some(Errno::XDEV) => Self::Outside(path),
            // A folder, or a pipe that no process reads.
            Some(Errno::ISDIR | Errno::NXIO) => Self::NotAFile(path),
            _ => Self::Io { path, source },
        }
    }

    fn code(&self) -> i32 {
        match self {
            Self::NotFound(_) => NOT_FOUND,
            Self::Outside(_) | Self::NotAFile(_) | Self::TooLarge { .. } => INVALID_PARAMS,
            Self::Io { .. } => INTERNAL,
        }
    }
}

#[cfg(test)]
mod tests;
