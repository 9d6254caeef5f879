//! Replays an agent's history as a new agent, and decides which part of a history may be copied.

use tokenrail_domain::{Agent, AgentId, AgentStatus, Copied, Replay, Sequence, Timestamp, Turn, TurnState};
use tokenrail_ports::{Created, StoreError};

use crate::error::Refusal;
use crate::service::AgentService;

impl AgentService {
    /// The agent as of the end of its last ended turn. This part is complete and never changes, whatever runs or
    /// waits now.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Active`] if none of its turns has ended, [`Refusal::Store`].
    pub async fn ended(&self, id: AgentId) -> Result<Agent, Refusal> {
        let agent = self.get(id).await?;
        let open = self.core.outside.agents.open_turns(id).await?;
        let Some(first_open) = open.iter().map(|turn| turn.number).min() else {
            return if agent.status.is_active() { Err(Refusal::Active) } else { Ok(agent) };
        };
        let last = first_open.before();
        match self.turn(id, last).await? {
            Some(Turn { state: TurnState::Ended(outcome), last_sequence: Some(head), .. }) => {
                Ok(Agent { status: AgentStatus::from(outcome), turn: last, queued: 0, head, ..agent })
            }
            _ => Err(Refusal::Active),
        }
    }

    /// Replays an agent up to the end of its last ended turn, with its timing, as a new agent. The sequence numbers
    /// stay the same; ids and times are new. The new agent is read-only. `speed` 1 is the original speed, 2 is twice
    /// as fast, and 0 is without any delay.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Active`], [`Refusal::TooManyLaunches`], [`Refusal::TooManyQueuedLaunches`],
    /// [`Refusal::ShuttingDown`], [`Refusal::Store`].
    pub async fn replay(&self, id: AgentId, speed: f64) -> Result<Agent, Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_replay(id, speed).await }).await
    }

    async fn do_replay(&self, id: AgentId, speed: f64) -> Result<Agent, Refusal> {
        let original = self.ended(id).await?;
        let waiting = self.admit().await?;
        let first = self.turn_at(id, Sequence(1)).await?.ok_or(Refusal::Active)?;
        let now = self.core.now();
        let new = AgentId::new(now, self.core.outside.random.bytes());
        let replay = Replay { of: id, until: original.head, speed };
        let agent = replayed(new, original, replay, &first, now);
        let Turn { number, run, prompt, images, .. } = first;
        let turn = Turn { number, run, images, ..Turn::queued(new, prompt, now) };
        match self.core.outside.agents.create(agent.clone(), turn.into(), None).await? {
            Created::New => {}
            // None of these can happen without a key and a conversation.
            Created::Again(_) | Created::ChatTaken(_) | Created::KeyReused => {
                return Err(StoreError::Conflict { head: Sequence::START }.into());
            }
        }
        self.core.tell_created(&agent, now);
        self.ensure_task(&agent);
        drop(waiting);
        Ok(agent)
    }
}

fn replayed(id: AgentId, original: Agent, replay: Replay, first: &Turn, now: Timestamp) -> Agent {
    let Agent { kind, name, prompt, model, cwd, session, metadata, options, .. } = original;
    Agent {
        name,
        prompt,
        model,
        cwd,
        session,
        turn: first.number,
        metadata,
        options,
        copy: Some(Copied::Replay(replay)),
        ..Agent::new(id, kind, now)
    }
}
