//! Keeps the beginning and the end of a stream.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};

/// Keeps the first and the last bytes of what the agent prints on standard error.
///
/// The beginning is written at once, so that it is there if this process dies; the end when the stream has ended.
pub(super) struct StderrKeeper<W = File> {
    file: W,
    /// How many more bytes of the beginning there is room for.
    head_room: usize,
    tail: VecDeque<u8>,
    tail_bytes: usize,
    left_out: u64,
}

impl<W: Write> StderrKeeper<W> {
    pub(super) fn new(file: W, stderr_bytes: usize) -> Self {
        let tail_bytes = stderr_bytes / 2;
        Self { file, head_room: stderr_bytes - tail_bytes, tail: VecDeque::new(), tail_bytes, left_out: 0 }
    }

    pub(super) fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_room));
        self.head_room -= head.len();
        self.file.write_all(head)?;
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(self.tail_bytes);
        self.tail.drain(..over);
        self.left_out += over as u64;
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        if 0 < self.left_out {
            write!(self.file, "\n[{} bytes left out]\n", self.left_out)?;
        }
        let (front, back) = self.tail.as_slices();
        self.file.write_all(front)?;
        self.file.write_all(back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&str], expected: &str) {
        let mut kept = Vec::new();
        let mut keeper = StderrKeeper::new(&mut kept, 8);
        for piece in pieces {
            keeper.keep(piece.as_bytes()).unwrap();
        }
        keeper.finish().unwrap();
        assert_eq!(String::from_utf8(kept).unwrap(), expected, "{pieces:?}");
    }

    #[test]
    fn beginning_and_end_are_kept() {
        check(&[], "");
        check(&["abc"], "abc");
        check(&["abcd", "efgh"], "abcdefgh");
        check(&["abcdefghi"], "abcd\n[1 bytes left out]\nfghi");
        check(&["a", "bcde", "fghijk", "lm"], "abcd\n[5 bytes left out]\njklm");
    }
}
