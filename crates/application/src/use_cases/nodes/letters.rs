//! What only the node of an agent can do: it passes permission answers to the agent, and ends the agent's idle process.
//! The node that a client asks puts a letter into the inbox of that node. If the letter is an answer, it waits for the
//! reply.

use std::time::Duration;

use tokenrail_domain::{Agent, NodeId};
use tokenrail_ports::{Hint, Letter, LetterContent, LetterId, LetterReply, PermissionAnswer, StoreError};
use tokio::time::Instant;

use crate::error::Refusal;
use crate::planted::{Bug, is_planted};
use crate::service::AgentService;
use crate::stats::Counters;
use crate::use_cases::AnswerOutcome;

/// Letters that are carried out at the same time. The others wait: their writers give up after a while.
const LETTERS: usize = 256;

/// How often a node looks for the reply to its letter.
const LOOK_FOR_REPLY: Duration = Duration::from_millis(25);

impl AgentService {
    /// Answers a permission request of an agent of another node.
    pub(crate) async fn answer_elsewhere(
        &self,
        agent: &Agent,
        home: NodeId,
        answer: PermissionAnswer,
        until: Instant,
    ) -> Result<AnswerOutcome, Refusal> {
        self.core.check_home(agent)?;
        let request_id = answer.request_id.clone();
        let id = self.send_letter(home, agent, LetterContent::Answer(answer), until).await?;
        loop {
            match self.core.outside.inbox.reply_to(id).await {
                Ok(Some(reply)) => return outcome(reply, request_id),
                Ok(None) => {}
                // The answer is on its way, whatever becomes of this read.
                Err(error) if error.is_transient() => {}
                Err(error) => return Err(error.into()),
            }
            if until <= Instant::now() {
                return Ok(AnswerOutcome::HandedOn);
            }
            tokio::select! {
                biased;
                () = self.core.closing.cancelled() => return Err(Refusal::ShuttingDown),
                () = tokio::time::sleep(LOOK_FOR_REPLY) => {}
            }
        }
    }

    /// Lets the node of an agent end the process that is idle between two turns.
    pub(crate) async fn dismiss_elsewhere(
        &self,
        agent: &Agent,
        home: NodeId,
        deadline: Instant,
    ) -> Result<(), Refusal> {
        if self.core.is_home_lost(agent) || agent.is_unclaimed() {
            // Only a node that has it can end its processes. A lost one does so when it is back.
            return Ok(());
        }
        self.send_letter(home, agent, LetterContent::Dismiss, deadline).await?;
        Ok(())
    }

    /// Puts a letter into the inbox of another node. Sent again, it is there once.
    async fn send_letter(
        &self,
        to: NodeId,
        agent: &Agent,
        content: LetterContent,
        until: Instant,
    ) -> Result<LetterId, Refusal> {
        let letter = Letter { id: self.letter_id(), agent: agent.id, content };
        let mut pause = self.core.limits.saving.retry_pause;
        loop {
            match self.core.outside.inbox.put(to, letter.clone()).await {
                Ok(()) => break,
                Err(error) if error.is_transient() && Instant::now() + pause < until => {
                    pause = self.core.pause(pause).await.ok_or(Refusal::ShuttingDown)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.core.send_hint(Hint::Letter(to));
        Ok(letter.id)
    }

    fn letter_id(&self) -> LetterId {
        let mut id = [0; 16];
        let random = &self.core.outside.random;
        id[..10].copy_from_slice(&random.bytes());
        id[10..].copy_from_slice(&random.bytes()[..6]);
        LetterId(id)
    }

    /// Reads this node's letters, and carries each out in a task of its own: an answer may wait for its agent.
    pub(super) async fn look_at_letters(&self) -> Result<(), StoreError> {
        let underway = self.core.letters.all();
        let Some(room) = LETTERS.checked_sub(underway.len()).filter(|room| 0 < *room) else { return Ok(()) };
        for letter in self.core.outside.inbox.letters(underway, room).await? {
            let Some(begun) = self.core.letters.begin(letter.id) else { continue };
            let service = self.clone();
            let work = async move {
                let id = letter.id;
                let reply = service.reply_to(letter).await;
                if reply.is_some() {
                    Counters::add(&service.core.counters.letters, 1);
                }
                if let Some(reply) = reply {
                    service.send_reply(id, reply).await;
                }
                drop(begun);
            };
            self.core.tracker.spawn_on(work, &self.core.runtime);
        }
        Ok(())
    }

    /// Retries while the store fails. The letter stays underway meanwhile: carried out again, it would find its request
    /// settled by itself.
    async fn send_reply(&self, id: LetterId, reply: LetterReply) {
        let mut pause = self.core.limits.saving.retry_pause;
        while let Err(error) = self.core.outside.inbox.reply(id, reply.clone()).await {
            let longer = if error.is_transient() { self.core.pause(pause).await } else { None };
            let Some(longer) = longer else {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    "cannot reply to another node; the client learns the outcome from the journal"
                );
                return;
            };
            pause = longer;
        }
    }

    /// Does what a letter asks for. `None` if that is to be tried again.
    async fn reply_to(&self, letter: Letter) -> Option<LetterReply> {
        let answer = match letter.content {
            LetterContent::Answer(_) if is_planted(Bug::AnswerLostBetweenNodes) => {
                return Some(LetterReply::Settled);
            }
            LetterContent::Answer(answer) => answer,
            LetterContent::Dismiss => {
                match self.get(letter.agent).await {
                    Ok(agent) => self.core.outside.dismiss(&agent).await,
                    Err(Refusal::Store(error)) if error.is_transient() => return None,
                    Err(_) => {}
                }
                return Some(LetterReply::Settled);
            }
        };
        Some(match self.answer(letter.agent, answer).await {
            Ok(AnswerOutcome::Settled) => LetterReply::Settled,
            Ok(AnswerOutcome::HandedOn) => LetterReply::HandedOn,
            Err(Refusal::RequestSettled(_)) => LetterReply::AlreadySettled,
            Err(Refusal::OptionUnknown { known }) => LetterReply::NoSuchOption { known },
            Err(Refusal::ReplyNotAccepted(fault)) => LetterReply::NotAccepted(fault),
            Err(Refusal::RequestUnknown(_) | Refusal::NotFound(_)) => LetterReply::Unknown,
            Err(Refusal::ShuttingDown) => return None,
            Err(Refusal::Store(error)) if error.is_transient() => return None,
            Err(_) => LetterReply::NotDelivered,
        })
    }
}

fn outcome(reply: LetterReply, request_id: String) -> Result<AnswerOutcome, Refusal> {
    match reply {
        LetterReply::Settled => Ok(AnswerOutcome::Settled),
        LetterReply::HandedOn => Ok(AnswerOutcome::HandedOn),
        LetterReply::NotDelivered => Err(Refusal::AnswerNotDelivered),
        LetterReply::AlreadySettled => Err(Refusal::RequestSettled(request_id)),
        LetterReply::Unknown => Err(Refusal::RequestUnknown(request_id)),
        LetterReply::NoSuchOption { known } => Err(Refusal::OptionUnknown { known }),
        LetterReply::NotAccepted(fault) => Err(Refusal::ReplyNotAccepted(fault)),
    }
}
