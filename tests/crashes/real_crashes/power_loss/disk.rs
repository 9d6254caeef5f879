//! A simulated disk that keeps what was flushed, and a random part of everything else.
//!
//! A file system may write the pages of a file in any order and at any time, one sector of 512 bytes at a time. A name
//! is certainly present or absent only after its folder was flushed. The test assumes nothing else.

use std::collections::BTreeMap;

use super::tape::{Call, Step};
use crate::Chance;

const SECTOR: usize = 512;

/// What happens to the data that was not flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// All of it is lost.
    All,
    /// Nothing is lost, as if only the server had died.
    Nothing,
    /// Each sector of each write is kept or lost at random, and so is each change of a length or name.
    Sectors,
    /// The log is kept, the database is not.
    OfDatabase,
    /// The database is kept, the log is not.
    OfLog,
    /// The last write is kept in part.
    EndOfLastWrite,
}

impl Loss {
    pub(super) const ALL: [Self; 6] =
        [Self::All, Self::Nothing, Self::Sectors, Self::OfDatabase, Self::OfLog, Self::EndOfLastWrite];
}

/// The files of one folder.
pub(super) struct Disk {
    folder: String,
    files: BTreeMap<String, File>,
}

#[derive(Default)]
struct File {
    flushed: Vec<u8>,
    /// The changes since the last flush, in order.
    changes: Vec<Change>,
    /// The folder was flushed after the file was created.
    is_named: bool,
    /// The file was unlinked, but the folder was not flushed after that.
    is_removed: bool,
}

struct Change {
    /// The line at which the call returned.
    done: usize,
    what: What,
}

enum What {
    Write { at: usize, bytes: Vec<u8> },
    Truncate(usize),
}

impl Disk {
    pub(super) fn new(folder: &str) -> Self {
        Self { folder: folder.to_owned(), files: BTreeMap::new() }
    }

    /// A call has begun: from here on, a part of it may be on the disk.
    pub(super) fn begin(&mut self, step: &Step) {
        match &step.call {
            Call::Open { path, creates: true } => {
                if let Some(name) = self.name(path) {
                    // A new file with this name replaces the old one, whose removal does not matter any more.
                    self.files.entry(name).or_default().is_removed = false;
                }
            }
            Call::Write { path, at, bytes } => {
                self.change(path, step, What::Write { at: *at, bytes: bytes.clone() });
            }
            Call::Truncate { path, length } => self.change(path, step, What::Truncate(*length)),
            Call::Unlink { path } => {
                if let Some(file) = self.name(path).and_then(|name| self.files.get_mut(&name)) {
                    file.is_removed = true;
                }
            }
            Call::Flush { .. } | Call::Open { .. } | Call::Send { .. } => {}
        }
    }

    /// A flush has returned: what was done before it began is certainly on the disk.
    pub(super) fn flushed(&mut self, path: &str, begun: usize) {
        if path == self.folder {
            self.files.retain(|_, file| !file.is_removed);
            self.files.values_mut().for_each(|file| file.is_named = true);
        } else if let Some(file) = self.name(path).and_then(|name| self.files.get_mut(&name)) {
            for change in file.changes.extract_if(.., |change| change.done < begun) {
                change.what.apply(&mut file.flushed);
            }
        }
    }

    /// The files after a power loss.
    pub(super) fn after(&self, loss: Loss, chance: &mut Chance) -> BTreeMap<String, Vec<u8>> {
        let there = self.files.iter().filter_map(|(name, file)| {
            let loss = match loss {
                Loss::OfDatabase if is_log(name) => Loss::Nothing,
                Loss::OfLog if is_log(name) => Loss::All,
                Loss::OfDatabase => Loss::All,
                Loss::OfLog => Loss::Nothing,
                loss => loss,
            };
            Some((name.clone(), file.after(loss, chance)?))
        });
        there.collect()
    }

    fn change(&mut self, path: &str, step: &Step, what: What) {
        if let Some(name) = self.name(path) {
            self.files.entry(name).or_default().changes.push(Change { done: step.done, what });
        }
    }

