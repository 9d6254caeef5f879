//! The spool of a run: read as it grows, and emptied where a full disk takes nothing more.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use tokenrail_ports::{RunEnd, RunnerError, SpoolRoom};

use super::{ProcessRun, Supervisor, blocking};
use crate::process::end::{emptied, empty_spool};
use crate::process::{ExitRecord, RunFolder};

/// What there is after `offset`, at most `read_bytes`.
pub(super) fn read_at(file: &File, offset: u64, read_bytes: usize) -> io::Result<Bytes> {
    let there = file.metadata()?.len().saturating_sub(offset).min(read_bytes as u64);
    // Exactly as large as needed: the lines are slices of it and keep all of it in memory.
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
    /// Empties the spool of a run that has ended, where nothing more can be saved: its room is what the end of the turn
    /// is saved in.
    pub(super) async fn empty_spool(&mut self, waited: bool) -> Result<SpoolRoom, RunnerError> {
        let Some(exit) = self.to_empty(waited).await? else { return Ok(SpoolRoom::Held) };
        // Where it cannot be written down now, the next call still knows what is lost.
        self.emptied = Some(exit.clone());
        let (folder, spool) = (self.folder.clone(), Arc::clone(&self.spool));
        blocking(move || empty_spool(&folder, &spool, &exit)).await?;
        // It is read anew, with what is lost now.
        self.end = None;
        Ok(SpoolRoom::GivenBack)
    }

    /// How the run ended, with what is lost by emptying its spool; none where that is not to be done.
    async fn to_empty(&self, waited: bool) -> io::Result<Option<ExitRecord>> {
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
            (None, Supervisor::Alive(record, _)) if record.open()?.is_some() => return Ok(None),
            (None, _) if !waited => return Ok(None),
            (None, _) => {
                // Nobody is left to write it down.
                let RunEnd { reaped, .. } = self.lost().await?;
                ExitRecord { reaped, ..ExitRecord::default() }
            }
        };
        Ok(emptied(exit, spool_bytes, self.begins + self.offset, waited))
    }
}
