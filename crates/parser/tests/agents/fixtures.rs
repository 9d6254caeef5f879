//! The recorded output of real agents, in `tests/fixtures`.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::{Format, recorded};

/// The folder of each format's recordings, and their minimum number.
const FOLDERS: [(Format, &str, usize); 10] = [
    (Format::Acp, "acp/claude-agent-acp-0.101.0", 20),
    (Format::Acp, "acp/codex-acp-2.6.0", 12),
    (Format::Acp, "acp/gemini-0.61.0", 25),
    (Format::Acp, "acp/opencode-1.18.33", 25),
    (Format::Anthropic, "anthropic/2023-06-01", 25),
    (Format::OpenAiChat, "openai-chat/v1", 29),
    (Format::OpenAiResponses, "openai-responses/v1", 27),
    (Format::Codex, "codex/0.169.0", 35),
    (Format::Gemini, "gemini/0.61.0", 25),
    (Format::Opencode, "opencode/1.18.33", 20),
];

/// The output of one run of an agent.
pub(crate) struct Recording {
    pub(crate) format: Format,
    /// Agent, version and case, for example `codex/0.169.0/hello`.
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
    RECORDINGS.get_or_init(|| FOLDERS.iter().flat_map(|folder| in_folder(*folder)).collect())
}

fn in_folder((format, name, at_least): (Format, &str, usize)) -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name);
    let mut found = Vec::new();
    for file in fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let case = path.file_stem().unwrap().to_str().unwrap();
            let name = format!("{name}/{case}");
            found.push(Recording { format, name, bytes: fs::read(&path).unwrap() });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(at_least <= found.len(), "only {} recordings in {}", found.len(), folder.display());
    found
}
