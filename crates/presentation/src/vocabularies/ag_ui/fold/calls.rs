//! The tool calls of one turn, as clients know them.

use std::collections::{BTreeMap, BTreeSet};

use tokenrail_domain::{MessageOrdinal, TurnNumber};

use super::arguments::Arguments;
use crate::vocabularies::turns::call_digest::{CallDigest, shown};
use crate::vocabularies::turns::call_state::CallState;

/// A tool call.
#[derive(Debug)]
pub(super) struct Call {
    /// Its id for clients. Agents use ids again, in other turns and in the same one.
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) message: Option<MessageOrdinal>,
    pub(super) state: CallState,
    pub(super) arguments: Arguments,
    /// The number of the newest run in which it was sent.
    pub(super) run: u32,
    /// The sub-agent that made it.
    pub(super) sub_agent: Option<String>,
    /// Its place in the order in which the calls began.
    place: usize,
}

/// A tool call that begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewCall<'c> {
    pub(super) tool: &'c str,
    pub(super) message: Option<MessageOrdinal>,
    pub(super) run: u32,
    pub(super) sub_agent: Option<&'c str>,
}

/// The longest name of a tool that is kept, in bytes.
const TOOL_BYTES: usize = 200;

/// The tool calls of one turn, by the agent's own ids, which may be long.
#[derive(Debug)]
pub(super) struct Calls {
    turn: TurnNumber,
    known: BTreeMap<CallDigest, Call>,
    /// The ids that clients know.
    ids: BTreeSet<CallDigest>,
    count: usize,
}

impl Calls {
    pub(super) fn new(turn: TurnNumber) -> Self {
        Self { turn, known: BTreeMap::new(), ids: BTreeSet::new(), count: 0 }
    }

    /// The id of a call for clients.
    pub(super) fn id(&self, call: &str) -> String {
        self.get(call).map_or_else(|| self.first_id(call), |known| known.id.clone())
    }

    /// The id of the first call with this id of the agent.
    fn first_id(&self, call: &str) -> String {
        format!("{}:{}", self.turn, shown(call))
    }

    pub(super) fn get(&self, call: &str) -> Option<&Call> {
        self.known.get(&CallDigest::of(call))
    }

    pub(super) fn get_mut(&mut self, call: &str) -> Option<&mut Call> {
        self.known.get_mut(&CallDigest::of(call))
    }

    /// Adds a call that begins in this run. It replaces a call with the same id of the agent.
    pub(super) fn begin(&mut self, call: &str, begins: NewCall<'_>) {
        let NewCall { tool, message, run, sub_agent } = begins;
        let place = self.count;
        self.count += 1;
        let first = self.first_id(call);
        let again = (place..).map(|number| format!("{first}#{number}"));
        let mut ids = std::iter::once(first.clone()).chain(again);
        let id = ids.find(|id| self.ids.insert(CallDigest::of(id))).unwrap_or_default();
        let new = Call {
            id,
            tool: tool[..tool.floor_char_boundary(TOOL_BYTES)].to_owned(),
            message,
            state: CallState::Streaming,
            arguments: Arguments::default(),
            run,
            sub_agent: sub_agent.map(str::to_owned),
            place,
        };
        self.known.insert(CallDigest::of(call), new);
    }

    /// Forgets the calls that fit, and returns them in the order in which they began.
    pub(super) fn take(&mut self, fits: impl Fn(&Call) -> bool) -> Vec<Call> {
        let mut taken: Vec<_> =
            self.known.extract_if(.., |_, call| fits(call)).map(|(_, call)| call).collect();
        taken.sort_unstable_by_key(|call| call.place);
        taken
    }
}
