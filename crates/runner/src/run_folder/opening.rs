//! The input with which a conversation begins.

use serde::{Deserialize, Serialize};

use super::images::ImageRef;

/// The protocol that a program speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The Agent Client Protocol.
    Acp,
    /// `claude --input-format stream-json`.
    Claude,
    /// `codex app-server`.
    CodexAppServer,
}

impl Protocol {
    pub const ALL: [Self; 3] = [Self::Acp, Self::Claude, Self::CodexAppServer];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::Claude => "claude",
            Self::CodexAppServer => "codex-app-server",
        }
    }

    /// Whether a program can run another turn after one has ended, and so can be idle between them.
    pub fn can_be_idle(self) -> bool {
        matches!(self, Self::Acp | Self::Claude)
    }

    /// The inverse of [`Protocol::as_str`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.as_str() == name)
    }
}

/// The answer to a permission request that nobody answers in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unanswered {
    /// The agent may not do it.
    Reject,
    /// The agent may do it this once.
    Allow,
}

/// The standard input of the `converse` process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Opening {
    pub(crate) prompt: String,
    /// The images of the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) images: Vec<ImageRef>,
    /// The session to resume.
    pub(crate) session: Option<String>,
    pub(crate) model: Option<String>,
    /// The working directory; absolute.
    pub(crate) cwd: String,
    /// The number of the run. The ids of permission requests begin with it, so that they are unique among all turns of
    /// the agent.
    #[serde(rename = "turn")]
    pub(crate) run: u64,
    pub(crate) limits: ConverseLimits,
    pub(crate) unanswered: Unanswered,
    /// Whether the program may request files in that folder.
    pub(crate) files: bool,
}

/// The limits of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConverseLimits {
    /// A longer line of the program is copied, but not parsed.
    pub(crate) line_bytes: usize,
    pub(crate) read_bytes: usize,
    /// How long the program stays idle after a turn. 0: it ends with its turn.
    #[serde(rename = "rest_ms", default)]
    pub(crate) idle_ms: u64,
    /// How long a permission request waits for its answer.
    #[serde(rename = "question_timeout_ms")]
    pub(crate) permission_timeout_ms: u64,
    /// How long the program may take to end after its turn.
    pub(crate) exit_grace_ms: u64,
    /// How many permission requests may be open. A further one is settled at once, as if nobody had answered.
    pub(crate) open_questions: usize,
    /// How many bytes may wait for a program that does not read. With more, the conversation ends.
    pub(crate) unread_bytes: usize,
    /// The largest file that the program may request, or ask Tokenrail to write.
    pub(crate) file_bytes: usize,
}

#[cfg(test)]
impl ConverseLimits {
    /// Wide enough for every test, except the number of open permission requests.
    pub(crate) fn for_tests() -> Self {
        Self {
            line_bytes: 1 << 20,
            read_bytes: 1 << 16,
            permission_timeout_ms: 60_000,
            idle_ms: 0,
            exit_grace_ms: 1_000,
            open_questions: 2,
            unread_bytes: 1 << 20,
            file_bytes: 1 << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `converse` process may be of another release than the server.
    #[test]
    fn the_limits_are_written_with_the_names_of_earlier_releases() {
        let written = serde_json::to_value(ConverseLimits::for_tests()).unwrap();
        assert_eq!(written["question_timeout_ms"], 60_000, "{written}");
    }

    #[test]
    fn the_run_is_read_under_the_name_of_earlier_releases() {
        let opening = serde_json::json!({ "prompt": "a", "session": null, "model": null, "cwd": "/", "turn": 3,
            "limits": ConverseLimits::for_tests(), "unanswered": "reject", "files": false });
        let opening: Opening = serde_json::from_value(opening).unwrap();
        assert_eq!(opening.run, 3);
        assert_eq!(serde_json::to_value(&opening).unwrap()["turn"], 3);
    }
}
