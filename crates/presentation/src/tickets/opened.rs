//! The signed tickets that have opened an event stream. Only these can resume it, even after a restart.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tokenrail_domain::Timestamp;

use crate::hex::{hex, unhex};

/// Bytes of the random part of a ticket.
pub(super) const NONCE: usize = 16;

const FILE_MODE: u32 = 0o600;
/// Maximum bytes of one line of the file: a nonce, a space, a number and the end of the line.
const LINE: usize = 2 * NONCE + 22;

/// A ticket that has opened an event stream. Without its signature it opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Opening {
    /// Until when it can resume the stream.
    pub(super) until: Timestamp,
    pub(super) nonce: [u8; NONCE],
}

/// The tickets that have opened an event stream, in memory and in a file.
///
/// The file is not synced. It survives the process, but after a power loss a client may have to request a new ticket.
pub(crate) struct Openings {
    known: Mutex<BTreeSet<Opening>>,
    file: Option<Mutex<Log>>,
    max: usize,
}

struct Log {
    path: PathBuf,
    /// `None` at the start, and after a failed write: the next opening then rewrites the file.
    file: Option<File>,
    lines: usize,
}

impl Openings {
    /// Remembers at most `max` openings: those that expire last. Loads those that the file contains from before the
    /// server was restarted.
    pub(crate) fn new(path: Option<PathBuf>, max: usize, now: Timestamp) -> Self {
        let mut known = path.as_deref().map_or_else(BTreeSet::new, |path| read(path, max));
        trim(&mut known, max, now);
        let file = path.map(|path| Mutex::new(Log { path, file: None, lines: 0 }));
        Self { known: Mutex::new(known), file, max }
    }

    pub(super) fn add(&self, opening: Opening, now: Timestamp) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(opening);
        trim(&mut known, self.max, now);
    }

    pub(super) fn has(&self, opening: Opening) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(&opening)
    }

    /// Writes an added opening to the file. Rewrites the file when it has twice as many lines as openings may be
    /// remembered.
    pub(super) fn save(&self, opening: Opening) -> io::Result<()> {
        let Some(log) = &self.file else { return Ok(()) };
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        match log.file.take() {
            Some(mut file) if log.lines < self.max.saturating_mul(2) => {
                file.write_all(line(opening).as_bytes())?;
                log.file = Some(file);
                log.lines += 1;
            }
            _ => {
                let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
                log.file = Some(rewrite(&log.path, &known)?);
                log.lines = known.len();
            }
        }
        Ok(())
    }
}

fn trim(known: &mut BTreeSet<Opening>, max: usize, now: Timestamp) {
    while known.first().is_some_and(|first| first.until <= now || max < known.len()) {
        known.pop_first();
    }
}

fn line(Opening { until, nonce }: Opening) -> String {
    format!("{} {}\n", hex(&nonce), until.0)
}

/// Reads the file. It ignores malformed lines: a line is truncated if the server died while writing it.
fn read(path: &Path, max: usize) -> BTreeSet<Opening> {
    let most = LINE.saturating_mul(max).saturating_mul(2);
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(most as u64).read_to_string(&mut text));
    match read {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = %path.display(), "cannot read the tickets of event streams; clients must request new ones");
        }
        _ => {}
    }
    text.lines()
        .filter_map(|line| {
            let (nonce, until) = line.split_once(' ')?;
            Some(Opening { until: Timestamp(until.parse().ok()?), nonce: unhex(nonce)?.try_into().ok()? })
        })
        .collect()
}

fn rewrite(path: &Path, known: &BTreeSet<Opening>) -> io::Result<File> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&new)?;
    file.write_all(known.iter().map(|opening| line(*opening)).collect::<String>().as_bytes())?;
    std::fs::rename(&new, path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(number: u8) -> Opening {
        Opening { until: Timestamp(i64::from(number)), nonce: [number; NONCE] }
    }

    fn open(openings: &Openings, number: u8) {
        openings.add(opening(number), Timestamp(0));
        openings.save(opening(number)).unwrap();
    }

    fn known(openings: &Openings) -> Vec<u8> {
        (0..=u8::MAX).filter(|number| openings.has(opening(*number))).collect()
    }

    #[test]
    fn they_outlive_the_server_until_their_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().join("tickets"));
        for (first, now) in [(1, 0), (11, 0)] {
            let openings = Openings::new(path.clone(), 100, Timestamp(now));
            (first..first + 3).for_each(|number| open(&openings, number));
        }
        assert_eq!(known(&Openings::new(path.clone(), 100, Timestamp(0))), [1, 2, 3, 11, 12, 13]);
        assert_eq!(
            known(&Openings::new(path.clone(), 100, Timestamp(3))),
            [11, 12, 13],
            "the others are too old"
        );
        assert_eq!(known(&Openings::new(path, 2, Timestamp(0))), [12, 13], "so many are remembered");
    }

    #[test]
    fn the_file_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tickets");
        let openings = Openings::new(Some(path.clone()), 3, Timestamp(0));
        for number in 1..=200 {
            open(&openings, number);
            let lines = std::fs::read_to_string(&path).unwrap().lines().count();
            assert!(lines <= 6, "{lines}");
        }
        assert_eq!(known(&openings), [198, 199, 200]);
        assert_eq!(known(&Openings::new(Some(path), 3, Timestamp(0))), [198, 199, 200]);
    }

    #[test]
    fn a_line_that_was_cut_costs_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tickets");
        let cut = &line(opening(2))[..20];
        std::fs::write(&path, line(opening(1)) + cut).unwrap();
        let openings = Openings::new(Some(path.clone()), 9, Timestamp(0));
        open(&openings, 3);
        assert_eq!(known(&Openings::new(Some(path), 9, Timestamp(0))), [1, 3]);
    }

    #[test]
    fn without_its_folder_a_server_remembers_them_as_long_as_it_lives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gone").join("tickets");
        let openings = Openings::new(Some(path.clone()), 9, Timestamp(0));
        openings.add(opening(1), Timestamp(0));
        assert!(openings.save(opening(1)).is_err());
        assert!(openings.has(opening(1)));
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        open(&openings, 2);
        assert_eq!(known(&Openings::new(Some(path), 9, Timestamp(0))), [1, 2], "and writes both when it can");
    }
}
