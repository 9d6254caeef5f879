//! Keeps the beginning and the end of a stream.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Write};

/// Keeps the first and the last bytes of the agent's standard error.
///
/// The beginning is written at once, so that it is kept if this process dies. The end is written when the stream has
/// ended. If the beginning cannot be written, for example because the disk is full, it waits in memory: the agent must
/// not notice.
pub(super) struct StderrKeeper<W = File> {
    file: W,
    /// The part of the beginning that is not written yet.
    unwritten: Vec<u8>,
    /// How many more bytes belong to the beginning.
    head_room: usize,
    tail: VecDeque<u8>,
    tail_bytes: usize,
    left_out: u64,
}

impl<W: Write> StderrKeeper<W> {
    pub(super) fn new(file: W, stderr_bytes: usize) -> Self {
        let tail_bytes = stderr_bytes / 2;
        Self {
            file,
            unwritten: Vec::new(),
            head_room: stderr_bytes - tail_bytes,
            tail: VecDeque::new(),
            tail_bytes,
            left_out: 0,
        }
    }

    pub(super) fn keep(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_room));
        self.head_room -= head.len();
        self.unwritten.extend(head);
        // After an error, the next write tries again, and `finish` returns the last error.
        let _ = self.write();
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(self.tail_bytes);
        self.tail.drain(..over);
        self.left_out += over as u64;
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.unwritten.is_empty() {
            let written = match self.file.write(&self.unwritten) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(error) if error.kind() == ErrorKind::Interrupted => 0,
                Err(error) => return Err(error),
            };
            self.unwritten.drain(..written);
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.write()?;
        if 0 < self.left_out {
            write!(self.file, "\n[{} bytes omitted]\n", self.left_out)?;
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
            keeper.keep(piece.as_bytes());
        }
        keeper.finish().unwrap();
        assert_eq!(String::from_utf8(kept).unwrap(), expected, "{pieces:?}");
    }

    #[test]
    fn beginning_and_end_are_kept() {
        check(&[], "");
        check(&["abc"], "abc");
        check(&["abcd", "efgh"], "abcdefgh");
        check(&["abcdefghi"], "abcd\n[1 bytes omitted]\nfghi");
        check(&["a", "bcde", "fghijk", "lm"], "abcd\n[5 bytes omitted]\njklm");
    }

    /// A disk that is full now and then.
    #[derive(Default)]
    struct Disk {
        room: usize,
        kept: Vec<u8>,
    }

    impl Write for &mut Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let written = bytes.len().min(self.room);
            if written == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.room -= written;
            self.kept.extend_from_slice(&bytes[..written]);
            Ok(written)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_full_disk_does_not_take_is_kept_until_it_does() {
        let mut disk = Disk { room: 2, ..Disk::default() };
        let mut keeper = StderrKeeper::new(&mut disk, 16);
        keeper.keep(b"abcd");
        keeper.file.room = 1_000;
        keeper.keep(b"ef");
        keeper.finish().unwrap();
        assert_eq!(disk.kept, b"abcdef");
    }
}
