//! The permission requests of an agent: which are open, which answers they accept, and what clients learn about their
//! answers. Pure.

use std::collections::BTreeMap;
use std::mem;

use tokenrail_ports::PermissionAnswer;
use tokio::sync::oneshot;

/// The permission requests of one run.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    asked: BTreeMap<String, State>,
    /// The requests that unsaved events have settled, each with the chosen option.
    settled: Vec<(String, Option<String>)>,
}

#[derive(Debug)]
enum State {
    Open { options: Vec<String> },
    Settled,
}

/// A client's answer on its way, and the channel for its outcome.
#[derive(Debug)]
pub(crate) struct Answering {
    pub(crate) answer: PermissionAnswer,
    pub(crate) told: oneshot::Sender<Answered>,
}

/// The outcome of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answered {
    /// The request is settled by this answer, and that is saved.
    Settled,
    /// The request was settled before, or by another answer.
    NotOpen,
    /// The agent never sent such a request.
    Unknown,
    /// The request has no such option, but these.
    NoSuchOption { options: Vec<String> },
}

impl Questions {
    pub(crate) fn ask(&mut self, question: String, options: Vec<String>) {
        self.asked.insert(question, State::Open { options });
    }

    /// Settles a request. If that is not `fresh`, the journal has it already, and no client waits for it.
    pub(crate) fn settle(&mut self, question: String, option: Option<String>, fresh: bool) {
        self.asked.insert(question.clone(), State::Settled);
        if fresh {
            self.settled.push((question, option));
        }
    }

    /// Why an answer cannot be handed on. `None` if it can.
    pub(crate) fn objection(&self, answer: &PermissionAnswer) -> Option<Answered> {
        match self.asked.get(&answer.question) {
            None => Some(Answered::Unknown),
            Some(State::Settled) => Some(Answered::NotOpen),
            Some(State::Open { options }) => {
                let offered = answer.option.as_ref().is_none_or(|option| options.contains(option));
                (!offered).then(|| Answered::NoSuchOption { options: options.clone() })
            }
        }
    }

    /// The requests that were settled since the last call.
    pub(crate) fn take_settled(&mut self) -> Vec<(String, Option<String>)> {
        mem::take(&mut self.settled)
    }
}
