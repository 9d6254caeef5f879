//! What a conversation begins with.

use serde::{Deserialize, Serialize};

/// How a program is spoken with.
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

    /// The word for it on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::Claude => "claude",
            Self::CodexAppServer => "codex-app-server",
        }
    }

    /// Whether a program can be asked for another turn when one has ended.
    pub fn can_rest(self) -> bool {
        matches!(self, Self::Acp | Self::Claude)
    }

    /// The inverse of [`Protocol::as_str`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.as_str() == name)
    }
}

/// What becomes of a question that nobody answers in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unanswered {
    /// The agent may not do it.
    Reject,
    /// It may, this once.
    Allow,
}

/// What the conversation is told on standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Opening {
    pub(crate) prompt: String,
    /// The session to go on with.
    pub(crate) session: Option<String>,
    pub(crate) model: Option<String>,
    /// The folder to work in; absolute.
    pub(crate) cwd: String,
    /// Begins the ids of questions: they are unique among all turns of the agent.
    pub(crate) turn: u64,
    pub(crate) limits: ConverseLimits,
    pub(crate) unanswered: Unanswered,
    /// Whether the program may ask for files in that folder.
    pub(crate) files: bool,
}

/// The bounds of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConverseLimits {
    /// A longer line of the program is copied, and not understood.
    pub(crate) line_bytes: usize,
    pub(crate) read_bytes: usize,
    /// How long the program waits for another turn after one; 0 where it ends with its turn.
    #[serde(default)]
    pub(crate) rest_ms: u64,
    /// How long a question waits for its answer.
    pub(crate) question_timeout_ms: u64,
    /// How long the program may take to end after its turn.
    pub(crate) exit_grace_ms: u64,
    /// How many questions may be open; one more is rejected at once.
    pub(crate) open_questions: usize,
    /// How much may wait for a program that does not read. More, and the conversation is over.
    pub(crate) unread_bytes: usize,
    /// The largest file that it may ask for, or have written.
    pub(crate) file_bytes: usize,
}
