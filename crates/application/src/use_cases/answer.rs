//! The use case that answers a question of an agent.

use std::time::Duration;

use tokenrail_domain::{Agent, AgentId, AgentStatus, TurnNumber};
use tokenrail_ports::PermissionAnswer;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::error::Refusal;
use crate::questions::{Answered, Answering};
use crate::service::AgentService;

/// How often it is looked whether a run has been found again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What came of an answer that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// The question is settled by it, and that is in the journal.
    Settled,
    /// It is on its way, but the agent has not taken it yet: the journal will tell.
    HandedOn,
}

impl AgentService {
    /// Answers a question of an agent: whether it may do something. The first answer counts, and it alone: the same one
    /// again is refused. Returns when the
    /// journal tells that the question is settled, or after `limits.answer_timeout`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`]; [`Refusal::QuestionUnknown`], [`Refusal::QuestionSettled`] where another answer came
    /// first, the time was over, or its turn has ended; [`Refusal::OptionUnknown`]; [`Refusal::AtCapacity`] where too
    /// many answers are on their way, or a run is not found again in time; [`Refusal::ShuttingDown`];
    /// [`Refusal::Store`].
    pub async fn answer(&self, id: AgentId, answer: PermissionAnswer) -> Result<AnswerOutcome, Refusal> {
        let agent = self.get(id).await?;
        let question = answer.question.clone();
        let (told, hear) = oneshot::channel();
        let until = Instant::now() + self.core.limits.answer_timeout;
        let Some(answers) = self.answers_of(&agent, until).await? else {
            return Err(not_open(question, agent.turn.next()));
        };
        // Where many answers are on their way, this one waits for its turn.
        match timeout_at(until, answers.send(Answering { answer, told })).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(self.run_ended(question, agent.turn)),
            Err(_) => return Err(Refusal::AtCapacity),
        }
        drop(answers);
        match timeout_at(until, hear).await {
            Ok(Ok(Answered::Settled)) => Ok(AnswerOutcome::Settled),
            Ok(Ok(Answered::NotOpen)) => Err(Refusal::QuestionSettled(question)),
            Ok(Ok(Answered::NoSuchOption { options })) => {
                Err(Refusal::OptionUnknown { known: options.join(", ") })
            }
            // Perhaps the next turn has begun meanwhile, and only knows its own.
            Ok(Ok(Answered::Unknown)) => Err(not_open(question, self.get(id).await?.turn)),
            Ok(Err(_)) => Err(self.run_ended(question, agent.turn)),
            Err(_) => Ok(AnswerOutcome::HandedOn),
        }
    }

    /// How answers reach the turn that runs; none where none runs. A server that has just started may still have to
    /// find the run.
    async fn answers_of(
        &self,
        agent: &Agent,
        until: Instant,
    ) -> Result<Option<mpsc::Sender<Answering>>, Refusal> {
        loop {
            if let Some(answers) = self.core.control(agent.id).and_then(|control| control.answers()) {
                return Ok(Some(answers));
            }
            let agent = self.get(agent.id).await?;
            if agent.status != AgentStatus::Running {
                return Ok(None);
            }
            if until <= Instant::now() {
                // It may well be open: whoever asks again later will hear.
                return Err(Refusal::AtCapacity);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// The run has ended before it could tell what came of an answer; or the server goes down, and the agent waits on.
    fn run_ended(&self, question: String, turn: TurnNumber) -> Refusal {
        if self.core.closing.is_cancelled() {
            return Refusal::ShuttingDown;
        }
        not_open(question, turn.next())
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
