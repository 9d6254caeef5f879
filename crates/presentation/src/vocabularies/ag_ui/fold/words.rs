//! The words of an incomplete message that were sent.

use crate::vocabularies::turns::said_words::SaidWords;

/// What was sent of a message.
#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    pub(super) said: SaidWords<String>,
    /// The ids under which its parts were sent.
    pub(super) ids: Vec<String>,
    /// The first text that was sent in a run, and the number of the run.
    pub(super) first_text: Option<(u32, String)>,
}

impl Words {
    /// Whether a text was sent, not only reasoning.
    pub(super) fn has_text(&self) -> bool {
        self.first_text.is_some()
    }
}
