//! What the server sends to a running conversation.

use std::io::{self, ErrorKind};

use tokio::net::unix::pipe;

use crate::run_folder::{ConverseMessage, MESSAGE_BYTES, RunFolder};

/// How many bytes are read at once.
const READ_BYTES: usize = 4 << 10;

/// The pipe in the run folder to which the server writes: one JSON object per line.
pub(super) struct ConverseFifo {
    /// Also open for writing, so that a read never reaches its end.
    pipe: pipe::Receiver,
    /// The beginning of a line that is not complete yet.
    partial: Vec<u8>,
}

impl ConverseFifo {
    pub(super) fn open(folder: &RunFolder) -> io::Result<Self> {
        let pipe = pipe::OpenOptions::new().read_write(true).open_receiver(folder.converse_fifo())?;
        Ok(Self { pipe, partial: Vec::new() })
    }

    pub(super) async fn readable(&self) -> io::Result<()> {
        self.pipe.readable().await
    }

    /// Returns the complete lines that have arrived. It ignores malformed lines: only the server writes here, and it
    /// may stop in the middle of a line.
    pub(super) fn read(&mut self) -> io::Result<Vec<ConverseMessage>> {
        let mut bytes = [0; READ_BYTES];
        match self.pipe.try_read(&mut bytes) {
            Ok(read) => self.partial.extend_from_slice(&bytes[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
        let mut messages = Vec::new();
        while let Some(end) = memchr::memchr(b'\n', &self.partial) {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            messages.extend(serde_json::from_slice::<ConverseMessage>(&line).ok());
        }
        // No valid line is longer than this.
        self.partial.truncate(MESSAGE_BYTES);
        Ok(messages)
    }
}
