//! Starts process agents, and adopts those that were started before the server was restarted.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokenrail_domain::{AgentId, SessionId};
use tokenrail_ports::{Adoption, IAgentRun, IAgentRunner, Probe, RunnerError, TurnOrder};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::idle_processes::{IdlePlace, IdleProcesses, ReusableRun};
use super::run::ProcessRun;
use super::start_supervisor::{Introduction, introduced, start_supervisor};
use super::watch::{FolderWatch, RunWatcher};
use super::{ProcessConfig, ProcessLimits, program};
use crate::run_folder::{
    ConverseLimits, ExecOrder, FurtherRun, ImageRef, MARKER, Opening, RunFolder, SupervisorRecord, blocking,
    is_argument, run_of,
};

/// A timer cannot represent much longer times.
const LONGEST_IDLE: Duration = Duration::from_hours(10 * 365 * 24);

/// If the program did not print a version, the next probe after this time asks again.
const ASK_AGAIN: Duration = Duration::from_mins(10);

/// Runs an agent that is a program on this machine, under a supervisor that outlives the server.
///
/// A cancel sends the agent's process group an interrupt (if configured), then SIGTERM. The group of an agent that
/// speaks a protocol is its `converse` process, which cancels the turn in that protocol. After
/// [`cancel_grace_ms`](crate::ProcessLimits::cancel_grace_ms) every descendant gets SIGKILL until none is left, or
/// until [`kill_grace_ms`](crate::ProcessLimits::kill_grace_ms) is over.
///
/// If a line was too long to be returned whole, the spool is kept when the run is left: as the only file in
/// `<run folder>.kept`, which stays until its agent is forgotten.
pub struct ProcessRunner {
    config: Arc<ProcessConfig>,
    watcher: RunWatcher,
    /// Waits for the supervisors, so that they do not stay as zombies. The server does not wait for this tracker when
    /// it stops, because supervisors outlive it.
    supervisors: TaskTracker,
    idle: IdleProcesses,
    probed: Mutex<Option<(Probe, Instant)>>,
}

impl ProcessRunner {
    /// Creates the folder that contains the run folders. All runners of the server share the watcher.
    pub fn new(config: ProcessConfig, watcher: RunWatcher) -> Result<Self, RunnerError> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&config.runs)?;
        Ok(Self {
            idle: IdleProcesses::new(config.limits.idle_agents, idle_patience(&config)),
            config: Arc::new(config),
            watcher,
            supervisors: TaskTracker::new(),
            probed: Mutex::default(),
        })
    }

    /// Creates the run folder, and watches it.
    async fn prepare(&self, order: &TurnOrder) -> Result<(RunFolder, FolderWatch), RunnerError> {
        let folder = RunFolder::of(&self.config.runs, order);
        let (config, watcher, order) = (Arc::clone(&self.config), self.watcher.clone(), order.clone());
        let prepared = blocking(move || {
            let exec = match exec_order(&config, &order) {
                Ok(exec) => exec,
                Err(error) => return Ok(Err(error)),
            };
            folder.create(&exec, &stdin(&config, &order)?, (order.run.0.into(), &order.images))?;
            match watcher.watch(folder.path()) {
                Ok(watch) => Ok(Ok((folder, watch))),
                Err(error) => {
                    folder.remove()?;
                    Err(error)
                }
            }
        });
        prepared.await?
    }

    fn open(
        &self,
        folder: RunFolder,
        watch: FolderWatch,
        supervisor: Option<SupervisorRecord>,
    ) -> Result<ProcessRun, RunnerError> {
        Ok(ProcessRun::open(folder, self.config.limits, watch, supervisor)?)
    }

    /// Where the process of this turn is kept while it is idle. `None` if it ends with its turn.
    fn idle_place(&self, order: &TurnOrder) -> Option<IdlePlace> {
        if idle_ms(&self.config) == 0 {
            return None;
        }
        let (idle, watcher) = (self.idle.clone(), self.watcher.clone());
        Some(IdlePlace { keeps: true, idle, watcher, agent: order.agent, settings: order.into() })
    }

    /// The place of a process that was started before the server was restarted, perhaps with another configuration. It
    /// may become idle even if the configuration no longer allows that. Then it is ended.
    fn idle_place_of_adopted(&self, order: &TurnOrder) -> IdlePlace {
        let (idle, watcher) = (self.idle.clone(), self.watcher.clone());
        IdlePlace { keeps: false, idle, watcher, agent: order.agent, settings: order.into() }
    }

    /// Adopts a turn that runs in the process of an earlier turn.
    async fn adopt_further(
        &self,
        order: &TurnOrder,
        folder: RunFolder,
        further: FurtherRun,
        committed: u64,
    ) -> Result<Adoption, RunnerError> {
        let (found, watcher) = (folder.clone(), self.watcher.clone());
        let watch = blocking(move || watcher.watch(found.path())).await?;
        let supervisor = self.known_supervisor(&folder, &watch).await?;
        let run =
            self.open(folder, watch, supervisor)?.beginning_at(further.behind, 0).with_committed(committed);
        Ok(match run.when_asked(&further).await? {
            Some(run) => Adoption::Run(reusable(run, Some(self.idle_place_of_adopted(order)))),
            None => Adoption::Gone,
        })
    }
}

