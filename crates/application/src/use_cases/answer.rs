//! Answers a permission request of an agent.
//!
//! The steps, in order. The files of steps 3 and 4 are in the runner crate:
//!
//! 1. `rest/permissions.rs` of the presentation crate reads the answer (`dto/permission.rs`), and calls this file. It
//!    sends the answer to the pump of the running turn (`TaskHandle::answers` in `task_handle.rs`), and waits.
//!    If another node runs the agent, `nodes/letters.rs` (`answer_elsewhere`) puts the answer into the inbox of that
//!    node, and waits for the reply. That node calls this file (`reply_to`).
//! 2. The loop in `pump.rs` receives it, and `pump/answers.rs` checks it and hands it on (`answer`).
//! 3. `process/run.rs` writes it into the FIFO `answers` of the run folder (`answer`; `process/run/tell.rs`).
//! 4. `converse/exchange.rs` reads it (`read_messages`; `converse/fifo.rs`), and `converse/pending_requests.rs`
//!    settles the request (`answer`). One line about that goes to its standard output (`converse/printed.rs`), which
//!    `supervisor/output.rs` copies into the spool. Then the decision goes to the program in the words of its protocol
//!    (`answer` in `converse/claude.rs`, `acp.rs` or `codex.rs`).
//! 5. The watcher (`process/watch/task.rs`) notices that the spool has grown, and the line comes back like all
//!    output: `process/run.rs` (`next`), `pump.rs` (`lines`), `recorder.rs` (`line`), the parser and its
//!    `added_lines.rs` (`read`), `recorder.rs` (`hear`), `requests_of_run.rs` of this crate (`settle`).
//! 6. When the batch with this line is saved, `pump.rs` (`after_save`) reports what is settled: `pump/answers.rs`
//!    (`tell_settled`) replies to this file.

use std::time::Duration;

use tokenrail_domain::{Agent, AgentId, AgentStatus, PermissionReply, TurnNumber};
use tokenrail_ports::PermissionAnswer;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::error::{Refusal, ReplyText};
use crate::requests_of_run::{Answered, Answering};
use crate::service::AgentService;

/// How often to check whether a running turn can be reached again after a restart.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The outcome of an answer that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// The permission request is settled by this answer, and that is in the journal.
    Settled,
    /// The answer is on its way, but was not confirmed in time. The journal will show the outcome.
    HandedOn,
}

impl AgentService {
    /// Answers a permission request of an agent. Only the first answer counts: a later one is refused, even if it is
    /// the same. Returns when the journal shows that the request is settled, or after `limits.answer_timeout_s`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`]; [`Refusal::RequestUnknown`]; [`Refusal::RequestSettled`] if another answer came
    /// first, the request timed out, or its turn has ended; [`Refusal::OptionUnknown`]; [`Refusal::ReplyNotAccepted`];
    /// [`Refusal::ReplyTooLong`];
    /// [`Refusal::AnswerNotDelivered`] if too many answers are on their way, the agent cannot receive it, or the turn
    /// cannot be reached in time after a restart;
    /// [`Refusal::ShuttingDown`]; [`Refusal::Store`].
    pub async fn answer(&self, id: AgentId, answer: PermissionAnswer) -> Result<AnswerOutcome, Refusal> {
        let agent = self.get(id).await?;
        self.check_length(&answer.reply)?;
        let until = Instant::now() + self.core.limits.commands.answer_timeout;
        if let Some(home) = self.core.elsewhere(&agent) {
            if agent.status != AgentStatus::Running {
                // Its node need not be asked, and may be lost: see `answers_of`.
                return Err(not_open(answer.request_id, agent.turn.next()));
            }
            return self.answer_elsewhere(&agent, home, answer, until).await;
        }
        let request_id = answer.request_id.clone();
        let (reply, replied) = oneshot::channel();
        let Some(answers) = self.answers_of(&agent, until).await? else {
            // No turn runs, so the requests of the latest one are no longer open either.
            return Err(not_open(request_id, agent.turn.next()));
        };
        // If many answers are on their way, this one waits for its turn.
        match timeout_at(until, answers.send(Answering { answer, reply })).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(self.without_outcome(request_id, agent.turn)),
            Err(_) => return Err(Refusal::AnswerNotDelivered),
        }
        drop(answers);
        match timeout_at(until, replied).await {
            Ok(Ok(Answered::Settled)) => Ok(AnswerOutcome::Settled),
            Ok(Ok(Answered::NotDelivered)) => Err(Refusal::AnswerNotDelivered),
            Ok(Ok(Answered::NotOpen)) => Err(Refusal::RequestSettled(request_id)),
            Ok(Ok(Answered::NoSuchOption { options })) => {
                Err(Refusal::OptionUnknown { known: options.join(", ") })
            }
            Ok(Ok(Answered::NotAccepted(fault))) => Err(Refusal::ReplyNotAccepted(fault)),
            // Perhaps the next turn has begun meanwhile, and knows only its own permission requests.
            Ok(Ok(Answered::Unknown)) => Err(not_open(request_id, self.get(id).await?.turn)),
            Ok(Err(_)) => Err(self.without_outcome(request_id, agent.turn)),
            Err(_) => Ok(AnswerOutcome::HandedOn),
        }
    }

    /// Checks that the texts of a reply are not too long.
    ///
    /// # Errors
    /// [`Refusal::ReplyTooLong`].
    pub fn check_length(&self, reply: &PermissionReply) -> Result<(), Refusal> {
        let limit = self.core.limits.commands.answer_text_bytes;
        for (part, text) in [(ReplyText::Text, &reply.text), (ReplyText::Note, &reply.note)] {
            if text.as_ref().is_some_and(|text| limit < text.len()) {
                return Err(Refusal::ReplyTooLong { part, limit });
            }
        }
        Ok(())
    }

    /// The channel for answers to the running turn. `None` if no turn runs. After a start, the server may still have
    /// to adopt the run.
    async fn answers_of(
        &self,
        agent: &Agent,
        until: Instant,
    ) -> Result<Option<mpsc::Sender<Answering>>, Refusal> {
        loop {
            if let Some(answers) = self.core.task_handle(agent.id).and_then(|handle| handle.answers()) {
                return Ok(Some(answers));
            }
            let agent = self.get(agent.id).await?;
            if agent.status != AgentStatus::Running {
                return Ok(None);
            }
            if until <= Instant::now() {
                // The permission request may still be open. The client can retry later.
                return Err(Refusal::AnswerNotDelivered);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Either the run has ended before it could report the outcome of an answer, or the server shuts down and the
    /// agent keeps waiting.
    fn without_outcome(&self, request_id: String, turn: TurnNumber) -> Refusal {
        if self.core.closing.is_cancelled() {
            return Refusal::ShuttingDown;
        }
        // Its own requests are no longer open either.
        not_open(request_id, turn.next())
    }
}

/// The id of a permission request contains the run, which is the number of the run's first turn. A request of a run
/// from before `turn` is no longer open.
fn not_open(request_id: String, turn: TurnNumber) -> Refusal {
    let run = request_id.split_once('-').and_then(|(run, number)| {
        number.parse::<u64>().ok()?;
        run.parse().ok().map(TurnNumber)
    });
    match run {
        Some(run) if (TurnNumber::FIRST..turn).contains(&run) => Refusal::RequestSettled(request_id),
        _ => Refusal::RequestUnknown(request_id),
    }
}
