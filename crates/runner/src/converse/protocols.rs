//! Selects the conversation for a protocol.

use super::acp::AcpConversation;
use super::claude::ClaudeConversation;
use super::codex::CodexConversation;
use super::conversation::Conversation;
use crate::run_folder::{Opening, Protocol};

/// The conversation in this protocol. For ACP this opens the agent's folder.
pub(super) fn conversation_in(protocol: Protocol, opening: Opening) -> Box<dyn Conversation> {
    match protocol {
        Protocol::Acp => Box::new(AcpConversation::new(opening)),
        Protocol::Claude => Box::new(ClaudeConversation::new(opening.prompt)),
        Protocol::CodexAppServer => Box::new(CodexConversation::new(opening)),
    }
}
