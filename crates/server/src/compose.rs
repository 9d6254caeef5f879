//! Every port of the application and the adapter behind it: with `store.rs`, the only place where they are chosen. What
//! works without the application uses the clock and random bytes of `clock.rs` directly.

pub(crate) mod limits;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokenrail_application::{AgentType, AgentTypes, MakeParser, Outside};
use tokenrail_ports::{Abilities, IAgentRunner, RunnerError};
use tokenrail_runner::{
    AllowedFolders, ConverseConfig, ModelConfig, ModelLimits, ModelProcess, ModelRunner, ModelSettings,
    ProcessConfig, ProcessRunner, ProxyConfig, ProxyLimits, ProxyRunner, ReplayRunner, Repositories,
    RunFolders, RunWatcher, SupervisorProgram, Transcript, WatchLimits, Workspaces,
};

use self::limits::{in_ms, process_limits, repository_limits};
use crate::clock::{SystemClock, SystemRandom};
use crate::config::{self, AgentConfig, Config, RunnerConfig};
use crate::store::Store;

/// A real session of Claude Code 2.1.330, recorded against a scripted model.
const DEMO_OUTPUT: &[u8] = include_bytes!("../demo/session.jsonl");
const DEMO_TIMES: &str = include_str!("../demo/session.times");

/// Chooses an adapter for every port.
pub(crate) fn outside(config: &Config, store: &Store) -> Result<Outside, ComposeError> {
    let means = Means {
        watcher: watcher(config).map_err(ComposeError::Watcher)?,
        supervisor: supervisor(config).map_err(ComposeError::Program)?,
    };
    let types = |agents: &BTreeMap<String, AgentConfig>| {
        let named = agents.iter().map(|(name, agent)| {
            let failed = |source| ComposeError::AgentType { agent: name.clone(), source };
            Ok((name.clone(), agent_type(config, agent, &means).map_err(failed)?))
        });
        named.collect::<Result<BTreeMap<_, _>, _>>()
    };
    let types = AgentTypes { listed: types(&config.agents)?, former: types(&config.former_agents)? };
    Ok(Outside {
        journal: store.journal(),
        archive: store.archive(),
        nodes: store.nodes(),
        inbox: store.inbox(),
        credentials: store.credentials(),
        bus: store.bus(),
        agents: store.agents(),
        clock: Arc::new(SystemClock),
        random: Arc::new(SystemRandom),
        runs: Arc::new(RunFolders::new(runs_folder(config), in_ms(config.limits.kill_grace_s))),
        git: Arc::new(Repositories::new(&config.data_dir, repository_limits(&config.limits))),
        types,
        default_type: config.default_agent.clone(),
    })
}