#[async_trait]
impl IAgentRunner for ProcessRunner {
    async fn start(&self, order: &TurnOrder) -> Result<Box<dyn IAgentRun>, RunnerError> {
        if let Some(run) = self.idle.take(order).await
            && let Some(run) = run.ask(order.run, order.prompt.clone(), order.images.clone()).await?
        {
            return Ok(reusable(run, self.idle_place(order)));
        }
        let (folder, watch) = self.prepare(order).await?;
        let patience = Duration::from_millis(self.config.limits.spawn_timeout_ms);
        let started = start_supervisor(&self.config.supervisor, &folder, &watch, patience, &self.supervisors);
        match started.await {
            Ok(supervisor) => {
                let run = self.open(folder, watch, supervisor)?;
                Ok(reusable(run, self.idle_place(order)))
            }
            Err(error) => {
                // A supervisor that is only slow ends by itself without its folder.
                blocking(move || folder.remove()).await?;
                Err(error.into())
            }
        }
    }

    async fn adopt(&self, order: &TurnOrder, committed: u64) -> Result<Adoption, RunnerError> {
        let folder = RunFolder::of(&self.config.runs, order);
        let (found, watcher) = (folder.clone(), self.watcher.clone());
        let watch = blocking(move || {
            if !found.path().try_exists()? {
                return Ok(None);
            }
            Ok(Some(watcher.watch(found.path())?))
        });
        let Some(watch) = watch.await? else {
            let (config, agent, number) = (Arc::clone(&self.config), order.agent, order.run);
            return match blocking(move || run_of(&config.runs, agent, number)).await? {
                Some((folder, further)) => self.adopt_further(order, folder, further, committed).await,
                None => Ok(Adoption::Gone),
            };
        };
        let supervisor = self.known_supervisor(&folder, &watch).await?;
        // Only a program that speaks a protocol can become idle. The run folder says whether it does: the configuration
        // may be another one since.
        let fifo = folder.converse_fifo();
        let is_interactive = blocking(move || fifo.try_exists()).await?;
        let idle_place = is_interactive.then(|| self.idle_place_of_adopted(order));
        let run = self.open(folder, watch, supervisor)?.with_committed(committed);
        Ok(Adoption::Run(reusable(run, idle_place)))
    }

    async fn probe(&self) -> Probe {
        let mut probed = self.probed.lock().await;
        if let Some((probe, at)) = &*probed
            && (probe.version.is_some() || at.elapsed() < ASK_AGAIN)
        {
            return probe.clone();
        }
        let probe = program::probe(&self.config).await;
        // A problem is not cached, because it may be solved by the next probe.
        *probed = probe.problem.is_none().then(|| (probe.clone(), Instant::now()));
        probe
    }

    async fn dismiss(&self, agent: AgentId) {
        self.idle.dismiss(agent).await;
    }

    async fn dismiss_all(&self) {
        self.idle.dismiss_all().await;
    }
}

impl ProcessRunner {
    /// The supervisor of a run that was started before the server was restarted. The server may have died just after
    /// starting the supervisor. Then this function waits for its record.
    async fn known_supervisor(
        &self,
        folder: &RunFolder,
        watch: &FolderWatch,
    ) -> io::Result<Option<SupervisorRecord>> {
        let introduction = async {
            loop {
                if let Some(known) = introduced(folder).await? {
                    return Ok(known.supervisor());
                }
                let path = folder.path().as_os_str().as_bytes().to_vec();
                if !blocking(move || is_argument(&path)).await? {
                    return Ok(introduced(folder).await?.and_then(Introduction::supervisor));
                }
                watch.changed().await;
            }
        };
        let patience = Duration::from_millis(self.config.limits.spawn_timeout_ms);
        if let Ok(known) = timeout(patience, introduction).await {
            return known;
        }
        let folder = folder.clone();
        blocking(move || folder.forget_order()).await?;
        Ok(None)
    }
}

