//! Selects the conversation for a protocol.

use std::io;

use super::acp::AcpConversation;
use super::claude::ClaudeConversation;
use super::codex::CodexConversation;
use super::conversation::Conversation;
use super::prompt::{EncodedPrompt, FilePrompt};
use crate::run_folder::{Opening, Protocol, RunFolder};

/// The conversation of a run, and the size of the images in its first message. For ACP this opens the agent's folder.
///
/// # Errors
/// If an image of the prompt cannot be read.
pub(super) fn conversation_in(
    protocol: Protocol,
    mut opening: Opening,
    folder: &RunFolder,
) -> io::Result<(Box<dyn Conversation>, usize)> {
    let (text, images) = (std::mem::take(&mut opening.prompt), std::mem::take(&mut opening.images));
    let whole = |text| {
        let prompt = EncodedPrompt::read(folder, text, &images)?;
        let image_bytes = prompt.image_bytes();
        Ok::<_, io::Error>((prompt, image_bytes))
    };
    Ok(match protocol {
        Protocol::Acp => {
            let (prompt, image_bytes) = whole(text)?;
            (Box::new(AcpConversation::new(opening, prompt)), image_bytes)
        }
        Protocol::Claude => {
            let (prompt, image_bytes) = whole(text)?;
            (Box::new(ClaudeConversation::new(prompt)), image_bytes)
        }
        Protocol::CodexAppServer => {
            let prompt = FilePrompt::new(folder, text, &images)?;
            (Box::new(CodexConversation::new(opening, prompt)), 0)
        }
    })
}
