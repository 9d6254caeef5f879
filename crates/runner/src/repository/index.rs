//! Checks a copy of an index before git reads it. Git itself takes the paths as they are.
//!
//! The format is described in <https://git-scm.com/docs/index-format>. What differs from it is refused.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _};
use std::path::Path;

use super::request::Request;

/// The longest path, as for the kernel.
const PATH_BYTES: usize = 4096;
/// How many entries are read before the time is checked.
const ENTRIES_AT_ONCE: u32 = 4096;

/// The state of the file in an entry.
const STATE_BYTES: u64 = 40;
/// In the flags of an entry: more flags follow.
const EXTENDED: u16 = 0x4000;
/// In the flags of an entry: the length of the path, or this value if it is longer.
const LENGTH: u16 = 0x0fff;
/// The name and the size of an extension.
const EXTENSION_BYTES: u64 = 8;

/// Refuses an index with a path that leads out of the repository. Returns the id of the shared index that the index
/// names, if it is the part of one that has changed. Blocks.
pub(super) fn check(path: &Path, long_ids: bool, request: &Request) -> io::Result<Option<String>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let id_bytes = if long_ids { 32 } else { 20 };
    let mut index = Index { bytes: BufReader::new(file), at: 0 };
    index.entries(id_bytes, request)?;
    let mut shared = None;
    // A checksum is at the end.
    while index.at + EXTENSION_BYTES + id_bytes <= length {
        request.check()?;
        let name: [u8; 4] = index.read()?;
        let size = u64::from(u32::from_be_bytes(index.read()?));
        let rest = if name == *b"link" {
            shared = index.id(id_bytes)?;
            size.checked_sub(id_bytes).ok_or_else(broken)?
        } else {
            size
        };
        index.skip(rest)?;
    }
    Ok(shared)
}

struct Index {
    bytes: BufReader<File>,
    /// How many bytes were read.
    at: u64,
}

impl Index {
    /// Reads the header and the entries.
    fn entries(&mut self, id_bytes: u64, request: &Request) -> io::Result<()> {
        let signature: [u8; 4] = self.read()?;
        let (version, count) = (u32::from_be_bytes(self.read()?), u32::from_be_bytes(self.read()?));
        if signature != *b"DIRC" || !(2..=4).contains(&version) {
            return Err(broken());
        }
        let mut path = Vec::new();
        for number in 0..count {
            if number % ENTRIES_AT_ONCE == 0 {
                request.check()?;
            }
            self.entry(version, id_bytes, &mut path)?;
            if !is_inside(&path) {
                let path = String::from_utf8_lossy(&path);
                let text = format!("the index of the repository has a path that leads out of it: {path:?}");
                return Err(io::Error::new(ErrorKind::InvalidData, text));
            }
        }
        Ok(())
    }

    /// Reads one entry. `path` is that of the previous entry, and then that of this one.
    fn entry(&mut self, version: u32, id_bytes: u64, path: &mut Vec<u8>) -> io::Result<()> {
        let begin = self.at;
        self.skip(STATE_BYTES + id_bytes)?;
        let flags = u16::from_be_bytes(self.read()?);
        if flags & EXTENDED != 0 {
            self.skip(2)?;
        }
        let kept = if version == 4 { path.len().checked_sub(self.number()?).ok_or_else(broken)? } else { 0 };
        path.truncate(kept);
        self.text(path)?;
        // Git believes the length, so it must be true.
        if path.len().min(usize::from(LENGTH)) != usize::from(flags & LENGTH) {
            return Err(broken());
        }
        if version == 4 {
            return Ok(());
        }
        // The path ends with 1 to 8 zeros, one of which was read.
        let size = self.at - begin;
        self.skip(size.next_multiple_of(8) - size)
    }

    /// Adds a text with a zero at its end.
    fn text(&mut self, text: &mut Vec<u8>) -> io::Result<()> {
        let before = text.len();
        (&mut self.bytes).take(PATH_BYTES as u64).read_until(0, text)?;
        self.at += (text.len() - before) as u64;
        if before < text.len() && text.pop() == Some(0) && text.len() < PATH_BYTES {
            return Ok(());
        }
        Err(broken())
    }

    /// A number in groups of 7 bits. Each group but the last one stands for one more than its bits say.
    fn number(&mut self) -> io::Result<usize> {
        let mut number: usize = 0;
        loop {
            let [byte] = self.read()?;
            number |= usize::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            if PATH_BYTES < number {
                return Err(broken());
            }
            number = (number + 1) << 7;
        }
    }

    /// The id of an object as text. `None` if all of it is zero.
    fn id(&mut self, bytes: u64) -> io::Result<Option<String>> {
        let (mut text, mut some) = (String::new(), false);
        for _ in 0..bytes {
            let [byte] = self.read()?;
            some |= byte != 0;
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(some.then_some(text))
    }

    fn read<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.bytes.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes.seek_relative(i64::try_from(bytes).map_err(io::Error::other)?)?;
        self.at += bytes;
        Ok(())
    }
}

/// Whether a path stays below the root of the repository.
fn is_inside(path: &[u8]) -> bool {
    !path.starts_with(b"/") && path.split(|byte| *byte == b'/').all(|part| part != b"..")
}

fn broken() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the index of the repository is broken")
}
