//! Recorded output of real agents, as the tests of all formats read it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::recorded;

/// What one run of an agent printed.
pub(crate) struct Recording {
    /// Folder and case, for example `2.1.330/hello_partial`.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// Only the name: a failing case need not print the bytes.
impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Recording {
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        recorded::lines(&self.bytes)
    }

    /// The recordings of a folder of `tests/fixtures/<root>`, by name.
    pub(crate) fn of_folder(root: &str, folder: &str) -> Vec<Self> {
        let path: PathBuf =
            [env!("CARGO_MANIFEST_DIR"), "../../tests/fixtures", root, folder].iter().collect();
        let files = fs::read_dir(&path).unwrap().map(|file| file.unwrap().path());
        let recordings = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        let mut found: Vec<_> = recordings.map(|path| Self::read(folder, &path)).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    fn read(folder: &str, path: &Path) -> Self {
        let case = path.file_stem().unwrap().to_str().unwrap();
        Self { name: format!("{folder}/{case}"), bytes: fs::read(path).unwrap() }
    }
}
