//! Imports the history of an agent, piece by piece. Each piece is checked when it arrives. The agent is shown when
//! all pieces are there.

mod check;

use std::sync::Arc;

use tokenrail_domain::{
    Agent, AgentId, AgentStatus, Copied, Event, EventBody, JsonText, SessionId, Timestamp, Turn, TurnNumber,
};
use tokenrail_ports::{NewTurn, StoreError};
use tokio::sync::OwnedSemaphorePermit;

use self::check::Check;
use crate::core::Core;
use crate::error::Refusal;
use crate::service::AgentService;

/// The agent that a file describes.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    pub kind: String,
    pub name: Option<String>,
    pub prompt: String,
    pub model: Option<String>,
    pub cwd: String,
    pub session: Option<SessionId>,
    pub created_at: Timestamp,
    /// A JSON object.
    pub metadata: Option<JsonText>,
    /// A JSON object.
    pub options: Option<JsonText>,
}

/// Why a history was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("{place}: {detail}")]
    Invalid {
        /// The place in the file, as a JSON pointer: `/events/16`.
        place: String,
        detail: String,
    },
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl ImportError {
    fn invalid(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Invalid { place: place.into(), detail: detail.into() }
    }
}

impl From<StoreError> for ImportError {
    fn from(error: StoreError) -> Self {
        match error {
            // `Check` has found all other faults, so only a turn or a message that occurs twice remains.
            StoreError::Conflict { head } => {
                Self::invalid(format!("/events/{head}"), "the file contains a turn or a message twice")
            }
            StoreError::Corrupt(what) => Self::invalid("/events", what),
            error => Self::Refused(error.into()),
        }
    }
}

/// An import in progress. If it is dropped before [`Import::finish`], nothing of it is left.
pub struct Import {
    core: Arc<Core>,
    agent: Agent,
    check: Check,
    shown: bool,
    _place: OwnedSemaphorePermit,
}

impl AgentService {
    /// Begins to import the history of an agent that has ended. The new agent gets an id of its own and is read-only.
    /// The caller adds its turns first, then its events.
    ///
    /// # Errors
    /// [`ImportError::Refused`].
    pub async fn import(&self, imported: Imported) -> Result<Import, ImportError> {
        let core = Arc::clone(&self.core);
        if core.closing.is_cancelled() {
            return Err(Refusal::ShuttingDown.into());
        }
        let place = Arc::clone(&core.imports).try_acquire_owned().map_err(|_| Refusal::TooManyImports)?;
        let now = core.now();
        let id = AgentId::new(now, core.outside.random.bytes());
        let agent = unfinished(id, imported, now);
        core.outside.archive.begin_import(agent.clone()).await.map_err(Refusal::from)?;
        Ok(Import { core, agent, check: Check::default(), shown: false, _place: place })
    }
}

impl Import {
    /// Adds turns with their images, in any order.
    ///
    /// # Errors
    /// [`ImportError`]: the import cannot continue then.
    pub async fn turns(&mut self, turns: Vec<NewTurn>) -> Result<(), ImportError> {
        let id = self.agent.id;
        let of_agent = |new: NewTurn| {
            let (turn, images) = new.into_parts();
            NewTurn::with_lost(Turn { agent: id, ..turn }, images)
        };
        let turns: Vec<_> = turns.into_iter().map(of_agent).collect();
        for new in &turns {
            self.check.turn(new.turn())?;
        }
        let saved = self.core.outside.archive.import_turns(id, turns).await;
        saved.map_err(|error| match error {
            StoreError::Conflict { .. } => ImportError::invalid("/turns", "duplicate turn number"),
            error => error.into(),
        })
    }

    /// Adds the next events.
    ///
    /// # Errors
    /// [`ImportError`]: the import cannot continue then.
    pub async fn events(&mut self, events: Vec<Event>) -> Result<(), ImportError> {
        for event in &events {
            self.check.event(event)?;
            self.agent.head = event.sequence;
            self.agent.turn = event.turn;
            self.agent.updated_at = event.at;
            if let EventBody::TurnResult(result) = &event.body {
                self.agent.status = AgentStatus::from(result.outcome);
                self.agent.ended_at = Some(event.at);
                self.agent.error.clone_from(&result.error);
                self.agent.usage.clone_from(&result.usage);
                self.agent.cost_usd = result.cost_usd.or(self.agent.cost_usd);
            }
        }
        for of_turn in events.chunk_by(|one, other| one.turn == other.turn) {
            self.core.outside.archive.import_events(self.agent.id, of_turn.into()).await?;
        }
        Ok(())
    }

    /// Completes the import, and shows the agent.
    ///
    /// # Errors
    /// [`ImportError`]: nothing is left of the import then.
    pub async fn finish(mut self) -> Result<Agent, ImportError> {
        self.check.finish()?;
        self.core.outside.archive.finish_import(self.agent.clone()).await?;
        self.shown = true;
        let (agent, at) = (self.agent.clone(), self.core.now());
        self.core.compaction.notify_one();
        self.core.tell_created(&agent, at);
        Ok(agent)
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        if self.shown {
            return;
        }
        let (core, id) = (Arc::clone(&self.core), self.agent.id);
        let discard = async move {
            if let Err(error) = core.outside.archive.discard_import(id).await {
                let error = &error as &dyn std::error::Error;
                tracing::error!(agent = %id, error, "cannot discard an incomplete import; it is removed at the next start");
            }
        };
        self.core.tracker.spawn_on(discard, &self.core.runtime);
    }
}

fn unfinished(id: AgentId, imported: Imported, now: Timestamp) -> Agent {
    let Imported { kind, name, prompt, model, cwd, session, created_at, metadata, options } = imported;
    Agent {
        name,
        status: AgentStatus::Interrupted,
        prompt,
        model,
        cwd,
        session: session.map(SessionId::into_string),
        turn: TurnNumber::default(),
        queued: 0,
        created_at,
        metadata,
        options,
        copy: Some(Copied::File),
        ..Agent::new(id, kind, now)
    }
}
