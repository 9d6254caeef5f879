//! The files of the project, as its checks see them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;

/// One text file: its path from the root, with `/`, and its text.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The lines with their numbers, as editors count them.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// The folder that holds the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    // Also read at run time, because a cached build may come from another folder.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let here = PathBuf::from(here);
    here.parent().map(Path::to_path_buf).unwrap_or(here)
}

/// The folder for builds and for everything that is fetched.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        // Cargo resolves a relative path from its working directory, which is the root in all our calls.
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// Every text file of the project, ordered by path. Excludes the folders `target`, `.git` and `node_modules`.
pub(crate) fn sources() -> Result<Vec<Source>, Failure> {
    let mut found = Vec::new();
    read_folder(&root(), "", &mut found)?;
    found.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

fn read_folder(folder: &Path, prefix: &str, found: &mut Vec<Source>) -> Result<(), Failure> {
    let unreadable = |error| Failure::new(format!("cannot read {}: {error}", folder.display()));
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() && !matches!(name.as_str(), "target" | ".git" | "node_modules") {
            read_folder(&entry.path(), &format!("{path}/"), found)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).map_err(unreadable)?;
            // Files that are not UTF-8 are pictures or recordings, which no check reads.
            if let Ok(text) = String::from_utf8(bytes) {
                found.push(Source { path, text });
            }
        }
    }
    Ok(())
}
