//! The recorded output of real agents, in `tests/fixtures/claude`.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::recorded;

/// What one run of an agent printed.
pub(crate) struct Recording {
    /// Version and case, for example `2.1.330/hello_partial`.
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
}

/// All recordings, by name.
pub(crate) fn recordings() -> &'static [Recording] {
    static RECORDINGS: OnceLock<Vec<Recording>> = OnceLock::new();
    RECORDINGS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/claude");
        let mut found = Vec::new();
        for version in ["1.0.30", "2.0.55", "2.1.197", "2.1.330"] {
            for file in fs::read_dir(folder.join(version)).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|extension| extension == "jsonl") {
                    let case = path.file_stem().unwrap().to_str().unwrap();
                    let name = format!("{version}/{case}");
                    found.push(Recording { name, bytes: fs::read(&path).unwrap() });
                }
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        assert!(100 < found.len(), "only {} recordings in {}", found.len(), folder.display());
        found
    })
}
