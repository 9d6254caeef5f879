//! The sub-agents of one turn. The tool call that started a sub-agent identifies it.

use std::collections::BTreeMap;

use super::AgUi;
use super::calls::Calls;
use super::teller::Teller;
use crate::fold::Frames;
use crate::vocabularies::ag_ui::dto::{AgUiEvent, SubAgentOutcomeDto};

/// The name of a sub-agent whose tool call is not known.
const NAMELESS: &str = "sub-agent";

/// The sub-agents of one turn.
#[derive(Debug, Default)]
pub(super) struct SubAgents {
    /// Those that run, in the order in which they started.
    open: Vec<String>,
    /// Those that have ended, and the number of the run in which they ended. They are not started again, although some
    /// work on in the background.
    ended: BTreeMap<String, u32>,
}

impl SubAgents {
    /// Returns the id of the sub-agent of this call, and starts it for the client if it is new.
    pub(super) fn of<T: Frames<AgUi>>(
        &mut self,
        call: &str,
        calls: &Calls,
        run: u32,
        out: &mut Teller<'_, T>,
    ) -> String {
        let (known, id) = (calls.get(call), calls.id(call));
        if !self.open.contains(&id) && !self.ended.contains_key(&id) {
            // A client refuses a parent that was not started in this run.
            let is_started = |parent: &str| {
                self.ended.get(parent) == Some(&run) || self.open.iter().any(|open| open == parent)
            };
            let parent = known.and_then(|known| known.sub_agent.as_deref());
            let tool = known.map(|known| known.tool.as_str()).filter(|tool| !tool.is_empty());
            let started = AgUiEvent::SubagentStarted {
                name: tool.unwrap_or(NAMELESS),
                parent_subagent_run_id: parent.filter(|parent| is_started(parent)),
                parent_tool_call_id: &id,
            };
            out.tell_of(Some(&id), started);
            self.open.push(id.clone());
        }
        id
    }

    /// Ends a sub-agent, if it runs. It has failed if there is an error.
    pub(super) fn end<T: Frames<AgUi>>(
        &mut self,
        id: &str,
        error: Option<&str>,
        run: u32,
        out: &mut Teller<'_, T>,
    ) {
        let Some(at) = self.open.iter().position(|open| open == id) else { return };
        self.open.remove(at);
        self.ended.insert(id.to_owned(), run);
        out.tell_of(
            Some(id),
            match error {
                Some(message) => AgUiEvent::SubagentError { message },
                None => AgUiEvent::SubagentFinished { outcome: SubAgentOutcomeDto::Success },
            },
        );
    }

    /// Ends all that run, the newest first.
    pub(super) fn end_all<T: Frames<AgUi>>(
        &mut self,
        error: Option<&str>,
        run: u32,
        out: &mut Teller<'_, T>,
    ) {
        while let Some(id) = self.open.last().cloned() {
            self.end(&id, error, run, out);
        }
    }

    /// Ends all that run for this run of the client. They start again in the next run.
    pub(super) fn suspend<T: Frames<AgUi>>(&mut self, out: &mut Teller<'_, T>) {
        while let Some(id) = self.open.pop() {
            let outcome = SubAgentOutcomeDto::Suspended;
            out.tell_of(Some(&id), AgUiEvent::SubagentFinished { outcome });
        }
    }
}
