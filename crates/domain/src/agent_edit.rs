//! What users may change about an agent at any time.

use crate::Agent;

/// A change of an agent. Its journal and its turns stay as they are. `None` leaves a field as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentEdit {
    pub name: Option<NewName>,
    pub pinned: Option<bool>,
    pub archived: Option<bool>,
}

/// The new name of an agent, or that it has none any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewName {
    Removed,
    Text(String),
}

impl Agent {
    /// Applies a change. Returns whether the agent differs from before.
    pub fn edit(&mut self, edit: AgentEdit) -> bool {
        let AgentEdit { name, pinned, archived } = edit;
        let name = match name {
            None => self.name.clone(),
            Some(NewName::Removed) => None,
            Some(NewName::Text(name)) => Some(name),
        };
        let after = (name, pinned.unwrap_or(self.pinned), archived.unwrap_or(self.archived));
        let before = (self.name.take(), self.pinned, self.archived);
        let is_changed = before != after;
        (self.name, self.pinned, self.archived) = after;
        is_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentId, Timestamp};

    #[test]
    fn an_edit_changes_what_it_names_and_says_whether_anything_differs() {
        let mut agent = Agent::new(AgentId::new(Timestamp(0), [0; 10]), "demo".to_owned(), Timestamp(0));
        let name =
            |name: &str| AgentEdit { name: Some(NewName::Text(name.to_owned())), ..AgentEdit::default() };
        assert!(!agent.edit(AgentEdit::default()));
        assert!(agent.edit(name("Ada")));
        assert!(!agent.edit(name("Ada")));
        assert!(agent.edit(AgentEdit { pinned: Some(true), archived: Some(true), ..AgentEdit::default() }));
        assert_eq!((agent.name.as_deref(), agent.pinned, agent.archived), (Some("Ada"), true, true));
        assert!(!agent.edit(AgentEdit { pinned: Some(true), ..AgentEdit::default() }));
        assert!(agent.edit(AgentEdit { archived: Some(false), ..AgentEdit::default() }));
        assert!(agent.edit(AgentEdit { name: Some(NewName::Removed), ..AgentEdit::default() }));
        assert_eq!((agent.name, agent.pinned, agent.archived), (None, true, false));
    }
}
