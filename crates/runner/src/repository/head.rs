//! Reads the commit that HEAD names. No process is started, because this happens at the start of each turn.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _};

use tokenrail_domain::CommitId;

use super::place::{Place, line_of, open_file};

/// The most that is read of a file with branches or settings.
const FILE_BYTES: u64 = 32 << 20;
/// How many names may refer to each other. Git has the same limit.
const STEPS: usize = 5;

/// The tree without files. Git knows it in every repository.
const EMPTY_SHA1: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

/// The commit that HEAD names, or the empty tree if its branch has no commit. `None` if the repository keeps its
/// branches in another format than files. Blocks.
pub(super) fn of(place: &Place) -> Option<CommitId> {
    let mut line = line_of(&place.git.join("HEAD")).ok()?;
    for _ in 0..STEPS {
        let text = String::from_utf8(line).ok()?;
        let Some(name) = text.strip_prefix("ref:").map(str::trim) else { return CommitId::new(text.trim()) };
        if !is_branch(name) {
            return None;
        }
        line = match line_of(&place.common.join(name)) {
            Ok(line) => line,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {
                return packed(place, name);
            }
            Err(_) => return None,
        };
    }
    None
}

/// Whether the name is that of a file below `refs`. `refs/heads/.invalid` says that branches are not files here.
fn is_branch(name: &str) -> bool {
    name.starts_with("refs/") && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
}

/// The commit of a branch without a file of its own.
fn packed(place: &Place, name: &str) -> Option<CommitId> {
    let file = match open_file(&place.common.join("packed-refs")) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return empty(place),
        Err(_) => return None,
    };
    for line in BufReader::new(file.take(FILE_BYTES)).split(b'\n') {
        let line = line.ok()?;
        let Some((id, found)) = str::from_utf8(&line).ok().and_then(|line| line.split_once(' ')) else {
            continue;
        };
        if found.trim_end() == name {
            return CommitId::new(id);
        }
    }
    empty(place)
}

fn empty(place: &Place) -> Option<CommitId> {
    let mut settings = String::new();
    open_file(&place.common.join("config")).ok()?.take(FILE_BYTES).read_to_string(&mut settings).ok()?;
    // The only setting with this value is the format of the ids.
    let long = settings.to_ascii_lowercase().contains("sha256");
    CommitId::new(if long { EMPTY_SHA256 } else { EMPTY_SHA1 })
}
