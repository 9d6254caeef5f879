//! `tokenrail serve`: the server, until a signal stops it. Other commands that start one use this too.

use std::io;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokenrail_application::{AgentService, AtStop, Fence};
use tokenrail_persistence::is_in_use;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use super::screen::{Screen, Style};
use super::{Exit, Failure, color};
use crate::config::{Config, Target};
use crate::panics;
use crate::server::{Server, StartError};

/// Between two tries to start anew.
const START_PAUSE: Duration = Duration::from_secs(1);

const SAME_NODE: &str = "another server has joined the database as this node, with a copy of this data folder, and has \
                         taken over its agents; the agent processes here were terminated; to run both servers, stop them, remove the \
                         file node.id from the copied folder, and start both again";

const OUTDATED: &str = "a newer version has changed the database, so this version cannot use it; install the newer \
                        version; agents keep running";

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct ServeArgs {
    /// Cancel running agents when the server stops, instead of leaving them running
    #[arg(long)]
    stop_agents: bool,
    /// Format of log lines, which go to standard error
    #[arg(
        long,
        value_enum,
        default_value_t = LogFormat::Text,
        env = "TOKENRAIL_LOG_FORMAT",
        value_name = "FORMAT"
    )]
    log_format: LogFormat,
    /// Log filter, for example `info` or `tokenrail_application=debug`
    #[arg(long, default_value = "info", env = "TOKENRAIL_LOG", value_name = "FILTER")]
    log: String,
    /// For tests: enable /ws/echo, which returns every message, and /test/panic
    #[arg(long, hide = true)]
    test_routes: bool,
    /// For tests: poll the run folders, as if inotify were not available
    #[arg(long, hide = true, env = "TOKENRAIL_TEST_WITHOUT_INOTIFY")]
    without_inotify: bool,
    /// For tests: use the schema of the database as the next release could have it
    #[arg(long, hide = true, env = "TOKENRAIL_TEST_NEXT_SCHEMA")]
    next_schema: bool,
}

impl ServeArgs {
    /// The defaults, with a log of warnings and errors only.
    pub(crate) fn quiet() -> Self {
        let (log_format, log) = (LogFormat::Text, "warn".to_owned());
        Self {
            stop_agents: false,
            log_format,
            log,
            test_routes: false,
            without_inotify: false,
            next_schema: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

pub(crate) async fn serve(config: Config, args: ServeArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let repeat = config.repeat.clone();
    Box::pin(serve_and(config, args, screen, async move |server, screen| {
        screen.line(Style::Plain, &format!("serving on {}", server.url()));
        if !screen.is_live() {
            return;
        }
        screen.line(Style::Plain, &format!("open in a browser: {}", server.page_url().await));
        if server.token().is_some() {
            let open = format!("tokenrail open{repeat}");
            let hint = format!(
                "this link can be used once and expires after 10 minutes; for a new one, run: {open}"
            );
            screen.line(Style::Dim, &hint);
        }
    }))
    .await
}

/// Runs the server until a stop signal. `started` is called when it accepts requests.
pub(crate) async fn serve_and(
    mut config: Config,
    args: ServeArgs,
    screen: &mut Screen,
    started: impl AsyncFnOnce(&Server, &mut Screen),
) -> Result<Exit, Failure> {
    start_log(&args)?;
    panics::keep_to_themselves();
    warn_of_root(screen);
    config.test_routes = args.test_routes;
    config.inotify = !args.without_inotify;
    config.next_schema = args.next_schema;
    warn_of(&config);
    let mut stop = StopSignal::listen()?;
    let _kept = survive_file_size_limit()?;
    let stopped = async { _ = stop.recv().await };
    let mut server = match Server::start_after(config.clone(), None, stopped).await {
        Err(StartError::Stopped) => return Ok(Exit::Completed),
        started => started.map_err(start_failure)?,
    };
    started(&server, screen).await;
    loop {
        tokio::select! {
            _ = stop.recv() => break,
            why = server.fenced() => {
                let agents = if why == Fence::Replaced { AtStop::EndRuns } else { AtStop::Keep };
                let former = server.service();
                server.stop(agents).await;
                match why {
                    Fence::Replaced => return Err(Failure::new(Exit::Failed, SAME_NODE)),
                    Fence::Outdated => return Err(Failure::new(Exit::Outdated, OUTDATED)),
                    Fence::DeclaredLost => {}
                }
                // The node joins anew, ends what was taken over, and goes on with the rest.
                let again = start_again(&config, &former, &mut stop).await?;
                let Some(again) = again else { return Ok(Exit::Completed) };
                server = again;
            }
        }
    }
    tracing::info!("stopping");
    let in_time = tokio::select! {
        in_time = server.stop(config.cluster.on_stop.at_stop(args.stop_agents)) => in_time,
        // What is saved is safe without an orderly stop.
        _ = stop.recv() => return Ok(Exit::Interrupted),
    };
    if !in_time {
        tracing::warn!("some tasks did not end within limits.shutdown_timeout_s");
    }
    Ok(Exit::Completed)
}

/// Logs what is risky or without effect in a configuration.
fn warn_of(config: &Config) {
    if config.insecure_no_auth {
        tracing::warn!(
            "authentication is disabled: every program on this machine can run agents as this user"
        );
    }
    if !config.listen.ip().is_loopback() && config.tls.is_none() {
        tracing::warn!(
            "listening on a non-loopback address: tokens and agent output cross the network unencrypted; \
             set server.tls_cert and server.tls_key, or use a TLS proxy"
        );
    }
    for (agent, warning) in config.warnings() {
        tracing::warn!("agents.{agent}: {warning}");
    }
}

/// Starts the server anew after its node was declared lost. Whatever made it silent may not be over, so this is tried
/// until it succeeds. Returns `None` if a stop signal comes first.
async fn start_again(
    config: &Config,
    former: &AgentService,
    stop: &mut StopSignal,
) -> Result<Option<Server>, Failure> {
    loop {
        let stopped = async { _ = stop.recv().await };
        let error = match Server::start_after(config.clone(), Some(former), stopped).await {
            Ok(server) => return Ok(Some(server)),
            Err(StartError::Stopped) => {
                end_runs(config, former).await;
                return Ok(None);
            }
            Err(StartError::Store(error)) if error.is_corrupt() || error.is_outdated() => {
                return Err(start_failure(error.into()));
            }
            Err(
                error @ (StartError::Store(_)
                | StartError::CompareToken(_)
                | StartError::Recover(_)
                | StartError::Listen { .. }),
            ) => error,
            Err(error) => {
                end_runs(config, former).await;
                return Err(start_failure(error));
            }
        };
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "cannot restart the server after its node was declared lost; retrying"
        );
        tokio::select! {
            biased;
            _ = stop.recv() => {
                end_runs(config, former).await;
                return Ok(None);
            }
            () = tokio::time::sleep(START_PAUSE) => {}
        }
    }
}

/// Ends the runs of a node that was declared lost and does not start again. Other nodes have its turns, and nobody
/// reads what still runs here.
async fn end_runs(config: &Config, former: &AgentService) {
    let patience = Duration::from_secs(config.limits.shutdown_timeout_s);
    former.shutdown(AtStop::EndRuns, patience).await;
}

/// The server that runs already. `--listen` names none here: it is where this command's own server would listen.
pub(crate) fn running(config: &Config) -> Option<Target> {
    match &config.target {
        Target::Url(url) => Some(Target::Url(url.clone())),
        Target::Address(_) | Target::DataFolder => is_in_use(&config.data_dir).then_some(Target::DataFolder),
    }
}

/// If the system limits the size of files, a write beyond the limit fails instead of killing the server. Agents are
/// not affected: a new program begins with the default signal handlers.
fn survive_file_size_limit() -> std::io::Result<Signal> {
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))
}