/// An adapter that cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    #[error("cannot set up agents.{agent}")]
    AgentType { agent: String, source: RunnerError },
    #[error("cannot start watching the run folders")]
    Watcher(#[source] io::Error),
    #[error("cannot find the server's own program")]
    Program(#[source] io::Error),
}

/// The one watcher of all run folders, because a user may have only a few inotify instances.
pub(crate) fn watcher(config: &Config) -> io::Result<RunWatcher> {
    RunWatcher::new(WatchLimits {
        run_gather: Duration::from_micros(config.limits.run_gather_us),
        run_poll: Duration::from_millis(config.limits.run_poll_ms),
        inotify: config.inotify,
    })
}

/// The program that supervises the runs of all agents.
pub(crate) fn supervisor(config: &Config) -> io::Result<SupervisorProgram> {
    let patience = Duration::from_secs(config.limits.spawn_timeout_s);
    Ok(SupervisorProgram::beside(this_program()?, patience))
}

/// What the runners of all agent types share.
pub(crate) struct Means {
    pub(crate) watcher: RunWatcher,
    pub(crate) supervisor: SupervisorProgram,
}

/// Creates the adapters of one configured agent type.
pub(crate) fn agent_type(
    config: &Config,
    agent: &AgentConfig,
    means: &Means,
) -> Result<AgentType, RunnerError> {
    let (runner, runner_name): (Arc<dyn IAgentRunner>, _) = match &agent.runner {
        RunnerConfig::Process(process) => (Arc::new(process_runner(config, process, means)?), "process"),
        RunnerConfig::Http(model) => (Arc::new(model_runner(config, model, means)?), "http"),
        RunnerConfig::Proxy(proxy) => (Arc::new(proxy_runner(config, proxy)?), "proxy"),
        RunnerConfig::Replay(replay) => (Arc::new(replay_runner(replay)?), "replay"),
    };
    let own = config.data_dir.join("work");
    Ok(AgentType {
        runner,
        workspace: Arc::new(Workspaces::new(
            own,
            agent.cwd_roots.clone(),
            AllowedFolders::of(&config.data_dir),
        )),
        parser: parsers(agent),
        abilities: abilities(agent),
        runner_name: runner_name.to_owned(),
        format: agent.format.name.to_owned(),
    })
}

/// What agents of a type can do: the abilities of their format that their runner supports.
fn abilities(agent: &AgentConfig) -> Abilities {
    let can = agent.format.abilities;
    match &agent.runner {
        RunnerConfig::Process(process) => Abilities {
            resume: can.resume && (!process.resume_args.is_empty() || process.converse.is_some()),
            interrupt: can.interrupt && process.interrupt,
            // Others get their prompt as the text of their standard input.
            images: can.images && process.converse.is_some(),
            ..can
        },
        // A connection has no signals.
        RunnerConfig::Http(_) | RunnerConfig::Proxy(_) => {
            Abilities { interrupt: false, permissions: false, images: false, ..can }
        }
        RunnerConfig::Replay(_) => {
            Abilities { resume: false, interrupt: false, permissions: false, images: false, ..can }
        }
    }
}

/// Creates a parser for each run.
fn parsers(agent: &AgentConfig) -> MakeParser {
    let (format, mapping) = (agent.format, agent.jsonl.clone());
    Arc::new(move || format.parser(&mapping))
}

fn process_runner(
    config: &Config,
    process: &config::ProcessBlock,
    means: &Means,
) -> Result<ProcessRunner, RunnerError> {
    let config::ProcessBlock { program, args, resume_args, model_args, env, pass_env, interrupt, converse } =
        process;
    let process = ProcessConfig {
        supervisor: means.supervisor.clone(),
        runs: runs_folder(config),
        program: program.clone(),
        args: args.clone(),
        resume_args: resume_args.clone(),
        model_args: model_args.clone(),
        env: env.clone(),
        pass_env: pass_env.clone(),
        interrupt: *interrupt,
        converse: converse.map(|converse| ConverseConfig {
            protocol: converse.protocol,
            permission_timeout_ms: in_ms(converse.permission_timeout_s),
            unanswered: converse.permission_default,
            files: converse.files,
            idle_ms: in_ms(converse.rest_s),
        }),
        limits: process_limits(&config.limits),
    };
    ProcessRunner::new(process, means.watcher.clone())
}

/// The folder that contains all run folders.
fn runs_folder(config: &Config) -> PathBuf {
    config.data_dir.join("runs")
}

/// The path of this program. In tests of this crate it is the test program.
fn this_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

fn model_runner(
    config: &Config,
    settings: &ModelSettings,
    means: &Means,
) -> Result<ModelRunner, RunnerError> {
    let limits = ModelLimits {
        connect_timeout_ms: in_ms(config.limits.connect_timeout_s),
        idle_timeout_ms: in_ms(config.limits.idle_timeout_s),
        event_bytes: config.limits.line_bytes,
        ..ModelLimits::default()
    };
    let process = ModelProcess {
        program: this_program()?,
        supervisor: means.supervisor.clone(),
        runs: runs_folder(config),
        limits: process_limits(&config.limits),
    };
    let model = ModelConfig { settings: settings.clone(), limits, process };
    ModelRunner::new(model, means.watcher.clone())
}

fn proxy_runner(config: &Config, proxy: &config::ProxyBlock) -> Result<ProxyRunner, RunnerError> {
    let limits = ProxyLimits {
        connect_timeout_ms: in_ms(config.limits.connect_timeout_s),
        idle_timeout_ms: in_ms(config.limits.idle_timeout_s),
        event_bytes: config.limits.line_bytes,
        ..ProxyLimits::default()
    };
    ProxyRunner::new(ProxyConfig { url: proxy.url.clone(), limits })
}

fn replay_runner(replay: &config::ReplayBlock) -> io::Result<ReplayRunner> {
    let transcript = match &replay.transcript {
        config::RecordingSource::BuiltIn => Transcript::new("builtin", DEMO_OUTPUT, DEMO_TIMES),
        config::RecordingSource::File(path) => Transcript::read(Path::new(path))?,
    };
    Ok(ReplayRunner::new(transcript, replay.speed))
}
