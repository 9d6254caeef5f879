//! Writes the spool: what the program prints, byte for byte, and lines of the conversation's own between its lines.

use tokenrail_ports::OwnLine;

use std::io::{self, Write};

const PREFIX: &[u8] = OwnLine::PREFIX.as_bytes();

/// The spool of a conversation.
#[derive(Debug)]
pub(super) struct Spool<W> {
    file: W,
    /// The beginning of a line, as long as it may still become one that only the conversation may write.
    held: Vec<u8>,
    /// Whether the program is within a line.
    in_line: bool,
    /// Own lines that wait for the end of the program's line.
    waiting: Vec<u8>,
}

impl<W: Write> Spool<W> {
    pub(super) fn new(file: W) -> Self {
        Self { file, held: Vec::new(), in_line: false, waiting: Vec::new() }
    }

    /// Writes what the program has printed.
    pub(super) fn program(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
            let (piece, rest) = bytes.split_at(end);
            self.piece(piece)?;
            bytes = rest;
        }
        self.file.flush()
    }

    /// Writes a line of the conversation's own, at once or when the program has ended its line.
    pub(super) fn own(&mut self, line: &OwnLine) -> io::Result<()> {
        serde_json::to_writer(&mut self.waiting, line)?;
        self.waiting.push(b'\n');
        if self.is_between_lines() {
            self.write_waiting()?;
        }
        self.file.flush()
    }

    /// Whether a line of the conversation's own would be written at once.
    pub(super) fn is_between_lines(&self) -> bool {
        !self.in_line && self.held.is_empty()
    }

    /// The program prints nothing more.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.file.write_all(&held)?;
        if !self.waiting.is_empty() {
            self.file.write_all(if self.in_line || !held.is_empty() { b"\n" } else { b"" })?;
            self.write_waiting()?;
        }
        self.file.flush()
    }

    /// Writes a piece of one line, which may end it.
    fn piece(&mut self, piece: &[u8]) -> io::Result<()> {
        if self.in_line {
            self.file.write_all(piece)?;
        } else {
            self.held.extend_from_slice(piece);
            if self.held.len() < PREFIX.len() && PREFIX.starts_with(&self.held) {
                return Ok(());
            }
            if self.held.starts_with(PREFIX) {
                // A blank before it means nothing in JSON, and makes it anybody's line.
                self.file.write_all(b" ")?;
            }
            self.file.write_all(&std::mem::take(&mut self.held))?;
        }
        self.in_line = !piece.ends_with(b"\n");
        if !self.in_line {
            self.write_waiting()?;
        }
        Ok(())
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        self.file.write_all(&std::mem::take(&mut self.waiting))
    }
}

#[cfg(test)]
mod tests;
