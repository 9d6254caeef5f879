//! Agents whose processes stay idle between two turns.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokenrail_domain::{AgentId, JsonText};
use tokenrail_ports::{IAgentRun, PermissionAnswer, RunOutput, RunnerError, SpaceWait, SpoolRoom, TurnOrder};
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::run::ProcessRun;
use super::watch::RunWatcher;

/// How many times an idle process that nobody needs any more is asked to end, and the pause between.
const STOP_TRIES: u32 = 5;
const STOP_PAUSE: Duration = Duration::from_millis(200);

/// The idle processes: at most one for each agent, and at most `most` of them.
///
/// An idle process only saves the time of another start. So a restarted server does not adopt idle processes: it ends
/// them.
#[derive(Clone)]
pub(super) struct IdleProcesses {
    most: usize,
    /// How long a process may stay idle before the server ends it. It should have ended by itself earlier.
    patience: Duration,
    tasks: TaskTracker,
    agents: Arc<Mutex<Agents>>,
}

#[derive(Default)]
struct Agents {
    entries: BTreeMap<AgentId, Entry>,
    /// How many entries there have been so far.
    came: u64,
}

/// An idle process. The entry stays until its process has been taken or has ended, because two processes must not use
/// one session of the agent program at the same time.
struct Entry {
    settings: StartSettings,
    /// The number of this entry. The oldest has the smallest.
    came: u64,
    /// Takes the run back. If this is `None` or is dropped, the process is ended.
    claim: Option<oneshot::Sender<oneshot::Sender<ProcessRun>>>,
    gone: CancellationToken,
}

/// The settings that a process was started with. A turn with other settings needs another process.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StartSettings {
    model: Option<String>,
    cwd: PathBuf,
    options: Option<JsonText>,
}

impl From<&TurnOrder> for StartSettings {
    fn from(order: &TurnOrder) -> Self {
        let TurnOrder { model, cwd, options, .. } = order.clone();
        Self { model, cwd, options }
    }
}

/// A run whose process may stay idle until the next turn of its agent.
pub(super) struct ReusableRun {
    run: ProcessRun,
    idle_place: IdlePlace,
}

/// Where a process is kept until the next turn of its agent.
pub(super) struct IdlePlace {
    /// False if the process may have been started with another configuration, or was cancelled: it ends with its turn.
    pub(super) keeps: bool,
    pub(super) idle: IdleProcesses,
    pub(super) watcher: RunWatcher,
    pub(super) agent: AgentId,
    pub(super) settings: StartSettings,
}

impl ReusableRun {
    pub(super) fn new(run: ProcessRun, idle_place: IdlePlace) -> Self {
        Self { run: run.that_may_become_idle(), idle_place }
    }

    /// Leaves a turn that has ended. An idle process is kept for the next turn; otherwise the run folder is removed.
    async fn keep_or_remove(&mut self) -> io::Result<()> {
        let Self { run, idle_place } = self;
        let Some(idle_at) = run.idle_at() else { return run.remove().await };
        let next = match run.reopen(idle_place.watcher.clone()).await {
            Ok(next) => next.beginning_at(run.begins() + idle_at, 0),
            Err(error) => {
                // Nothing can watch the process, so it is not kept.
                run.dismiss().await;
                return Err(error);
            }
        };
        let is_worth_it = idle_place.keeps && !next.keeps_spool() && !next.fills_disk();
        idle_place.idle.keep(idle_place.agent, idle_place.settings.clone(), next, is_worth_it);
        Ok(())
    }
}

#[async_trait]
impl IAgentRun for ReusableRun {
    async fn next(&mut self) -> Result<RunOutput, RunnerError> {
        self.run.next().await
    }

    async fn cancel(&mut self) -> Result<(), RunnerError> {
        // Even if the cancel fails, the process must not get another turn.
        self.idle_place.keeps = false;
        self.run.cancel().await
    }

    async fn answer(&mut self, answer: &PermissionAnswer) -> Result<(), RunnerError> {
        self.run.answer(answer).await
    }

    async fn free_spool(&mut self, wait: SpaceWait) -> Result<SpoolRoom, RunnerError> {
        self.run.free_spool(wait).await
    }

    async fn leave(&mut self) {
        if let Err(error) = self.keep_or_remove().await {
            self.run.warn_of_folder(&error);
        }
    }
}

