//! The questions of one turn, for clients who know of approvals: a tool call is allowed, or it is not.

use std::collections::BTreeMap;

use super::{Question, Settling};

/// The questions that a client was told of, and that are open.
#[derive(Debug, Default)]
pub(crate) struct Approvals(BTreeMap<String, Approval>);

#[derive(Debug)]
struct Approval {
    call: String,
    /// The options that allow it.
    allowing: Vec<String>,
}

/// How a question was settled.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) call: String,
    pub(crate) approved: bool,
}

impl Approvals {
    /// Takes in a question about that call. A client knows one question of a call at a time.
    pub(crate) fn ask(&mut self, question: &Question, call: &str) {
        self.0.retain(|_, open| open.call != call);
        let allowing = question.allowing().map(str::to_owned).collect();
        self.0.insert(question.request_id.clone(), Approval { call: call.to_owned(), allowing });
    }

    /// Forgets questions about other calls than these.
    pub(crate) fn retain(&mut self, is_known: impl Fn(&str) -> bool) {
        self.0.retain(|_, open| is_known(&open.call));
    }

    /// None where the client knows of no such question.
    pub(crate) fn settle(&mut self, settling: &Settling) -> Option<Verdict> {
        let Approval { call, allowing } = self.0.remove(&settling.request_id)?;
        let approved = settling.option_id.as_ref().is_some_and(|option| allowing.contains(option));
        Some(Verdict { call, approved })
    }
}
