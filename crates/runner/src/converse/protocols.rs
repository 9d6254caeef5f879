//! Selects the conversation for a protocol.

use super::acp::AcpConversation;
use super::claude::ClaudeConversation;
use super::codex::CodexConversation;
use super::conversation::Conversation;
use super::prompt::Prompt;
use crate::run_folder::{Opening, Protocol};

pub(super) fn conversation_in(protocol: Protocol, opening: Opening, prompt: Prompt) -> Box<dyn Conversation> {
    match protocol {
        Protocol::Acp => Box::new(AcpConversation::new(opening, prompt)),
        Protocol::Claude => Box::new(ClaudeConversation::new(prompt)),
        Protocol::CodexAppServer => Box::new(CodexConversation::new(opening, prompt)),
    }
}
