//! Reads what git says about the tracked files that differ: `git diff --raw --numstat -z`.

use std::collections::BTreeMap;

use tokenrail_ports::{ChangedFile, Changes, Extent, FileStatus};

use super::git::Output;

/// The files in the output, at most `files`. Something that is not understood is skipped.
pub(super) fn changes(output: &Output, files: usize) -> Changes {
    // Half a path at the end of what was cut off is not a file.
    let end = output.bytes.iter().rposition(|byte| *byte == 0).unwrap_or(0);
    let mut parts = output.bytes[..end].split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let mut found = BTreeMap::<String, (FileStatus, Extent)>::new();
    let mut truncated = !output.complete;
    while let Some(part) = parts.next() {
        if let Some(entry) = part.strip_prefix(':') {
            let Some((path, status)) = status(entry, &mut parts) else { break };
            if found.len() == files && !found.contains_key(&path) {
                truncated = true;
                continue;
            }
            // A file with a merge conflict has two entries.
            found.entry(path).or_insert((status, Extent::Uncounted));
        } else {
            let Some((path, extent)) = extent(&part, &mut parts) else { break };
            if let Some(file) = found.get_mut(&path) {
                file.1 = extent;
            }
        }
    }
    let files = found.into_iter().map(|(path, (status, extent))| ChangedFile { path, status, extent });
    Changes { files: files.collect(), truncated }
}

/// Reads `100644 100644 OLD NEW M`, whose path is the next part. The entry of a renamed file has two paths.
fn status<P: Into<String>>(entry: &str, parts: &mut impl Iterator<Item = P>) -> Option<(String, FileStatus)> {
    let letter = entry.rsplit(' ').next()?.chars().next()?;
    let path = parts.next()?.into();
    Some(match letter {
        'A' => (path, FileStatus::Added),
        'D' => (path, FileStatus::Deleted),
        'R' => (parts.next()?.into(), FileStatus::Renamed { from: path }),
        _ => (path, FileStatus::Modified),
    })
}

/// Reads `12<tab>3<tab>PATH`. If the file was renamed, the path is empty, and the next two parts are its paths.
fn extent<P: Into<String>>(part: &str, parts: &mut impl Iterator<Item = P>) -> Option<(String, Extent)> {
    let mut fields = part.splitn(3, '\t');
    let (added, removed, path) = (fields.next()?, fields.next()?, fields.next()?);
    let path = if path.is_empty() {
        parts.next()?;
        parts.next()?.into()
    } else {
        path.to_owned()
    };
    let extent = match (added.parse(), removed.parse()) {
        (Ok(added), Ok(removed)) => Extent::Lines { added, removed },
        _ => Extent::Binary,
    };
    Some((path, extent))
}