/// A run whose process is kept in `idle_place` after its turn, if there is one.
fn reusable(run: ProcessRun, idle_place: Option<IdlePlace>) -> Box<dyn IAgentRun> {
    match idle_place {
        Some(idle_place) => Box::new(ReusableRun::new(run, idle_place)),
        None => Box::new(run),
    }
}

fn exec_order(config: &ProcessConfig, order: &TurnOrder) -> Result<ExecOrder, RunnerError> {
    let program: PathBuf = program::resolve(&config.program)?;
    program::check_cwd(&order.cwd)?;
    let mut args = config.args.clone();
    args.extend(filled(&config.model_args, "{model}", order.model.as_deref())?);
    args.extend(filled(&config.resume_args, "{session}", order.session.as_ref().map(SessionId::as_str))?);
    let converse = config.converse.map(|converse| converse.protocol.as_str().to_owned());
    let converse_program = converse.is_some().then(|| config.supervisor.own_path().as_os_str().to_owned());
    let mut env = program::environment(config);
    env.push((MARKER.to_owned(), RunFolder::of(&config.runs, order).name().into()));
    Ok(ExecOrder {
        program: program.into_os_string(),
        args,
        env,
        cwd: order.cwd.clone().into_os_string(),
        converse,
        converse_program,
        interrupt: config.interrupt,
        leftover_grace_ms: config.limits.leftover_grace_ms,
        kill_grace_ms: config.limits.kill_grace_ms,
        stderr_bytes: config.limits.stderr_bytes,
        exit_patience_ms: config.limits.exit_patience_ms,
        full_disk_wait_ms: config.limits.full_disk_wait_ms,
        agent_processes: config.limits.agent_processes,
        agent_memory_bytes: config.limits.agent_memory_bytes,
        agent_nice: config.limits.agent_nice,
        look_ms: config.limits.look_ms,
    })
}

/// How long a process stays idle, waiting for the next turn. 0 if it ends with its turn.
fn idle_ms(config: &ProcessConfig) -> u64 {
    let idle_ms = config.converse.map_or(0, |converse| converse.idle_ms);
    if config.limits.idle_agents == 0 { 0 } else { idle_ms }
}

/// The longest time that a process may stay idle, including the graces in which it should end by itself.
fn idle_patience(config: &ProcessConfig) -> Duration {
    let ProcessLimits { exit_grace_ms, .. } = config.limits;
    // The program is asked to end, then gets SIGTERM, then SIGKILL: one grace each.
    let graces = exit_grace_ms.saturating_mul(3);
    Duration::from_millis(idle_ms(config).saturating_add(graces)).min(LONGEST_IDLE)
}

/// The standard input of the program, or of the `converse` process.
fn stdin(config: &ProcessConfig, order: &TurnOrder) -> io::Result<Vec<u8>> {
    let Some(converse) = config.converse else { return Ok(order.prompt.clone().into_bytes()) };
    let ProcessLimits {
        line_bytes, read_bytes, exit_grace_ms, open_questions, unread_bytes, file_bytes, ..
    } = config.limits;
    let not_text = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path of the working directory is not valid UTF-8; use another folder",
        )
    };
    let opening = Opening {
        prompt: order.prompt.clone(),
        images: ImageRef::of(order.run.0.into(), &order.images),
        session: order.session.clone().map(SessionId::into_string),
        // If an argument names the model, the protocol need not.
        model: order.model.clone().filter(|_| config.model_args.is_empty()),
        cwd: order.cwd.to_str().ok_or_else(not_text)?.to_owned(),
        run: order.run.0.into(),
        limits: ConverseLimits {
            line_bytes,
            read_bytes,
            idle_ms: idle_ms(config),
            permission_timeout_ms: converse.permission_timeout_ms,
            exit_grace_ms,
            open_questions,
            unread_bytes,
            file_bytes,
        },
        unanswered: converse.unanswered,
        files: converse.files,
    };
    Ok(serde_json::to_vec(&opening)?)
}

/// The arguments with `value` in place of `place`. Empty if there is no value.
fn filled(args: &[String], place: &str, value: Option<&str>) -> Result<Vec<String>, RunnerError> {
    let Some(value) = value else { return Ok(Vec::new()) };
    // Clients choose the model, which must not become an option of the program. A session id cannot be one.
    if value.starts_with('-') || value.contains('\0') {
        let text = format!(
            "{value:?} is not allowed as the value of {place}; it must not begin with a hyphen or contain a null \
             character"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text).into());
    }
    Ok(args.iter().map(|arg| arg.replace(place, value)).collect())
}
