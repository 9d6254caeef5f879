//! Launches a new agent with its first turn.
//!
//! The steps, in order. The files of steps 5 and 6 are in the runner crate:
//!
//! 1. `rest/agents.rs` of the presentation crate (`launch`) reads the request (`rest/prompt.rs`), and calls this file.
//! 2. `launch` calls `launch_once` and that `launch_unless_known`: both return the agent that the command's key has
//!    launched before, if there is one. Otherwise, `launch_new` chooses the node (`nodes/placement.rs`), checks the
//!    images (`images.rs`), admits the agent (`children.rs`; `admission.rs` of this crate), makes its folder if it
//!    runs here, and saves it with its first turn, which is queued. The client gets 201 after the next step.
//! 3. `announce.rs` (`tell_created`) tells clients of it. `tasks.rs` (`ensure_task`) spawns its task. If it runs at
//!    another node, that node gets a hint, and `nodes/errands.rs` (`carry_out`) spawns the task there. If any node may
//!    run it, one with a free slot takes it (`nodes/launches.rs`, `claim_launches`).
//! 4. `agent_task.rs` waits for a slot (`slot`), saves the start of the turn with the user message, which is the
//!    agent's first event (`run_new_turn`), and calls the runner (`start_run`). Then `pump` carries the run into the
//!    journal (`pump.rs`).
//! 5. For a process: `process/runner.rs` (`start`) writes the run folder (`prepare`), and starts a supervisor
//!    (`process/start_supervisor.rs`). A later turn may use the process of the turn before it
//!    (`process/idle_processes.rs`).
//! 6. The supervisor (`supervisor/command.rs`, `supervisor/supervise.rs`) starts the exec stage (`supervisor/exec.rs`),
//!    which becomes the agent program. If the agent speaks a protocol, it becomes the `converse` process instead
//!    (`converse.rs`), which starts the program (`converse/program.rs`, `converse/exec.rs`) and sends it the prompt
//!    (`converse/exchange.rs`).
//!
//! "The path of one token" in `docs/explanation/architecture.md` continues from here.

use tokenrail_domain::{Agent, AgentId, ImageFile, JsonText, SessionId, Timestamp, Turn};
use tokenrail_ports::{Created, Idempotency, KeyLife, NewTurn, StoreError};
use tokio::time::Instant;

use super::idempotency::CommandKey;
use super::nodes::{LaunchNeeds, Placement};
use crate::error::Refusal;
use crate::service::AgentService;
use crate::waiting::Waiting;

/// The scope of the keys of launches.
const LAUNCH: &str = "launch";

/// A client's request to launch an agent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Launch {
    /// The agent type; `None` for the configured default.
    pub kind: Option<String>,
    pub prompt: String,
    /// The images of the prompt.
    pub images: Vec<ImageFile>,
    pub model: Option<String>,
    pub cwd: Option<String>,
    /// The name or the number of the node that runs the agent. `None`: this one, or on a shared store any that can.
    pub node: Option<String>,
    /// A session of the agent program to resume.
    pub session: Option<SessionId>,
    pub name: Option<String>,
    /// The client's own id of the conversation: see [`AgentService::converse`].
    pub chat: Option<String>,
    /// The agent that launches this one. If this server knows it, its limits apply, and it is saved as the parent
    /// ([`Agent::launched_by`]).
    pub parent: Option<AgentId>,
    /// The client's own notes: a JSON object.
    pub metadata: Option<JsonText>,
    /// Options for the runner: a JSON object.
    pub options: Option<JsonText>,
    pub cancel_on_disconnect: bool,
    pub idempotency: Option<CommandKey>,
}

/// The outcome of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchOutcome {
    pub agent: Agent,
    /// Nothing was launched: the agent is the one that the idempotency key launched, or that the conversation has.
    pub again: bool,
}

impl AgentService {
    /// Saves a new agent and starts it.
    ///
    /// # Errors
    /// [`Refusal`] if it was not launched; nothing is left of it then. With [`StoreError::OutcomeUnknown`] it may have
    /// been saved: then it runs.
    pub async fn launch(&self, launch: Launch) -> Result<LaunchOutcome, Refusal> {
        self.launch_once(launch, KeyLife::UntilForgotten).await
    }

    /// Launches an agent, unless the key has launched one already.
    pub(super) async fn launch_once(&self, launch: Launch, life: KeyLife) -> Result<LaunchOutcome, Refusal> {
        let service = self.clone();
        self.undisturbed(async move {
            let launched = match &launch.idempotency {
                Some(key) => service.launched(key, life).await?,
                None => None,
            };
            match launched {
                Some(outcome) => Ok(outcome),
                None => service.launch_unless_known(launch, life).await,
            }
        })
        .await
    }

    /// Launches an agent, unless the same request has launched it meanwhile and taken the last slot.
    async fn launch_unless_known(&self, launch: Launch, life: KeyLife) -> Result<LaunchOutcome, Refusal> {
        let key = launch.idempotency.clone();
        let refusal = match self.launch_new(launch, life).await {
            Err(refusal) if refusal.is_for_want_of_room() => refusal,
            launched => return launched,
        };
        let launched = match &key {
            Some(key) => self.launched(key, life).await?,
            None => None,
        };
        launched.ok_or(refusal)
    }

