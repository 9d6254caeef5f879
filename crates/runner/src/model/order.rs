//! The standard input of the process that sends the request: one JSON object.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ModelLimits;

/// One request to a model. It does not contain the key, only the name of the variable that holds it.
#[derive(Serialize, Deserialize)]
pub(super) struct ModelOrder {
    pub(super) base_url: String,
    pub(super) api_key_env: Option<String>,
    pub(super) model: String,
    pub(super) system: Option<String>,
    /// The oldest first.
    pub(super) history: Vec<Past>,
    pub(super) prompt: String,
    pub(super) max_tokens: Option<u32>,
    pub(super) parameters: Map<String, Value>,
    pub(super) limits: ModelLimits,
}

/// An earlier turn of the conversation.
#[derive(Serialize, Deserialize)]
pub(super) struct Past {
    pub(super) user: String,
    /// Empty if there was no answer.
    pub(super) assistant: String,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    System,
    User,
    Assistant,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Message {
    pub(super) role: Role,
    pub(super) content: String,
}

impl ModelOrder {
    /// The conversation. It begins and ends with the user, and two messages in a row never have the same role, because
    /// some APIs and many templates of local models reject anything else.
    pub(super) fn conversation(&self) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        let past = self
            .history
            .iter()
            .flat_map(|turn| [(Role::User, turn.user.as_str()), (Role::Assistant, turn.assistant.as_str())]);
        for (role, text) in past.chain([(Role::User, self.prompt.as_str())]) {
            match messages.last_mut() {
                _ if text.is_empty() && role == Role::Assistant => {}
                Some(last) if last.role == role => {
                    last.content.push_str("\n\n");
                    last.content.push_str(text);
                }
                _ => messages.push(Message { role, content: text.to_owned() }),
            }
        }
        messages
    }
}

/// Omits the texts, because an order may be printed if something is wrong with it.
impl fmt::Debug for ModelOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelOrder")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}
