//! The use case that answers a question of an agent.

use tokenrail_domain::{AgentId, TurnNumber};
use tokenrail_ports::PermissionAnswer;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::error::Refusal;
use crate::questions::{Answered, Answering};
use crate::service::AgentService;

/// What came of an answer that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// The question is settled by it, and that is in the journal.
    Settled,
    /// It was handed on, but the agent has not taken it yet: the journal will tell.
    HandedOn,
}

impl AgentService {
    /// Answers a question of an agent: whether it may do something. The first answer counts. Returns when the
    /// journal tells that the question is settled, or after `limits.answer_timeout`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`]; [`Refusal::QuestionUnknown`], [`Refusal::QuestionSettled`] where another answer came
    /// first, the time was over, or its turn has ended; [`Refusal::OptionUnknown`]; [`Refusal::Store`].
    pub async fn answer(&self, id: AgentId, answer: PermissionAnswer) -> Result<AnswerOutcome, Refusal> {
        let agent = self.get(id).await?;
        let PermissionAnswer { question, option } = answer.clone();
        let (told, hear) = oneshot::channel();
        let control = self.core.control(id);
        let handed = control.map(|control| control.answer(Answering { answer, told }));
        if !matches!(handed, Some(Ok(()))) {
            return Err(not_open(question, agent.turn.next()));
        }
        match timeout(self.core.limits.answer_timeout, hear).await {
            Ok(Ok(Answered::Settled { option: chosen })) if chosen == option => Ok(AnswerOutcome::Settled),
            Ok(Ok(Answered::Settled { .. } | Answered::NotOpen)) => Err(Refusal::QuestionSettled(question)),
            Ok(Ok(Answered::NoSuchOption { options })) => {
                Err(Refusal::OptionUnknown { known: options.join(", ") })
            }
            Ok(Ok(Answered::Unknown)) => Err(not_open(question, agent.turn)),
            // The run has ended before it could tell.
            Ok(Err(_)) => Err(not_open(question, agent.turn.next())),
            Err(_) => Ok(AnswerOutcome::HandedOn),
        }
    }
}

/// A question names the turn in which it was asked: one from before this turn is not open any more.
fn not_open(question: String, turn: TurnNumber) -> Refusal {
    let asked_in = question.split_once('-').and_then(|(turn, number)| {
        number.parse::<u64>().ok()?;
        turn.parse().ok().map(TurnNumber)
    });
    match asked_in {
        Some(asked_in) if (TurnNumber::FIRST..turn).contains(&asked_in) => Refusal::QuestionSettled(question),
        _ => Refusal::QuestionUnknown(question),
    }
}
