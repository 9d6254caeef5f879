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

/// The commit of a branch without a file of its own. `None` if the file is too large to be read to its end.
fn packed(place: &Place, name: &str) -> Option<CommitId> {
    let file = match open_file(&place.common.join("packed-refs")) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return empty(place),
        Err(_) => return None,
    };
    let is_complete = file.metadata().ok()?.len() <= FILE_BYTES;
    let mut branches = BufReader::new(file.take(FILE_BYTES));
    let mut line = Vec::new();
    while branches.read_until(b'\n', &mut line).ok()? != 0 {
        // Without its end, it may be the beginning of another name.
        let text = line.strip_suffix(b"\n").and_then(|line| str::from_utf8(line).ok());
        if let Some((id, found)) = text.and_then(|line| line.split_once(' '))
            && found.trim_end() == name
        {
            return CommitId::new(id);
        }
        line.clear();
    }
    if is_complete { empty(place) } else { None }
}

fn empty(place: &Place) -> Option<CommitId> {
    let file = open_file(&place.common.join("config")).ok()?;
    if FILE_BYTES < file.metadata().ok()?.len() {
        return None;
    }
    let mut settings = Vec::new();
    file.take(FILE_BYTES).read_to_end(&mut settings).ok()?;
    let long = has_long_ids(&String::from_utf8_lossy(&settings));
    CommitId::new(if long { EMPTY_SHA256 } else { EMPTY_SHA1 })
}

/// Whether `extensions.objectFormat` is `sha256`. Other settings, such as the URL of a remote, may have this word too.
fn has_long_ids(settings: &str) -> bool {
    let (mut inside, mut long) = (false, false);
    for line in settings.lines().map(str::trim) {
        let mut setting = line;
        if let Some((section, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            inside = section.trim().eq_ignore_ascii_case("extensions");
            setting = rest.trim();
        }
        if let Some((name, value)) = setting.split_once('=')
            && inside
            && name.trim().eq_ignore_ascii_case("objectformat")
        {
            let value = value.split(['#', ';']).next().unwrap_or_default();
            long = value.trim().trim_matches('"') == "sha256";
        }
    }
    long
}
