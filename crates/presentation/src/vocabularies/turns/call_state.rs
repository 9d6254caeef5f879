//! How far a tool call has come.

use tokenrail_domain::MessageOrdinal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallState {
    /// Its arguments are being streamed.
    Streaming,
    /// Its arguments are complete.
    Made,
    /// It has a result.
    Ended,
}

impl CallState {
    /// Whether a call in `message` is another one than the call with the same id in `own`, of which this is the state.
    /// Agents use the ids of ended calls again.
    pub(crate) fn is_before(self, own: Option<MessageOrdinal>, message: Option<MessageOrdinal>) -> bool {
        self == Self::Ended && own.is_some() && message.is_some() && own != message
    }
}
