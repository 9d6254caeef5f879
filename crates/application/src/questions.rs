//! Questions of an agent: which are open, what may be answered, and who waits to hear that his answer counted. Pure.

use std::collections::BTreeMap;
use std::mem;

use tokenrail_ports::PermissionAnswer;
use tokio::sync::oneshot;

/// The questions of one run.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    asked: BTreeMap<String, State>,
    /// Those that were settled by what is not saved yet, and how.
    settled: Vec<(String, Option<String>)>,
}

#[derive(Debug)]
enum State {
    Open { options: Vec<String> },
    Settled,
}

/// A client's answer on its way, and where it is told what came of it.
#[derive(Debug)]
pub(crate) struct Answering {
    pub(crate) answer: PermissionAnswer,
    pub(crate) told: oneshot::Sender<Answered>,
}

/// What came of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answered {
    /// The question is settled by this answer, and that is saved.
    Settled,
    /// It was settled by another one, or before.
    NotOpen,
    /// It was never asked.
    Unknown,
    /// It has other options: these.
    NoSuchOption { options: Vec<String> },
}

impl Questions {
    pub(crate) fn ask(&mut self, question: String, options: Vec<String>) {
        self.asked.insert(question, State::Open { options });
    }

    /// Of what is not `fresh`, everybody has been told already.
    pub(crate) fn settle(&mut self, question: String, option: Option<String>, fresh: bool) {
        self.asked.insert(question.clone(), State::Settled);
        if fresh {
            self.settled.push((question, option));
        }
    }

    /// Why an answer cannot be handed on; none where it can.
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

    /// What was settled since this was asked last.
    pub(crate) fn take_settled(&mut self) -> Vec<(String, Option<String>)> {
        mem::take(&mut self.settled)
    }
}
