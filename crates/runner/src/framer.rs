//! Bytes in, lines out.

use bytes::{Buf, Bytes, BytesMut};
use tokenrail_ports::{Line, OutputLine};

/// Splits an agent's output into lines, at the byte `0x0A` and nowhere else: agents print U+2028 and the like inside
/// their JSON.
///
/// It does no I/O, and the lines do not depend on how the output is divided into chunks. A line within one chunk is a
/// slice of the chunk; only a line that spans chunks is copied. Besides the last chunk, the framer holds at most one
/// unfinished line of the allowed length.
#[derive(Debug)]
pub struct LineFramer {
    limits: FramerLimits,
    /// The fed bytes that were not read yet.
    chunk: Bytes,
    /// The beginning of a line whose end was not fed yet.
    partial: BytesMut,
    /// Set while the rest of a line that is too long is skipped.
    skipped: Option<Skipped>,
    /// How many bytes were fed before `chunk` begins.
    offset: u64,
}

/// The limits of a [`LineFramer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramerLimits {
    /// A line of more bytes, without its LF, is [`Line::TooLong`].
    pub line_bytes: usize,
    /// How many bytes of the beginning of such a line are kept. Must not exceed `line_bytes`.
    pub head_bytes: usize,
}

#[derive(Debug)]
struct Skipped {
    head: Bytes,
    length_bytes: u64,
}

impl LineFramer {
    pub fn new(limits: FramerLimits) -> Self {
        Self { limits, chunk: Bytes::new(), partial: BytesMut::new(), skipped: None, offset: 0 }
    }

    /// Takes the next bytes of the output. Before, [`LineFramer::next_line`] must have returned `None`.
    pub fn feed(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "the chunk before has been read to its end");
        self.chunk = chunk;
    }

    /// The next complete line. `None` if more must be fed.
    pub fn next_line(&mut self) -> Option<OutputLine> {
        let Some(length) = memchr::memchr(b'\n', &self.chunk) else {
            let rest = std::mem::take(&mut self.chunk);
            self.offset += rest.len() as u64;
            self.keep(&rest);
            return None;
        };
        let piece = self.chunk.split_to(length);
        self.chunk.advance(1);
        self.offset += length as u64 + 1;
        let fits = self.partial.is_empty() && piece.len() <= self.limits.line_bytes;
        let line = if fits && self.skipped.is_none() {
            Line::Whole(without_cr(piece))
        } else {
            self.keep(&piece);
            self.take_kept(|line| Line::Whole(without_cr(line)))
        };
        Some(OutputLine { line, end_offset: self.offset })
    }

    /// Ends the output. Returns what is left as a line that was cut. `None` if nothing is left.
    pub fn finish(&mut self) -> Option<OutputLine> {
        debug_assert!(self.chunk.is_empty(), "what was fed has been read to its end");
        if self.partial.is_empty() && self.skipped.is_none() {
            return None;
        }
        let line = self.take_kept(Line::Cut);
        Some(OutputLine { line, end_offset: self.offset })
    }

    /// Adds a piece to the unfinished line.
    fn keep(&mut self, piece: &[u8]) {
        let FramerLimits { line_bytes, head_bytes } = self.limits;
        if let Some(skipped) = &mut self.skipped {
            skipped.length_bytes += piece.len() as u64;
        } else if self.partial.len() + piece.len() <= line_bytes {
            self.partial.extend_from_slice(piece);
        } else {
            let begun = std::mem::take(&mut self.partial);
            let head = begun.iter().chain(piece).take(head_bytes).copied().collect();
            self.skipped = Some(Skipped { head, length_bytes: (begun.len() + piece.len()) as u64 });
        }
    }

    fn take_kept(&mut self, fitting: impl FnOnce(Bytes) -> Line) -> Line {
        match self.skipped.take() {
            Some(Skipped { head, length_bytes }) => Line::TooLong { head, length_bytes },
            None => fitting(self.partial.split().freeze()),
        }
    }
}

fn without_cr(mut line: Bytes) -> Bytes {
    if line.last() == Some(&b'\r') {
        line.truncate(line.len() - 1);
    }
    line
}

#[cfg(test)]
mod tests;