impl IdleProcesses {
    pub(super) fn new(most: usize, patience: Duration) -> Self {
        Self { most, patience, tasks: TaskTracker::new(), agents: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Agents> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an idle process until it is taken or ends by itself. If it is not worth it, it is ended. If there are too
    /// many, the one that has been idle longest is ended.
    pub(super) fn keep(&self, agent: AgentId, settings: StartSettings, run: ProcessRun, is_worth_it: bool) {
        let (claim, claimed) = oneshot::channel();
        let gone = CancellationToken::new();
        let mut agents = self.lock();
        agents.came += 1;
        let came = agents.came;
        let (idle, is_gone) = (self.clone(), gone.clone().drop_guard());
        self.tasks.spawn(async move {
            IdleTask(Some(run)).wait(claimed, idle.patience).await;
            idle.forget(agent, came);
            drop(is_gone);
        });
        let claim = Some(claim).filter(|_| is_worth_it);
        agents.entries.insert(agent, Entry { settings, came, claim, gone });
        let waiting = agents.entries.values_mut().filter(|entry| entry.claim.is_some());
        if self.most < waiting.count() {
            let waiting = agents.entries.values_mut().filter(|entry| entry.claim.is_some());
            if let Some(oldest) = waiting.min_by_key(|entry| entry.came) {
                oldest.claim = None;
            }
        }
    }

    fn forget(&self, agent: AgentId, came: u64) {
        let mut agents = self.lock();
        if agents.entries.get(&agent).is_some_and(|entry| entry.came == came) {
            agents.entries.remove(&agent);
        }
    }

    /// Takes the agent's idle process, if it fits the turn. A process that does not fit, or that is ending, has ended
    /// when this returns.
    pub(super) async fn take(&self, order: &TurnOrder) -> Option<ProcessRun> {
        let (claim, gone) = {
            let mut agents = self.lock();
            let entry = agents.entries.get_mut(&order.agent)?;
            let fits = entry.settings == StartSettings::from(order);
            (entry.claim.take().filter(|_| fits), entry.gone.clone())
        };
        if let Some(claim) = claim {
            let (give, given) = oneshot::channel();
            if claim.send(give).is_ok()
                && let Ok(run) = given.await
            {
                return Some(run);
            }
        }
        // Either it does not fit and is being ended, or it ended just now.
        gone.cancelled().await;
        None
    }

    /// Ends the agent's idle process, if it has one.
    pub(super) async fn dismiss(&self, agent: AgentId) {
        let gone = self.lock().entries.get_mut(&agent).map(Entry::end);
        if let Some(gone) = gone {
            gone.cancelled().await;
        }
    }

    pub(super) async fn dismiss_all(&self) {
        let all: Vec<_> = self.lock().entries.values_mut().map(Entry::end).collect();
        for gone in all {
            gone.cancelled().await;
        }
    }
}

impl ProcessRun {
    /// Ends an idle process, and removes its run folder.
    pub(super) async fn dismiss(&mut self) {
        let folder = self.folder().path().display().to_string();
        if let Err(error) = self.stop_and_remove().await {
            let error = &error as &dyn std::error::Error;
            tracing::error!(folder, error, "cannot terminate an idle process");
        }
    }

    async fn stop_and_remove(&mut self) -> Result<(), RunnerError> {
        let mut tries = 1;
        while let Err(error) = self.cancel().await {
            if STOP_TRIES <= tries {
                return Err(error);
            }
            tries += 1;
            sleep(STOP_PAUSE).await;
        }
        while !matches!(self.next().await?, RunOutput::Ended(_)) {}
        Ok(self.remove().await?)
    }
}

impl Entry {
    /// Ends the process. The returned token is cancelled once it has ended.
    fn end(&mut self) -> CancellationToken {
        self.claim = None;
        self.gone.clone()
    }
}

/// The task of an idle process. If the task is dropped, as when the server stops, the process is asked to end.
struct IdleTask(Option<ProcessRun>);

impl IdleTask {
    async fn wait(mut self, mut claimed: oneshot::Receiver<oneshot::Sender<ProcessRun>>, patience: Duration) {
        let Some(run) = &mut self.0 else { return };
        let until = sleep(patience);
        tokio::pin!(until);
        let claimed = loop {
            tokio::select! {
                biased;
                claimed = &mut claimed => break claimed.ok(),
                () = &mut until => break None,
                // Unsolicited output is discarded, and must not fill the disk.
                output = run.next() => match output {
                    Ok(RunOutput::Lines(_) | RunOutput::Progress { .. }) if !run.fills_disk() => {}
                    _ => break None,
                },
            }
        };
        self.0 = match (self.0.take(), claimed) {
            (Some(run), Some(give)) => give.send(run).err(),
            (run, _) => run,
        };
        if let Some(run) = &mut self.0 {
            run.dismiss().await;
        }
        self.0 = None;
    }
}

impl Drop for IdleTask {
    fn drop(&mut self) {
        if let Some(run) = &self.0 {
            run.ask_to_stop_now();
        }
    }
}
