//! The recorded output of real agents, in `tests/fixtures`.

use std::ops::Deref;
use std::sync::OnceLock;

use crate::Format;
use crate::recording::Recording;

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

/// A recording, named by agent, version and case, for example `codex/0.169.0/hello`.
#[derive(Debug)]
pub(crate) struct FormatRecording {
    pub(crate) format: Format,
    recording: Recording,
}

impl Deref for FormatRecording {
    type Target = Recording;

    fn deref(&self) -> &Recording {
        &self.recording
    }
}

/// All recordings, by name.
pub(crate) fn recordings() -> &'static [FormatRecording] {
    static RECORDINGS: OnceLock<Vec<FormatRecording>> = OnceLock::new();
    RECORDINGS.get_or_init(|| FOLDERS.iter().flat_map(|folder| in_folder(*folder)).collect())
}

fn in_folder((format, name, at_least): (Format, &str, usize)) -> Vec<FormatRecording> {
    let found = Recording::of_folder("", name);
    assert!(at_least <= found.len(), "only {} recordings in {name}", found.len());
    found.into_iter().map(|recording| FormatRecording { format, recording }).collect()
}
