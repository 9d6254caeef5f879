//! The agent's permission requests: which are open, and the answers to them.

use std::mem;
use std::sync::Arc;

use tokenrail_domain::{AgentId, AgentStatus, PermissionReply};
use tokenrail_ports::{Append, TurnStep};
use tokio::sync::mpsc;

use super::Pump;
use crate::core::Core;
use crate::open_requests::RequestChange;
use crate::planted::{self, Bug, is_planted};
use crate::requests_of_run::{Answered, Answering};

/// The answers to the agent's permission requests.
pub(super) struct WaitingAnswers {
    pub(super) incoming: mpsc::Receiver<Answering>,
    /// The answers that were handed on to the agent. Their clients wait to learn whether they counted.
    given: Vec<Answering>,
    pub(super) open: OpenRequestsOfRun,
}

/// The agent's permission requests among the open ones. A dropped pump leaves none there.
pub(super) struct OpenRequestsOfRun {
    pub(super) core: Arc<Core>,
    pub(super) agent: AgentId,
}

impl Drop for OpenRequestsOfRun {
    fn drop(&mut self) {
        // After a shutdown the agent keeps waiting, so nothing has changed for clients.
        if !self.core.closing.is_cancelled() && self.core.open_requests.clear(self.agent) {
            self.core.tell_left(self.agent);
        }
    }
}

impl OpenRequestsOfRun {
    fn tell(&self) {
        self.core.tell_status(self.agent, AgentStatus::Running, self.core.now());
    }

    pub(super) fn apply(&self, changes: Vec<RequestChange>) {
        if self.core.open_requests.apply(self.agent, changes) {
            self.tell();
        }
    }
}

impl WaitingAnswers {
    pub(super) fn new(incoming: mpsc::Receiver<Answering>, open: OpenRequestsOfRun) -> Self {
        Self { incoming, given: Vec::new(), open }
    }
}

impl Pump {
    /// Hands an answer on to the agent. Its client is notified once the line that the `converse` process adds to the
    /// output ([`AddedLine::PermissionResolved`]) is read and saved. Until then, an answer of another client may still
    /// win.
    ///
    /// [`AddedLine::PermissionResolved`]: tokenrail_ports::AddedLine::PermissionResolved
    pub(super) async fn answer(&mut self, answering: Answering) {
        let objection = match self.stopping.why {
            // An agent that is being stopped must not receive any further permission.
            Some(_) if planted::correctly(Bug::AnswersAfterStop) => Some(Answered::NotOpen),
            _ => self.recorder.requests().objection(&answering.answer),
        };
        if let Some(objection) = objection {
            // The client may have disconnected meanwhile.
            let _ = answering.reply.send(objection);
            return;
        }
        self.answers.given.retain(|waiting| !waiting.reply.is_closed());
        if self.answers.given.iter().any(|waiting| waiting.answer == answering.answer) {
            // The same answer is on its way already. The client that gave it first may disconnect before the request
            // is settled.
            self.answers.given.push(answering);
            return;
        }
        match self.run.answer(&answering.answer).await {
            Ok(()) => self.answers.given.push(answering),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(agent = %self.agent, error, "cannot deliver an answer to the agent");
                let _ = answering.reply.send(Answered::NotDelivered);
            }
        }
    }

    /// After a restart, and once all output that the journal has is read again: the permission requests in it that are
    /// open.
    pub(super) fn find_known_requests(&mut self) {
        if self.recorder.has_caught_up() && planted::correctly(Bug::NeedsNotReadAgain) {
            self.answers.open.apply(self.recorder.requests().take_known());
        }
    }

    /// Notes which permission requests are open now that an append is saved, and announces a change.
    pub(super) fn update_needs(&mut self, saved: &Append, changes: Vec<RequestChange>) {
        self.find_known_requests();
        let steps = || saved.parts().map(|part| &part.step);
        let OpenRequestsOfRun { core, agent } = &self.answers.open;
        let asks = changes.iter().any(|change| matches!(change, RequestChange::Asked { .. }));
        let has_changed = match steps().last() {
            // Nobody waits for the answers any more.
            Some(TurnStep::End) => core.open_requests.clear(*agent),
            _ => core.open_requests.apply(*agent, changes),
        };
        // The announcement of a new status includes the needs.
        if steps().any(|step| *step != TurnStep::Continue) {
            return;
        }
        if asks {
            // The store has put an archived agent back into the lists.
            core.tell_edited(*agent, AgentStatus::Running, core.now());
        } else if has_changed {
            self.answers.open.tell();
        }
    }

    /// Reports to the clients what came of their answers, as far as that is saved. They wait in `AgentService::answer`.
    pub(super) fn tell_settled(&mut self, settled: Vec<(String, PermissionReply)>) {
        for (request_id, reply) in settled {
            let all = mem::take(&mut self.answers.given);
            let (settled, waiting): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|answering| is_answer_to(answering, &request_id));
            self.answers.given = waiting;
            tell_one(settled, &reply);
        }
    }
}

/// Of the clients that gave the answer that counts, only the first one that is still connected receives
/// [`Answered::Settled`]. All other answers are too late, even if they are the same.
fn tell_one(answers: Vec<Answering>, settled_by: &PermissionReply) {
    let mut counted = false;
    for Answering { answer, reply } in answers {
        let too_late = counted && planted::correctly(Bug::EachAnswerCounts);
        let counts = !too_late && answer.reply == *settled_by;
        let outcome = if counts { Answered::Settled } else { Answered::NotOpen };
        counted |= reply.send(outcome).is_ok() && counts;
    }
}

fn is_answer_to(answering: &Answering, request_id: &str) -> bool {
    answering.answer.request_id == request_id || is_planted(Bug::AnswerOfAnother)
}
