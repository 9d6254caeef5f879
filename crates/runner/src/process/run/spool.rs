//! The spool of a run: read as it grows, emptied if the disk is full, and removed at the end.

use std::fs::File;
use std::io::{self, ErrorKind, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use tokenrail_ports::{RunEnd, RunnerError, SpaceWait, SpoolRoom};

use super::{Found, KnownSupervisor, ProcessRun};
use crate::process::run_end::{emptied, empty_spool};
use crate::run_folder::{ExitRecord, RunFolder, blocking};

/// How much is read without another thread: a few lines. Agents seldom print more between two looks.
const FRESH_BYTES: usize = 8 << 10;
/// The type of a file system in memory: see statfs(2).
const TMPFS: u64 = 0x0102_1994;

/// Memory pages have this size, or a multiple of it.
const SMALLEST_PAGE: u64 = 4096;

/// How fresh output is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FreshRead {
    /// From the page cache, where the supervisor has just put it: the read does not wait for the disk.
    Cached,
    /// The file system is in memory, without a disk.
    InMemory,
    /// This file system cannot say whether a read would wait, so every read uses another thread.
    Never,
}

/// The output after the offset.
pub(super) struct Fresh {
    pub(super) output: Bytes,
    /// Whether the file ended there.
    pub(super) to_end: bool,
}

impl FreshRead {
    pub(super) fn of(spool: &File) -> Self {
        match rustix::fs::fstatfs(spool) {
            // The type of a file system is a small number, however wide the field is.
            Ok(found) if found.f_type as u64 == TMPFS => Self::InMemory,
            _ => Self::Cached,
        }
    }

