//! Agents whose processes wait between two turns.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokenrail_domain::{AgentId, JsonText};
use tokenrail_ports::{IAgentRun, RunOutput, TurnOrder};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use super::run::ProcessRun;

/// The processes that wait: one for each agent at most, and `most` of them.
///
/// They are worth no more than the time that another start would take: the next life of the server ends those that it
/// finds.
#[derive(Clone)]
pub(super) struct Resting {
    most: usize,
    tasks: TaskTracker,
    agents: Arc<Mutex<Agents>>,
}

#[derive(Default)]
struct Agents {
    entries: BTreeMap<AgentId, Entry>,
    /// How many have come so far.
    came: u64,
}

struct Entry {
    kind: Kind,
    /// How many had come before.
    came: u64,
    /// Takes the run back. When it is dropped, the process is ended.
    claim: oneshot::Sender<oneshot::Sender<ProcessRun>>,
    waiting: JoinHandle<()>,
}

/// What a process was started with: a turn that wants something else needs another process.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kind {
    model: Option<String>,
    cwd: PathBuf,
    options: Option<JsonText>,
}

impl From<&TurnOrder> for Kind {
    fn from(order: &TurnOrder) -> Self {
        let TurnOrder { model, cwd, options, .. } = order.clone();
        Self { model, cwd, options }
    }
}

impl Resting {
    pub(super) fn new(most: usize) -> Self {
        Self { most, tasks: TaskTracker::new(), agents: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Agents> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a run that rests until it is taken, or ends by itself. Where there are too many, the one that has waited
    /// longest is ended.
    pub(super) fn keep(&self, agent: AgentId, kind: Kind, run: ProcessRun) {
        let (claim, claimed) = oneshot::channel();
        let mut agents = self.lock();
        agents.came += 1;
        let came = agents.came;
        let resting = self.clone();
        let waiting = self.tasks.spawn(async move {
            Rester(Some(run)).wait(claimed).await;
            resting.forget(agent, came);
        });
        // What is dropped here is ended.
        agents.entries.insert(agent, Entry { kind, came, claim, waiting });
        if self.most < agents.entries.len() {
            let oldest = agents.entries.iter().min_by_key(|(_, entry)| entry.came).map(|(agent, _)| *agent);
            oldest.and_then(|oldest| agents.entries.remove(&oldest));
        }
    }

    /// Ends a run that is not worth being kept.
    pub(super) fn end(&self, run: ProcessRun) {
        self.tasks.spawn(Rester(Some(run)).end());
    }

    fn forget(&self, agent: AgentId, came: u64) {
        let mut agents = self.lock();
        if agents.entries.get(&agent).is_some_and(|entry| entry.came == came) {
            agents.entries.remove(&agent);
        }
    }

    fn remove(&self, agent: AgentId) -> Option<Entry> {
        self.lock().entries.remove(&agent)
    }

    /// The run that waits for such a turn of its agent. One that waits for another kind is ended before this returns:
    /// two processes in one session would not know of each other.
    pub(super) async fn take(&self, order: &TurnOrder) -> Option<ProcessRun> {
        let entry = self.remove(order.agent)?;
        if entry.kind != Kind::from(order) {
            entry.end().await;
            return None;
        }
        let (give, given) = oneshot::channel();
        // It may have ended just now.
        entry.claim.send(give).ok()?;
        given.await.ok()
    }

    /// Ends the process that rests for an agent, where there is one.
    pub(super) async fn dismiss(&self, agent: AgentId) {
        if let Some(entry) = self.remove(agent) {
            entry.end().await;
        }
    }
}

impl Entry {
    async fn end(self) {
        drop(self.claim);
        // What has gone wrong there has been told there.
        let _ = self.waiting.await;
    }
}

/// A run that waits. Where its task is dropped, as the server goes down, its process is asked to end.
struct Rester(Option<ProcessRun>);

impl Rester {
    async fn wait(mut self, mut claimed: oneshot::Receiver<oneshot::Sender<ProcessRun>>) {
        let Some(run) = &mut self.0 else { return };
        let claimed = loop {
            tokio::select! {
                biased;
                claimed = &mut claimed => break claimed.ok(),
                output = run.next() => if let Ok(RunOutput::Ended(_)) | Err(_) = output {
                    // It has waited long enough.
                    break None;
                },
            }
        };
        self.0 = match (self.0.take(), claimed) {
            (Some(run), Some(give)) => give.send(run).err(),
            (run, _) => run,
        };
        self.end().await;
    }

    async fn end(mut self) {
        if let Some(run) = &mut self.0 {
            run.end().await;
        }
        self.0 = None;
    }
}

impl Drop for Rester {
    fn drop(&mut self) {
        if let Some(run) = &self.0 {
            run.ask_to_stop_now();
        }
    }
}
