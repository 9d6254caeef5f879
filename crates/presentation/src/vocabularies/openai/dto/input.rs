//! The input of a response: a text, or a list of items. Clients that do not use `previous_response_id` repeat the whole
//! conversation. The ids of its items say which conversation it is, so only what follows them is new.

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_application::Prompt;

use super::content::{Content, Wrong, instructions, unreadable, wrong};
use crate::vocabularies::openai::response_id::ResponseId;
use crate::vocabularies::prompts::prompt_images::ImageLimits;

/// What the user says, and the response that it follows, if its items name one.
#[derive(Debug, Default)]
pub(super) struct Input {
    pub(super) prompt: Prompt,
    /// What messages of the roles `system` and `developer` say.
    pub(super) instructions: Vec<String>,
    pub(super) previous: Option<ResponseId>,
}

#[derive(Deserialize)]
struct Item<'a> {
    id: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl Input {
    pub(super) fn read(input: &RawValue, limits: ImageLimits) -> Result<Self, Wrong> {
        let unread = |_| unreadable("input", input, "must be a string or a list of items");
        let (mut read, mut said) = (Self::default(), Content::new(limits));
        if input.get().starts_with('"') {
            said.texts.push(serde_json::from_str(input.get()).map_err(unread)?);
        } else {
            let items: Vec<&RawValue> = serde_json::from_str(input.get()).map_err(unread)?;
            for (index, item) in items.into_iter().enumerate() {
                read.item(&format!("input/{index}"), item, &mut said)?;
            }
        }
        read.prompt = said.into_prompt("input")?;
        Ok(read)
    }

    fn item(&mut self, place: &str, raw: &RawValue, said: &mut Content) -> Result<(), Wrong> {
        let item: Item = serde_json::from_str(raw.get())
            .map_err(|_| unreadable(place, raw, "must be an item with a type or a role"))?;
        if let Some(known) = item.id.as_deref().and_then(ResponseId::of_item) {
            // The agent has said this, so it knows everything before it.
            self.previous = Some(known);
            said.clear();
            return Ok(());
        }
        let is_said = match (item.kind.as_deref(), item.role.as_deref()) {
            (None | Some("message"), Some("user")) => true,
            (None | Some("message"), Some("system" | "developer")) => false,
            (None | Some("message"), Some("assistant")) => {
                return Err(wrong(
                    place,
                    "an assistant message must have its id from the response; without ids, send previous_response_id and only \
                     the new input",
                ));
            }
            (None | Some("message"), _) => {
                return Err(wrong(&format!("{place}/role"), "must be user, system or developer"));
            }
            (Some(_), _) => {
                return Err(wrong(
                    &format!("{place}/type"),
                    "must be message, or an item of an earlier response with its id: agents of this server call \
                     their own tools",
                ));
            }
        };
        let place = format!("{place}/content");
        let Some(content) = item.content else { return Err(wrong(&place, "must be present")) };
        if is_said {
            return said.add(&place, content);
        }
        self.instructions.extend(instructions(&place, content, said.limits)?);
        Ok(())
    }
}
