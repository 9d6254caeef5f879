//! What this process prints: the program's output, byte for byte, and the added lines between
//! its lines. The supervisor copies it into the spool file (`supervisor/output.rs`).

use tokenrail_ports::AddedLine;

use std::io::{self, Write};

const PREFIX: &[u8] = AddedLine::PREFIX.as_bytes();

/// The standard output of this process.
#[derive(Debug)]
pub(super) struct Printer<W> {
    out: W,
    /// The beginning of a line. It is held while it can still become a line that only the conversation may write.
    held: Vec<u8>,
    /// Whether the program is in the middle of a line.
    in_line: bool,
    /// Added lines that wait for the end of the program's line.
    waiting: Vec<u8>,
}

impl<W: Write> Printer<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, held: Vec::new(), in_line: false, waiting: Vec::new() }
    }

    /// Writes output of the program.
    pub(super) fn program(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
            let (piece, rest) = bytes.split_at(end);
            self.piece(piece)?;
            bytes = rest;
        }
        self.out.flush()
    }

    /// Writes an added line: at once, or after the program has ended its line.
    pub(super) fn added(&mut self, line: &AddedLine) -> io::Result<()> {
        serde_json::to_writer(&mut self.waiting, line)?;
        self.waiting.push(b'\n');
        if self.is_between_lines() {
            self.write_waiting()?;
        }
        self.out.flush()
    }

    /// Whether an added line would be written at once.
    pub(super) fn is_between_lines(&self) -> bool {
        !self.in_line && self.held.is_empty()
    }

    /// Writes everything that is held back, because the program prints nothing more.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.out.write_all(&held)?;
        if !self.waiting.is_empty() {
            self.out.write_all(if self.in_line || !held.is_empty() { b"\n" } else { b"" })?;
            self.write_waiting()?;
        }
        self.out.flush()
    }

    /// Writes a piece of one line, which may end it.
    fn piece(&mut self, piece: &[u8]) -> io::Result<()> {
        if self.in_line {
            self.out.write_all(piece)?;
        } else {
            self.held.extend_from_slice(piece);
            if self.held.len() < PREFIX.len() && PREFIX.starts_with(&self.held) {
                return Ok(());
            }
            if self.held.starts_with(PREFIX) {
                // In JSON, a leading blank means nothing. With it, the line no longer looks like an added line.
                self.out.write_all(b" ")?;
            }
            self.out.write_all(&std::mem::take(&mut self.held))?;
        }
        self.in_line = !piece.ends_with(b"\n");
        if !self.in_line {
            self.write_waiting()?;
        }
        Ok(())
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        self.out.write_all(&std::mem::take(&mut self.waiting))
    }
}

#[cfg(test)]
mod tests;
