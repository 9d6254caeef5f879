//! The list of the files that differ: what git says about those that it tracks (`git diff --raw --numstat -z`), and
//! those that it does not track.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tokenrail_ports::{ChangedFile, Changes, Extent, FileStatus};

use super::git::Output;

/// At most `limit` files by their paths, which need not be text.
pub(super) struct Listing {
    found: BTreeMap<Vec<u8>, (FileStatus, Extent)>,
    limit: usize,
    truncated: bool,
}

impl Listing {
    /// The tracked files in the output. Something that is not understood is skipped.
    pub(super) fn of(output: &Output, limit: usize) -> Self {
        // If the output was cut off, it may end in the middle of a path. That part is ignored.
        let end = output.bytes.iter().rposition(|byte| *byte == 0).unwrap_or(0);
        let mut parts = output.bytes[..end].split(|byte| *byte == 0);
        let mut list = Self { found: BTreeMap::new(), limit, truncated: !output.complete };
        while let Some(part) = parts.next() {
            if let Some(entry) = part.strip_prefix(b":") {
                let Some((path, status)) = status(entry, &mut parts) else { break };
                if list.wants(path) {
                    // A file with a merge conflict has two entries.
                    list.found.entry(path.to_owned()).or_insert((status, Extent::Uncounted));
                }
            } else {
                let Some((path, extent)) = extent(part, &mut parts) else { break };
                if let Some(file) = list.found.get_mut(path) {
                    file.1 = extent;
                }
            }
        }
        list
    }

    /// Whether the list has the file, or has a place for it. If not, the list is marked as cut.
    pub(super) fn wants(&mut self, path: &[u8]) -> bool {
        let wanted = self.found.len() < self.limit || self.found.contains_key(path);
        self.truncated |= !wanted;
        wanted
    }

    /// Adds a file that git does not track. If the commit has the file, so that git takes it for deleted, it was only
    /// removed from the index.
    pub(super) fn add_untracked(&mut self, path: &[u8], new: Extent) {
        match self.found.entry(path.to_owned()) {
            Entry::Vacant(place) => {
                place.insert((FileStatus::Untracked, new));
            }
            Entry::Occupied(mut file) => {
                let (_, old) = *file.get();
                file.insert((FileStatus::Modified, replaced(old, new)));
            }
        }
    }

    pub(super) fn cut(&mut self) {
        self.truncated = true;
    }

    pub(super) fn into_changes(self) -> Changes {
        let file = |(path, (status, extent)): (Vec<u8>, _)| ChangedFile { path: text(&path), status, extent };
        Changes { files: self.found.into_iter().map(file).collect(), truncated: self.truncated }
    }
}

/// All lines of the old file are removed, and all of the new one are added.
fn replaced(old: Extent, new: Extent) -> Extent {
    match (old, new) {
        (Extent::Lines { removed, .. }, Extent::Lines { added, .. }) => Extent::Lines { added, removed },
        (Extent::Uncounted, _) | (_, Extent::Uncounted) => Extent::Uncounted,
        (Extent::Binary, _) | (_, Extent::Binary) => Extent::Binary,
    }
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// Reads `100644 100644 OLD NEW M`, whose path is the next part. The entry of a renamed file has two paths.
fn status<'a>(entry: &[u8], parts: &mut impl Iterator<Item = &'a [u8]>) -> Option<(&'a [u8], FileStatus)> {
    let letter = *entry.rsplit(|byte| *byte == b' ').next()?.first()?;
    let path = parts.next()?;
    Some(match letter {
        b'A' => (path, FileStatus::Added),
        b'D' => (path, FileStatus::Deleted),
        b'R' => (parts.next()?, FileStatus::Renamed { from: text(path) }),
        _ => (path, FileStatus::Modified),
    })
}

/// Reads `12<tab>3<tab>PATH`. If the file was renamed, the path is empty, and the next two parts are its paths.
fn extent<'a>(part: &'a [u8], parts: &mut impl Iterator<Item = &'a [u8]>) -> Option<(&'a [u8], Extent)> {
    let mut fields = part.splitn(3, |byte| *byte == b'\t');
    let (added, removed, mut path) = (fields.next()?, fields.next()?, fields.next()?);
    if path.is_empty() {
        parts.next()?;
        path = parts.next()?;
    }
    let number = |text: &[u8]| -> Option<u64> { str::from_utf8(text).ok()?.parse().ok() };
    let extent = match (number(added), number(removed)) {
        (Some(added), Some(removed)) => Extent::Lines { added, removed },
        _ => Extent::Binary,
    };
    Some((path, extent))
}
