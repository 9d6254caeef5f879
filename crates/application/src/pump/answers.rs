//! Answers to the agent's questions.

use tokio::sync::mpsc;

use super::Pump;
use crate::planted;
use crate::questions::{Answered, Answering};

/// The answers to the agent's questions.
pub(super) struct Answers {
    pub(super) inbox: mpsc::Receiver<Answering>,
    /// The answers that were handed on. Their clients wait to hear whether they counted.
    given: Vec<Answering>,
    /// The questions that the batch that is being saved settles, each with the option that was chosen.
    pub(super) settled: Vec<(String, Option<String>)>,
}

impl Answers {
    pub(super) fn new(inbox: mpsc::Receiver<Answering>) -> Self {
        Self { inbox, given: Vec::new(), settled: Vec::new() }
    }
}

impl Pump {
    /// Hands an answer on to the agent. Whoever has given it hears of it when the agent's own output tells that the
    /// question is settled, and that is saved; until then, another answer may have come first.
    pub(super) async fn answer(&mut self, answering: Answering) {
        let objection = match self.stopping.why {
            // What is being stopped is not to be allowed anything any more.
            Some(_) if planted::stop_ends_answers() => Some(Answered::NotOpen),
            _ => self.recorder.questions().objection(&answering.answer),
        };
        if let Some(objection) = objection {
            // Whoever has asked may have gone meanwhile.
            let _ = answering.told.send(objection);
            return;
        }
        self.answers.given.retain(|waiting| !waiting.told.is_closed());
        if self.answers.given.iter().any(|waiting| waiting.answer == answering.answer) {
            // It is on its way already; who gave it first may leave before it is settled.
            self.answers.given.push(answering);
            return;
        }
        match self.run.answer(&answering.answer).await {
            Ok(()) => self.answers.given.push(answering),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(agent = %self.agent, error, "cannot deliver an answer to the agent");
                let _ = answering.told.send(Answered::NotOpen);
            }
        }
    }

    /// Tells those who have answered what came of it, as far as it is saved.
    pub(super) fn tell_settled(&mut self) {
        for (question, option) in self.answers.settled.drain(..) {
            let all = std::mem::take(&mut self.answers.given);
            let (told, waiting): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|answering| is_answer_to(answering, &question));
            self.answers.given = waiting;
            tell_one(told, option.as_deref());
        }
    }
}

/// Of those who gave the answer that counts, the first who is still there hears that it was his; all others come too
/// late, also with the same answer.
fn tell_one(told: Vec<Answering>, option: Option<&str>) {
    let mut counted = false;
    for Answering { answer, told } in told {
        let too_late = counted && planted::one_answer_counts();
        let counts = !too_late && answer.option.as_deref() == option;
        let outcome = if counts { Answered::Settled } else { Answered::NotOpen };
        counted |= told.send(outcome).is_ok() && counts;
    }
}

fn is_answer_to(answering: &Answering, question: &str) -> bool {
    planted::is_of_question(&answering.answer.question, question)
}
