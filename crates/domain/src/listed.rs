//! Agents and turns as lists show them. Long fields are cut, so that the size of a list is bounded in bytes.

use crate::{Agent, JsonText, Timestamp, Turn};

/// A field of an agent or a turn without a length limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LongField {
    Name,
    Prompt,
    Model,
    Cwd,
    /// The text of its error.
    Error,
    Chat,
    Session,
    Usage,
    Metadata,
    Options,
}

/// An agent as shown in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedAgent {
    pub agent: Agent,
    /// The fields that were too long, in the order of [`LongField`]. A text is cut to its beginning. An id or a JSON
    /// value is omitted.
    pub truncated: Vec<LongField>,
}

/// A turn as shown in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTurn {
    pub turn: Turn,
    /// Whether the prompt was too long and was cut to its beginning.
    pub truncated: bool,
    /// When the turn ended. `None` if unknown.
    pub ended_at: Option<Timestamp>,
    /// Why the agent's last message stopped, in the agent's own words. Known only if `ended_at` is known.
    pub stop_reason: Option<String>,
}

impl ListedAgent {
    /// Cuts each field that is longer than `field_bytes`.
    pub fn new(mut agent: Agent, field_bytes: usize) -> Self {
        let mut truncated = Vec::new();
        let mut note = |cut: bool, field: LongField| {
            if cut {
                truncated.push(field);
            }
        };
        note(agent.name.as_mut().is_some_and(|name| cut(name, field_bytes)), LongField::Name);
        note(cut(&mut agent.prompt, field_bytes), LongField::Prompt);
        note(agent.model.as_mut().is_some_and(|model| cut(model, field_bytes)), LongField::Model);
        note(cut(&mut agent.cwd, field_bytes), LongField::Cwd);
        note(agent.error.as_mut().is_some_and(|error| cut(&mut error.text, field_bytes)), LongField::Error);
        note(leave_out(&mut agent.chat, field_bytes, String::as_str), LongField::Chat);
        note(leave_out(&mut agent.session, field_bytes, String::as_str), LongField::Session);
        note(leave_out(&mut agent.usage, field_bytes, JsonText::as_str), LongField::Usage);
        note(leave_out(&mut agent.metadata, field_bytes, JsonText::as_str), LongField::Metadata);
        note(leave_out(&mut agent.options, field_bytes, JsonText::as_str), LongField::Options);
        Self { agent, truncated }
    }

    /// The approximate size in bytes.
    pub fn bytes(&self) -> usize {
        let Agent { name, chat, prompt, model, cwd, session, error, usage, metadata, options, .. } =
            &self.agent;
        let texts = [name, chat, model, session].into_iter().flatten().map(String::len);
        let json = [usage, metadata, options].into_iter().flatten().map(|json| json.as_str().len());
        let error = error.as_ref().map_or(0, |error| error.text.len());
        size_of::<Self>() + prompt.len() + cwd.len() + error + texts.chain(json).sum::<usize>()
    }
}

impl ListedTurn {
    /// The approximate size in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.turn.prompt.len() + self.stop_reason.as_ref().map_or(0, String::len)
    }
}

/// Cuts a text to as many whole characters as fit into `bytes`. Returns true if anything was cut.
pub fn cut(text: &mut String, bytes: usize) -> bool {
    if text.len() <= bytes {
        return false;
    }
    text.truncate(text.floor_char_boundary(bytes));
    text.shrink_to_fit();
    true
}

fn leave_out<T>(value: &mut Option<T>, bytes: usize, text: impl Fn(&T) -> &str) -> bool {
    let long = value.as_ref().is_some_and(|value| bytes < text(value).len());
    if long {
        *value = None;
    }
    long
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_two_characters() {
        let mut text = "aé€😀".to_owned();
        assert!(!cut(&mut text, 10));
        for (bytes, left) in [(9, "aé€"), (6, "aé€"), (5, "aé"), (3, "aé"), (2, "a"), (1, "a"), (0, "")]
        {
            let mut text = text.clone();
            assert!(cut(&mut text, bytes));
            assert_eq!(text, left, "{bytes} bytes");
        }
    }
}
