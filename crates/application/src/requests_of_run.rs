//! The permission requests of an agent: which are open, which answers they accept, and what clients learn about their
//! answers. Pure.

use std::collections::BTreeMap;
use std::mem;

use tokenrail_domain::{Accepts, PermissionReply, PermissionRequest, ReplyFault, Timestamp};
use tokenrail_ports::PermissionAnswer;
use tokio::sync::oneshot;

use crate::open_requests::RequestChange;

/// The permission requests of one run.
#[derive(Debug, Default)]
pub(crate) struct RunRequests {
    asked: BTreeMap<String, State>,
    /// The requests that unsaved events have settled, each with the reply.
    settled: Vec<(String, PermissionReply)>,
    /// The requests that the journal had before this run was adopted, as far as they are open.
    known: Vec<RequestChange>,
    /// The changes by unsaved events.
    changes: Vec<RequestChange>,
}

#[derive(Debug)]
enum State {
    /// `options` are the ids and kinds.
    Open {
        options: Vec<(String, &'static str)>,
        accepts: Accepts,
    },
    Settled,
}

/// A client's answer on its way, and the channel for its outcome.
#[derive(Debug)]
pub(crate) struct Answering {
    pub(crate) answer: PermissionAnswer,
    pub(crate) reply: oneshot::Sender<Answered>,
}

/// The outcome of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answered {
    /// The request is settled with the reply of this answer, and that is saved. A timeout or a cancel that chose the
    /// same reply counts as this answer.
    Settled,
    /// The request was settled before, or by another answer.
    NotOpen,
    /// The request is open, but the agent could not receive the answer.
    NotDelivered,
    /// The agent never sent such a request.
    Unknown,
    /// The request has no such option, but these.
    NoSuchOption { options: Vec<String> },
    /// The request does not accept such an answer.
    NotAccepted(ReplyFault),
}

impl RunRequests {
    /// Opens a request. If that is not `fresh`, the journal has it already. `now` is used if the request does not
    /// say when it was sent.
    pub(crate) fn ask(&mut self, request: Box<PermissionRequest>, fresh: bool, now: Timestamp) {
        let options = request.options.iter().map(|option| (option.id.clone(), option.kind)).collect();
        let accepts = request.accepts;
        self.asked.insert(request.id.clone(), State::Open { options, accepts });
        let asked_at = request.asked_at.unwrap_or(now);
        let asked = RequestChange::Asked { request, asked_at };
        if fresh { self.changes.push(asked) } else { self.known.push(asked) }
    }

    /// Settles a request. If that is not `fresh`, the journal has it already, and no client waits for it.
    ///
    /// The next steps: `Pump::begin_save` takes the settled requests, and `after_save` reports them to the clients.
    pub(crate) fn settle(&mut self, request_id: String, reply: PermissionReply, fresh: bool) {
        self.asked.insert(request_id.clone(), State::Settled);
        if fresh {
            self.changes.push(RequestChange::Settled { request_id: request_id.clone() });
            self.settled.push((request_id, reply));
        } else {
            // A long turn has many requests that are settled, and each has an input.
            self.known.retain(|change| !change.opens(&request_id));
        }
    }

    /// Why an answer cannot be handed on. `None` if it can.
    pub(crate) fn objection(&self, answer: &PermissionAnswer) -> Option<Answered> {
        match self.asked.get(&answer.request_id) {
            None => Some(Answered::Unknown),
            Some(State::Settled) => Some(Answered::NotOpen),
            Some(State::Open { options, accepts }) => {
                let kind_of = |id: &str| options.iter().find(|(known, _)| known == id).map(|(_, kind)| *kind);
                match answer.reply.fault(*accepts, kind_of)? {
                    ReplyFault::UnknownOption => {
                        let options = options.iter().map(|(id, _)| id.clone()).collect();
                        Some(Answered::NoSuchOption { options })
                    }
                    fault => Some(Answered::NotAccepted(fault)),
                }
            }
        }
    }

    /// The requests that the journal had before this run was adopted and that are open. Only the first call returns
    /// them.
    pub(crate) fn take_known(&mut self) -> Vec<RequestChange> {
        mem::take(&mut self.known)
    }

    /// The changes by events that are not saved yet, since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<RequestChange> {
        mem::take(&mut self.changes)
    }

    /// Forgets what events have changed that are not saved, and never will be.
    pub(crate) fn forget_unsaved(&mut self) {
        self.changes.clear();
        self.settled.clear();
    }

    /// The requests that were settled since the last call.
    pub(crate) fn take_settled(&mut self) -> Vec<(String, PermissionReply)> {
        mem::take(&mut self.settled)
    }
}

#[cfg(test)]
mod tests {
    use tokenrail_domain::JsonText;

    use super::*;

    fn request(id: &str) -> Box<PermissionRequest> {
        Box::new(PermissionRequest {
            id: id.to_owned(),
            call: None,
            tool: "Bash".to_owned(),
            input: JsonText::new_unchecked("{}"),
            options: Vec::new(),
            accepts: Accepts::default(),
            asked_at: None,
            expires_at: None,
            default_option: None,
        })
    }

    /// A long turn has many requests, and the server reads all of them again after a restart.
    #[test]
    fn of_the_requests_that_are_read_again_only_the_open_ones_are_kept() {
        let mut requests = RunRequests::default();
        for number in 0..100 {
            let id = number.to_string();
            requests.ask(request(&id), false, Timestamp(1));
            if number != 7 {
                requests.settle(id, PermissionReply::default(), false);
            }
        }
        let kept = requests.take_known();
        assert!(kept.len() == 1 && kept[0].opens("7"), "{kept:?}");
    }
}