    /// The name of a file that matters. The index of the log does not: SQLite rebuilds it after a crash.
    fn name(&self, path: &str) -> Option<String> {
        let name = path.strip_prefix(&self.folder)?.strip_prefix('/')?;
        (name.starts_with("tokenrail.db") && !name.ends_with("-shm")).then(|| name.to_owned())
    }
}

fn is_log(name: &str) -> bool {
    name.ends_with("-wal")
}

impl File {
    fn after(&self, loss: Loss, chance: &mut Chance) -> Option<Vec<u8>> {
        let is_there = match loss {
            Loss::All => self.is_named,
            Loss::Sectors => (self.is_named || chance.heads()) && !(self.is_removed && chance.heads()),
            _ => !self.is_removed,
        };
        if !is_there {
            return None;
        }
        let mut bytes = self.flushed.clone();
        let last = self.changes.len().saturating_sub(1);
        for (index, change) in self.changes.iter().enumerate() {
            match loss {
                Loss::All => {}
                Loss::Sectors => change.what.apply_some(&mut bytes, chance),
                Loss::EndOfLastWrite if index == last => change.what.apply_beginning(&mut bytes, chance),
                _ => change.what.apply(&mut bytes),
            }
        }
        Some(bytes)
    }
}

impl What {
    fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => write(file, *at, bytes),
            Self::Truncate(length) => file.resize(*length, 0),
        }
    }

    fn apply_some(&self, file: &mut Vec<u8>, chance: &mut Chance) {
        match self {
            Self::Write { at, bytes } => {
                for (at, sector) in sectors(*at, bytes) {
                    match chance.below(4) {
                        0 | 1 => write(file, at, sector),
                        // The file has its new length, but the sector is empty.
                        2 => file.resize(file.len().max(at + sector.len()), 0),
                        _ => {}
                    }
                }
            }
            Self::Truncate(length) if chance.heads() => file.resize(*length, 0),
            Self::Truncate(_) => {}
        }
    }

    fn apply_beginning(&self, file: &mut Vec<u8>, chance: &mut Chance) {
        if let Self::Write { at, bytes } = self {
            let kept = chance.below(sectors(*at, bytes).count() as u64);
            for (at, sector) in sectors(*at, bytes).take(kept as usize) {
                write(file, at, sector);
            }
        }
    }
}

/// Splits a write at the boundaries of sectors.
fn sectors(at: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let first = (SECTOR - at % SECTOR).min(bytes.len());
    let (head, rest) = bytes.split_at(first);
    let rest = rest.chunks(SECTOR).enumerate().map(move |(n, sector)| (at + first + n * SECTOR, sector));
    std::iter::once((at, head)).chain(rest).filter(|(_, sector)| !sector.is_empty())
}

fn write(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    file.resize(file.len().max(end), 0);
    file[at..end].copy_from_slice(bytes);
}

#[test]
fn what_was_flushed_is_there_and_of_the_rest_what_the_loss_leaves() {
    let mut disk = Disk::new("/d");
    let file = || "/d/tokenrail.db".to_owned();
    let step = |line, call| Step { call, begun: line, done: line };
    disk.begin(&step(0, Call::Open { path: file(), creates: true }));
    assert!(disk.after(Loss::All, &mut Chance(1)).is_empty(), "its name is not sure");
    disk.begin(&step(1, Call::Write { path: file(), at: 0, bytes: vec![1; 600] }));
    disk.begin(&Step { call: Call::Write { path: file(), at: 600, bytes: vec![2; 600] }, begun: 2, done: 5 });
    disk.flushed(&file(), 4);
    disk.flushed("/d", 4);
    let after = |loss| disk.after(loss, &mut Chance(1)).remove("tokenrail.db").unwrap();
    assert_eq!(after(Loss::All), [1; 600]);
    assert_eq!(after(Loss::Nothing), [[1; 600], [2; 600]].concat());
    assert_eq!(after(Loss::EndOfLastWrite)[..600], [1; 600]);
    assert!(after(Loss::EndOfLastWrite).len() < 1200);
    let many: std::collections::BTreeSet<_> =
        (0..50).map(|seed| disk.after(Loss::Sectors, &mut Chance(seed)).remove("tokenrail.db")).collect();
    assert!(5 < many.len(), "{}", many.len());
}