    /// Reads the new output without waiting for a disk. `None` if that is impossible, or if the output fills the
    /// buffer.
    fn read(&mut self, spool: &File, offset: u64, read_bytes: usize) -> io::Result<Option<Fresh>> {
        let mut buffer = [0; FRESH_BYTES];
        let buffer = &mut buffer[..read_bytes.min(FRESH_BYTES)];
        let flags = match self {
            Self::Cached => ReadWriteFlags::NOWAIT,
            Self::InMemory => ReadWriteFlags::empty(),
            Self::Never => return Ok(None),
        };
        let read = match preadv2(spool, &mut [IoSliceMut::new(buffer)], offset, flags) {
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                *self = Self::Never;
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        if read == buffer.len() {
            return Ok(None);
        }
        // If the next page is not in memory, the read ends at the page boundary, which may not be the end of the file.
        let after_page = (offset + read as u64).is_multiple_of(SMALLEST_PAGE);
        let to_end = read == 0 || *self == Self::InMemory || !after_page;
        Ok(Some(Fresh { output: Bytes::copy_from_slice(&buffer[..read]), to_end }))
    }
}

/// Reads the bytes after `offset`, at most `read_bytes`.
fn read_at(file: &File, offset: u64, read_bytes: usize) -> io::Result<Bytes> {
    let there = file.metadata()?.len().saturating_sub(offset).min(read_bytes as u64);
    // Exactly as large as needed: the lines are slices of the buffer and keep all of it in memory.
    let mut output = vec![0; there as usize];
    let mut read = 0;
    while read < output.len() {
        match file.read_at(&mut output[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    output.truncate(read);
    Ok(output.into())
}

impl ProcessRun {
    /// Checks what is new. A few fresh lines are read on this thread. Everything else may wait for a disk and uses
    /// another thread. `ProcessRun::next`, which calls this, splits the output into lines (`framer.rs`).
    pub(super) async fn look(&mut self) -> io::Result<Found> {
        let (spool, offset) = (Arc::clone(&self.spool), self.part.read_to());
        let read_bytes = self.limits.read_bytes;
        if let Some(fresh) = self.fresh.read(&spool, offset, read_bytes)?
            && !fresh.output.is_empty()
        {
            return Ok(Found::Output(fresh));
        }
        let folder = self.end.is_none().then(|| self.folder.clone());
        blocking(move || {
            let output = read_at(&spool, offset, read_bytes)?;
            if !output.is_empty() {
                let to_end = output.len() < read_bytes;
                return Ok(Found::Output(Fresh { output, to_end }));
            }
            let exit = folder.map(|folder| folder.read(RunFolder::EXIT)).transpose()?;
            Ok(exit.flatten().map_or(Found::Nothing, Found::Exit))
        })
        .await
    }

    /// Empties the spool of a run that has ended, if nothing more can be saved. The freed space lets the server save
    /// the end of the turn.
    pub(super) async fn empty_spool(&mut self, wait: SpaceWait) -> Result<SpoolRoom, RunnerError> {
        let Some(exit) = self.to_empty(wait).await? else { return Ok(SpoolRoom::Held) };
        // If the record cannot be written now, the next call still knows what is lost.
        self.emptied = Some(exit.clone());
        let (folder, spool) = (self.folder.clone(), Arc::clone(&self.spool));
        blocking(move || empty_spool(&folder, &spool, &exit)).await?;
        // The end is read again, now with the lost output.
        self.end = None;
        Ok(SpoolRoom::Freed)
    }

    /// How the run ended, with the output that is lost by emptying its spool. `None` if the spool must be kept.
    async fn to_empty(&self, wait: SpaceWait) -> io::Result<Option<ExitRecord>> {
        if self.emptied.is_some() {
            return Ok(self.emptied.clone());
        }
        let (folder, spool) = (self.folder.clone(), Arc::clone(&self.spool));
        let found =
            blocking(move || Ok((folder.read::<ExitRecord>(RunFolder::EXIT)?, spool.metadata()?.len())));
        let (exit, spool_bytes) = found.await?;
        let exit = match (exit, &self.supervisor) {
            (Some(exit), _) if exit.emptied_at.is_some() => return Ok(Some(exit)),
            (Some(exit), _) => exit,
            (None, KnownSupervisor::Alive(record, _)) if record.open()?.is_some() => return Ok(None),
            (None, _) if wait == SpaceWait::Continues => return Ok(None),
            (None, _) => {
                // The supervisor died before it wrote the record.
                let RunEnd { reaped, .. } = self.lost().await?;
                ExitRecord { reaped, ..ExitRecord::default() }
            }
        };
        Ok(emptied(exit, spool_bytes, self.part.read_to(), wait))
    }

    /// Logs that the run folder cannot be removed.
    pub(in crate::process) fn warn_of_folder(&self, error: &io::Error) {
        let error = error as &dyn std::error::Error;
        tracing::warn!(folder = %self.folder.path().display(), error, "cannot remove a run folder");
    }

    /// Removes the run folder, except the spool if it must be kept.
    pub(in crate::process) async fn remove(&self) -> io::Result<()> {
        let (folder, keep_spool) = (self.folder.clone(), self.keep_spool);
        blocking(move || if keep_spool { folder.keep_spool() } else { folder.remove() }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn check(folder: &str) {
        let mut file = tempfile::tempfile_in(folder).unwrap();
        let mut way = FreshRead::of(&file);
        file.write_all(&[b'x'; 5000]).unwrap();
        let mut read = |offset, read_bytes| way.read(&file, offset, read_bytes).unwrap();
        let lengths = |fresh: Option<Fresh>| fresh.map(|fresh| (fresh.output.len(), fresh.to_end));
        for (offset, read_bytes, expected) in [
            (0, 1 << 20, Some((5000, true))),
            (4990, 1 << 20, Some((10, true))),
            (5000, 1 << 20, Some((0, true))),
            (9000, 1 << 20, Some((0, true))),
            // There is as much as was asked for, and so there may be more.
            (0, 5000, None),
            (0, 100, None),
        ] {
            let found = lengths(read(offset, read_bytes));
            // Elsewhere than in memory the kernel may say no to any of them.
            if folder == "/dev/shm" || found.is_some() {
                assert_eq!(found, expected, "{folder} {offset} {read_bytes}");
            }
        }
    }

    #[test]
    fn fresh_output_is_read_where_it_is_in_memory() {
        check("/dev/shm");
        check(env!("CARGO_MANIFEST_DIR"));
    }

    #[test]
    fn a_read_that_ends_with_a_page_may_not_have_come_to_the_end() {
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all(&[b'x'; 4096]).unwrap();
        let mut way = FreshRead::Cached;
        if let Some(fresh) = way.read(&file, 0, 1 << 20).unwrap() {
            assert_eq!((fresh.output.len(), fresh.to_end), (4096, false));
        }
    }
}
