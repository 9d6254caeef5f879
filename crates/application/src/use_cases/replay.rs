//! Copies of an agent's history: what may be copied.

use tokenrail_domain::{Agent, AgentId, AgentStatus, Copied, Replay, Sequence, Timestamp, Turn, TurnState};
use tokenrail_ports::{Created, StoreError};

use crate::error::Refusal;
use crate::service::AgentService;

impl AgentService {
    /// The agent as far as its turns have ended: what is whole of it, and stays as it is, whatever runs or waits now.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Active`] where none of its turns has ended, [`Refusal::Store`].
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

    /// Plays an agent again, as far as its turns have ended, with its timing, as a new agent: same numbers, new ids and
    /// times. Nobody can talk with it. `speed` 1 is as it was, 2 twice as fast; 0 is as fast as it goes.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Active`], [`Refusal::AtCapacity`], [`Refusal::Store`].
    pub async fn replay(&self, id: AgentId, speed: f64) -> Result<Agent, Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_replay(id, speed).await }).await
    }

    async fn do_replay(&self, id: AgentId, speed: f64) -> Result<Agent, Refusal> {
        let original = self.ended(id).await?;
        let waiting = self.admit()?;
        let first = self.turn_at(id, Sequence(1)).await?.ok_or(Refusal::Active)?;
        let now = self.core.now();
        let new = AgentId::new(now, self.core.outside.random.bytes());
        let replay = Replay { of: id, until: original.head, speed };
        let agent = replayed(new, original, replay, &first, now);
        let turn = Turn { number: first.number, run: first.run, ..Turn::queued(new, first.prompt, now) };
        match self.core.outside.agents.create(agent.clone(), turn, None).await? {
            Created::New => {}
            // Without a key and a conversation, nothing can be in the way.
            Created::Again(_) | Created::ChatTaken(_) | Created::KeyReused => {
                return Err(StoreError::Conflict { head: Sequence::START }.into());
            }
        }
        self.ensure_task(&agent);
        drop(waiting);
        self.core.tell_created(&agent, now);
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
