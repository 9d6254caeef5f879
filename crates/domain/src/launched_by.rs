//! Which agent has launched another one.

use crate::{Agent, AgentId, JsonText};

/// The agent that has launched another one, and how deep this launch was.
///
/// It is the metadata of the launched agent, in this one spelling: the metadata are saved once and never change. A
/// client can write the same into the metadata of a launch of its own. It gains nothing: that agent only counts as a
/// child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchedBy {
    pub agent: AgentId,
    /// 1 if no agent has launched `agent`.
    pub depth: u32,
}

const BEFORE_AGENT: &str = r#"{"launchedBy":""#;
const BEFORE_DEPTH: &str = r#"","launchDepth":"#;

impl LaunchedBy {
    /// The agent that has launched this one. `None` if no agent has.
    pub fn of(agent: &Agent) -> Option<Self> {
        let text = agent.metadata.as_ref()?.as_str();
        let (id, depth) = text.strip_prefix(BEFORE_AGENT)?.strip_suffix('}')?.split_once(BEFORE_DEPTH)?;
        Some(Self { agent: id.parse().ok()?, depth: depth.parse().ok()? })
    }

    /// The metadata of an agent that is launched by `parent`.
    pub fn child_of(parent: &Agent) -> Self {
        let depth = Self::of(parent).map_or(0, |above| above.depth);
        Self { agent: parent.id, depth: depth.saturating_add(1) }
    }

    pub fn to_metadata(self) -> JsonText {
        let Self { agent, depth } = self;
        JsonText::new_unchecked(format!("{BEFORE_AGENT}{agent}{BEFORE_DEPTH}{depth}}}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    fn agent(number: u8, metadata: Option<JsonText>) -> Agent {
        let id = AgentId::new(Timestamp(1), [number; 10]);
        Agent { metadata, ..Agent::new(id, "demo".to_owned(), Timestamp(1)) }
    }

    #[test]
    fn a_child_knows_its_parent_and_a_grandchild_is_deeper() {
        let first = agent(1, None);
        let by_first = LaunchedBy::child_of(&first);
        assert_eq!(by_first, LaunchedBy { agent: first.id, depth: 1 });
        let second = agent(2, Some(by_first.to_metadata()));
        assert_eq!(LaunchedBy::of(&second), Some(by_first));
        assert_eq!(LaunchedBy::child_of(&second), LaunchedBy { agent: second.id, depth: 2 });
        let text = by_first.to_metadata().as_str().to_owned();
        assert_eq!(text, format!("{{\"launchedBy\":\"{}\",\"launchDepth\":1}}", first.id));
    }

    #[test]
    fn other_metadata_name_no_parent() {
        let id = agent(1, None).id;
        for text in [
            "{}".to_owned(),
            "{\"launchedBy\":\"x\",\"launchDepth\":1}".to_owned(),
            format!("{{\"launchedBy\":\"{id}\"}}"),
            format!("{{\"launchedBy\":\"{id}\",\"launchDepth\":-1}}"),
            format!("{{\"launchedBy\":\"{id}\",\"launchDepth\":1,\"more\":1}}"),
        ] {
            assert_eq!(LaunchedBy::of(&agent(2, Some(JsonText::new_unchecked(text)))), None);
        }
        assert_eq!(LaunchedBy::of(&agent(2, None)), None);
    }
}
