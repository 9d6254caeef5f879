//! The limits of a request that may repeat a whole conversation.

use crate::config::PresentationConfig;
use crate::error::{Code, Problem};
use crate::vocabularies::prompts::prompt_images::ImageLimits;

/// The limits of a request that may repeat a whole conversation. Only what is new in it is sent to the agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConversationLimits {
    /// Of the whole body.
    pub(crate) body_bytes: usize,
    text_bytes: usize,
    pub(crate) depth: usize,
    pub(crate) images: ImageLimits,
}

impl From<&PresentationConfig> for ConversationLimits {
    fn from(config: &PresentationConfig) -> Self {
        let images = ImageLimits::from(config);
        Self {
            body_bytes: config.chat_bytes.max(config.request_bytes.saturating_add(images.json_bytes())),
            text_bytes: config.request_bytes,
            depth: config.json_depth,
            images,
        }
    }
}

impl ConversationLimits {
    /// Checks the length of everything that the agent would receive.
    pub(crate) fn check_prompt(self, parts: &[Option<&str>]) -> Result<(), Problem> {
        let bytes: usize = parts.iter().flatten().map(|part| part.len()).sum();
        let most = self.text_bytes;
        if bytes <= most {
            return Ok(());
        }
        Err(Problem::new(Code::PayloadTooLarge, format!("the new input must be at most {most} bytes")))
    }
}