    async fn launch_new(&self, mut launch: Launch, life: KeyLife) -> Result<LaunchOutcome, Refusal> {
        let kind = self.type_name(launch.kind.as_deref())?;
        let is_bound = launch.cwd.is_some() || launch.session.is_some();
        let place = self.placement(LaunchNeeds { kind: &kind, node: launch.node.as_deref(), is_bound })?;
        self.check_images(&kind, &launch.images)?;
        // First, so that the refused launches of an agent take none of those that all clients have per minute.
        let child = self.admit_child(&launch).await?;
        let waiting = self.admit_at(place).await?;
        let now = self.core.now();
        let id = AgentId::new(now, self.core.outside.random.bytes());
        // Before the folder is made, so that nothing is left if this fails.
        let key = match launch.idempotency.clone() {
            Some(key) => Some(self.idempotency(LAUNCH.to_owned(), key, life).await?),
            None => None,
        };
        let cwd = self.folder_at(place, id, &kind, launch.cwd.clone()).await?;
        if let Some(child) = child.as_ref().filter(|_| launch.cwd.is_some()) {
            child.check_folder(&self.core, &cwd)?;
        }
        let images = std::mem::take(&mut launch.images);
        let launched_by = child.as_ref().map(|child| child.launched_by);
        let agent = Agent { home: place.home(), launched_by, ..new_agent(id, kind, launch, cwd, now) };
        let turn = NewTurn::new(Turn::queued(id, agent.prompt.clone(), now), images);

        let created = match self.save_new(agent.clone(), turn, key).await {
            // The store has tried it more than once, and the first time was saved.
            Ok(Created::Again(saved) | Created::ChatTaken(saved)) if saved == id => Ok(Created::New),
            created => created,
        };
        // If the agent was not created, its folder must not remain.
        let must_remove_folder = match &created {
            Ok(created) => *created != Created::New,
            Err(error) => !may_exist(error),
        };
        if must_remove_folder {
            self.remove_folders(id).await;
        }
        match created {
            Ok(Created::New) => {}
            Ok(Created::Again(id) | Created::ChatTaken(id)) => return self.launched_again(id).await,
            Ok(Created::KeyReused) => return Err(Refusal::KeyReused),
            Err(error) => return Err(self.refused_or_unknown(&agent, error)),
        }
        // Before its task tells what it does.
        self.core.tell_created(&agent, now);
        self.ensure_task(&agent);
        // From here on, the agent's task counts as waiting, and the agent as a child.
        drop((waiting, child));
        Ok(LaunchOutcome { agent, again: false })
    }

    /// Tries again while the store is busy, like [`AgentService::send`].
    async fn save_new(
        &self,
        agent: Agent,
        turn: NewTurn,
        key: Option<Idempotency>,
    ) -> Result<Created, StoreError> {
        let core = &self.core;
        let deadline = core.command_deadline();
        let mut pause = core.limits.saving.retry_pause;
        loop {
            // The next step: `create` in `store/ports.rs` of `sqlite/` or `postgres/`, in the persistence crate.
            match core.outside.agents.create(agent.clone(), turn.clone(), key.clone()).await {
                Err(StoreError::Busy) if Instant::now() + pause < deadline => {
                    pause = core.pause(pause).await.ok_or(StoreError::Busy)?;
                }
                created => return created,
            }
        }
    }

    /// Admits one more agent. The returned value counts it as waiting for a slot of this node.
    async fn admit_at(&self, place: Placement) -> Result<Option<Waiting>, Refusal> {
        match place {
            Placement::Here => self.admit().await.map(Some),
            Placement::At(_) | Placement::Anywhere => self.admit_elsewhere().await.map(|()| None),
        }
    }

    /// The folder of a new agent. Empty if another node runs it: that node makes the folder before the first turn.
    async fn folder_at(
        &self,
        place: Placement,
        id: AgentId,
        kind: &str,
        asked: Option<String>,
    ) -> Result<String, Refusal> {
        let Placement::Here = place else { return Ok(String::new()) };
        let config = self.core.outside.types.get(kind).ok_or_else(|| self.core.outside.unknown_type(kind))?;
        let cwd = config.workspace.folder(id, asked).await?;
        Ok(cwd.to_string_lossy().into_owned())
    }

    /// The outcome of an earlier launch with this key. `None` if the key is not known.
    pub(super) async fn launched(
        &self,
        key: &CommandKey,
        life: KeyLife,
    ) -> Result<Option<LaunchOutcome>, Refusal> {
        match self.recall(LAUNCH.to_owned(), key, life).await? {
            Some(recalled) => Ok(Some(self.launched_again(recalled.agent).await?)),
            None => Ok(None),
        }
    }

    /// The outcome of a repeated launch.
    async fn launched_again(&self, id: AgentId) -> Result<LaunchOutcome, Refusal> {
        let agent = self.get(id).await?;
        self.ensure_task_if_saved(&agent);
        Ok(LaunchOutcome { agent, again: true })
    }
}

/// Whether there may be an agent with the new id, although its creation has failed: its folder must remain.
pub(super) fn may_exist(error: &StoreError) -> bool {
    matches!(error, StoreError::OutcomeUnknown(_) | StoreError::Conflict { .. })
}

pub(super) fn new_agent(id: AgentId, kind: String, launch: Launch, cwd: String, now: Timestamp) -> Agent {
    let Launch {
        kind: _,
        prompt,
        images: _,
        model,
        cwd: _,
        node: _,
        session,
        name,
        chat,
        parent: _,
        metadata,
        options,
        cancel_on_disconnect,
        idempotency: _,
    } = launch;
    Agent {
        name,
        chat,
        prompt,
        model,
        cwd,
        session: session.map(SessionId::into_string),
        metadata,
        options,
        cancel_on_disconnect,
        ..Agent::new(id, kind, now)
    }
}
