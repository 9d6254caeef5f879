//! The tool calls of one turn, as a client knows them.

use std::collections::{BTreeMap, BTreeSet};

/// The state of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallState {
    /// Its input is being streamed.
    Streaming,
    /// Its input was cut short.
    Cut,
    /// Its input is complete, and it has no result yet.
    Made,
    /// It has a result.
    Done,
}

/// The tool calls of one turn. The fold must know them, because a client fails on the result of an unknown call.
#[derive(Debug, Default)]
pub(super) struct Calls {
    known: BTreeMap<String, Call>,
    count: usize,
    /// The calls whose input was sent in this step.
    of_step: BTreeSet<String>,
}

#[derive(Debug)]
struct Call {
    tool: String,
    state: CallState,
    /// Its position in the order in which the calls started.
    place: usize,
}

impl Calls {
    pub(super) fn state(&self, call: &str) -> Option<CallState> {
        self.known.get(call).map(|call| call.state)
    }

    /// The tool with which the call started. Empty if the call is unknown.
    pub(super) fn tool(&self, call: &str) -> &str {
        self.known.get(call).map_or("", |call| &call.tool)
    }

    /// Sets the state of a call. `tool` is used only if the call is new.
    pub(super) fn set(&mut self, call: &str, tool: &str, state: CallState) {
        if state != CallState::Done {
            self.of_step.insert(call.to_owned());
        }
        if let Some(known) = self.known.get_mut(call) {
            known.state = state;
            return;
        }
        let place = self.count;
        self.count += 1;
        self.known.insert(call.to_owned(), Call { tool: tool.to_owned(), state, place });
    }

    /// Forgets a call that ended in an earlier step, because the agent uses its id again.
    pub(super) fn begin_again(&mut self, call: &str) {
        if self.state(call) == Some(CallState::Done) && !self.of_step.contains(call) {
            self.known.remove(call);
        }
    }

    /// Starts a new step.
    pub(super) fn begin_step(&mut self) {
        self.of_step.clear();
    }

    /// Whether any call of this step has a result.
    pub(super) fn any_done_in_step(&self) -> bool {
        self.of_step.iter().any(|call| self.state(call) == Some(CallState::Done))
    }

    /// Forgets the calls of this step, as the client does on `reset-step`.
    pub(super) fn reset_step(&mut self) {
        for call in std::mem::take(&mut self.of_step) {
            self.known.remove(&call);
        }
    }

    /// The calls that have neither a result nor an error, in the order in which they started.
    pub(super) fn open(&self) -> Vec<(String, CallState)> {
        let mut open: Vec<_> = self
            .known
            .iter()
            .filter(|(_, call)| matches!(call.state, CallState::Streaming | CallState::Made))
            .collect();
        open.sort_by_key(|(_, call)| call.place);
        open.into_iter().map(|(id, call)| (id.clone(), call.state)).collect()
    }
}
