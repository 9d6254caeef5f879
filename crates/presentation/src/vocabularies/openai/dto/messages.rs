//! The messages of a chat completion: the whole conversation. Its answers have no ids, so the server does not know
//! which conversation it is. Only what follows the last answer is new.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_application::Prompt;

use super::content::{Content, Wrong, instructions, unreadable, wrong};
use crate::vocabularies::prompts::prompt_images::ImageLimits;

/// What a conversation consists of.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// What the user says after the last answer.
    pub(super) prompt: Prompt,
    /// What messages of the roles `system` and `developer` say.
    pub(super) instructions: Vec<String>,
    /// Everything before the new message, as a text. Empty in a new conversation.
    pub(super) earlier: String,
    /// The newest answer that the client has.
    pub(super) answer: Option<String>,
}

#[derive(Deserialize)]
struct Message<'a> {
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl Messages {
    pub(super) fn read(messages: &RawValue, limits: ImageLimits) -> Result<Self, Wrong> {
        let messages: Vec<&RawValue> = serde_json::from_str(messages.get())
            .map_err(|_| unreadable("messages", messages, "must be a list of messages"))?;
        let (mut read, mut said) = (Self::default(), Content::new(limits));
        for (index, message) in messages.into_iter().enumerate() {
            read.message(&format!("messages/{index}"), message, &mut said)?;
        }
        read.prompt = said.into_prompt("messages")?;
        Ok(read)
    }

    fn message(&mut self, place: &str, raw: &RawValue, said: &mut Content) -> Result<(), Wrong> {
        let message: Message = serde_json::from_str(raw.get())
            .map_err(|_| unreadable(place, raw, "must be a message with a role"))?;
        let content_place = format!("{place}/content");
        let missing = || wrong(&content_place, "must be present");
        match message.role.as_str() {
            "user" => said.add(&content_place, message.content.ok_or_else(missing)?),
            "assistant" => {
                let mut answer = Content::new(said.limits);
                if let Some(content) = message.content {
                    answer.add(&content_place, content)?;
                }
                self.answered(said, &answer.text());
                Ok(())
            }
            "system" | "developer" => {
                let content = message.content.ok_or_else(missing)?;
                self.instructions.extend(instructions(&content_place, content, said.limits)?);
                Ok(())
            }
            _ => Err(wrong(
                &format!("{place}/role"),
                "must be user, assistant, system or developer: agents of this server call their own tools",
            )),
        }
    }

    /// Everything before an answer is not new.
    fn answered(&mut self, said: &mut Content, answer: &str) {
        for (who, text) in [("User", said.text().as_str()), ("Assistant", answer)] {
            if !text.trim().is_empty() {
                // Writing to memory cannot fail.
                let _ = write!(self.earlier, "{who}: {text}\n\n");
            }
        }
        said.clear();
        self.answer = Some(answer.to_owned());
    }
}
