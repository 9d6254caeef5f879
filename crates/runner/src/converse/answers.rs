//! What the server tells a conversation while it runs.

use std::io::{self, ErrorKind};

use tokio::net::unix::pipe;

use crate::run_folder::{ANSWER_BYTES, RunFolder, Told};

/// The pipe in the run folder to which the server writes, a JSON object a line.
pub(super) struct Answers {
    /// Open for writing too, so that it has no end.
    pipe: pipe::Receiver,
    /// A line whose end has not come yet.
    partial: Vec<u8>,
}

impl Answers {
    pub(super) fn open(folder: &RunFolder) -> io::Result<Self> {
        let pipe = pipe::OpenOptions::new().read_write(true).open_receiver(folder.answers())?;
        Ok(Self { pipe, partial: Vec::new() })
    }

    pub(super) async fn readable(&self) -> io::Result<()> {
        self.pipe.readable().await
    }

    /// The lines that have come, as far as they make sense: nobody but the server writes here.
    pub(super) fn read(&mut self) -> io::Result<Vec<Told>> {
        let mut bytes = [0; ANSWER_BYTES];
        match self.pipe.try_read(&mut bytes) {
            Ok(read) => self.partial.extend_from_slice(&bytes[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
        let mut told = Vec::new();
        while let Some(end) = memchr::memchr(b'\n', &self.partial) {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            told.extend(serde_json::from_slice::<Told>(&line).ok());
        }
        // Nothing that makes sense is this long.
        self.partial.truncate(ANSWER_BYTES);
        Ok(told)
    }
}
