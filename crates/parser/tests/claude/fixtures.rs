//! The recorded output of real agents, in `tests/fixtures/claude`.

use std::sync::OnceLock;

pub(crate) use crate::recording::Recording;

/// All recordings, by name, for example `2.1.330/hello_partial`.
pub(crate) fn recordings() -> &'static [Recording] {
    static RECORDINGS: OnceLock<Vec<Recording>> = OnceLock::new();
    RECORDINGS.get_or_init(|| {
        let versions = ["1.0.30", "2.0.55", "2.1.197", "2.1.330"];
        let found: Vec<_> =
            versions.iter().flat_map(|version| Recording::of_folder("claude", version)).collect();
        assert!(100 < found.len(), "only {} recordings", found.len());
        found
    })
}
