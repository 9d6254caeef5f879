//! Answers to the agent's questions.

#[cfg(planted_bugs)]
use tokenrail_ports::planted::{Bug, is_planted};

use super::Pump;
use crate::questions::{Answered, Answering};

impl Pump {
    /// Hands an answer on to the agent. Whoever has given it hears of it when the agent's own output tells that the
    /// question is settled, and that is saved; until then, another answer may have come first.
    pub(super) async fn answer(&mut self, answering: Answering) {
        let stop = self.stop;
        #[cfg(planted_bugs)]
        let stop = stop.filter(|_| !is_planted(Bug::AnswersAfterStop));
        let objection = match stop {
            // What is being stopped is not to be allowed anything any more.
            Some(_) => Some(Answered::NotOpen),
            None => self.recorder.questions().objection(&answering.answer),
        };
        if let Some(objection) = objection {
            // Whoever has asked may have gone meanwhile.
            let _ = answering.told.send(objection);
            return;
        }
        self.answering.retain(|waiting| !waiting.told.is_closed());
        if self.answering.iter().any(|waiting| waiting.answer == answering.answer) {
            // It is on its way already; who gave it first may leave before it is settled.
            self.answering.push(answering);
            return;
        }
        match self.run.answer(&answering.answer).await {
            Ok(()) => self.answering.push(answering),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(agent = %self.agent, error, "an answer does not reach the agent any more");
                let _ = answering.told.send(Answered::NotOpen);
            }
        }
    }

    /// Tells those who have answered what came of it, as far as it is saved.
    pub(super) fn tell_settled(&mut self) {
        for (question, option) in self.settling.drain(..) {
            let all = std::mem::take(&mut self.answering);
            let (told, waiting): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|answering| is_answer_to(answering, &question));
            self.answering = waiting;
            tell_one(told, option.as_deref());
        }
    }
}

/// Of those who gave the answer that counts, the first who is still there hears that it was his; all others come too
/// late, also with the same answer.
fn tell_one(told: Vec<Answering>, option: Option<&str>) {
    let mut counted = false;
    for Answering { answer, told } in told {
        #[cfg(planted_bugs)]
        let counted_before = counted && !is_planted(Bug::EachAnswerCounts);
        #[cfg(not(planted_bugs))]
        let counted_before = counted;
        let counts = !counted_before && answer.option.as_deref() == option;
        let outcome = if counts { Answered::Settled } else { Answered::NotOpen };
        counted |= told.send(outcome).is_ok() && counts;
    }
}

fn is_answer_to(answering: &Answering, question: &str) -> bool {
    #[cfg(planted_bugs)]
    if is_planted(Bug::AnswerOfAnother) {
        return true;
    }
    answering.answer.question == question
}