fn start_failure(error: StartError) -> Failure {
    let exit = match &error {
        StartError::Store(error) if error.is_corrupt() => Exit::Corrupt,
        StartError::Store(error) if error.is_outdated() => Exit::Outdated,
        _ => Exit::Failed,
    };
    Failure::new(exit, error)
}

/// Agents run as the user that runs the server.
pub(crate) fn warn_of_root(screen: &mut Screen) {
    if rustix::process::geteuid().is_root() {
        screen.note(
            "warning: running as root, so agents will run as root too; use a dedicated account instead",
        );
    }
}

/// Why a command should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Ctrl-C.
    Interrupt,
    /// The signal of a service manager, or the terminal was closed.
    Terminate,
}

/// Ctrl-C, or the signal of a service manager. A signal that arrives before [`StopSignal::recv`] is not lost.
pub(crate) struct StopSignal {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal was closed. `None` if this program was started with that signal ignored.
    hangup: Option<Signal>,
}

impl StopSignal {
    /// Listens from now on: these signals no longer end the program by themselves.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn listen() -> io::Result<Self> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let hangup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self { interrupt, terminate, hangup })
    }

    /// Waits for one of these signals.
    pub(crate) async fn recv(&mut self) -> Stop {
        tokio::select! {
            _ = self.interrupt.recv() => Stop::Interrupt,
            _ = self.terminate.recv() => Stop::Terminate,
            () = hung_up(&mut self.hangup) => Stop::Terminate,
        }
    }
}

async fn hung_up(hangup: &mut Option<Signal>) {
    match hangup {
        Some(hangup) => _ = hangup.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether this process ignores SIGHUP, for example because `nohup` has started it.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    // The mask begins with signal 1.
    ignored & (1 << (rustix::process::Signal::HUP.as_raw() - 1)) != 0
}

fn start_log(args: &ServeArgs) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(&args.log)
        .map_err(|error| Failure::new(Exit::Usage, format!("--log: {error}")))?;
    let colours = color::on_stderr();
    let log =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr);
    match args.log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}
