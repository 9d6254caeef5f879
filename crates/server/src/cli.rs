//! The command line.

mod backup;
mod client;
mod copies;
mod demo;
mod doctor;
mod follow;
mod list;
mod memory;
mod reparse;
mod run;
mod screen;
mod serve;
mod show;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokenrail_runner::{ModelApi, Protocol};
use tokio::runtime::{self, Runtime};

use crate::clock::SystemClock;
use crate::config::{Config, Flags, LimitsConfig};
pub(crate) use screen::Screen;

/// Run AI agents, save every token they print, and stream it live to any number of clients
#[derive(Debug, Parser)]
#[command(name = "tokenrail", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// Configuration file [default: ./tokenrail.toml, else the one in the user's config folder]
    #[arg(long, global = true, env = "TOKENRAIL_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data folder: the database, the access token and the output of running agents
    #[arg(long, global = true, env = "TOKENRAIL_DATA_DIR", value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Address to listen on (`serve`, `demo`; default: 127.0.0.1:7117), or address of the server to connect to (default: the server that uses the data folder). `backup`, `reparse` and `token` ignore it
    #[arg(long, global = true, env = "TOKENRAIL_LISTEN", value_name = "ADDRESS")]
    listen: Option<String>,
    /// `serve`, `demo`: accept requests without a token, on a loopback address only. Other commands: send no token
    #[arg(long, global = true)]
    insecure_no_auth: bool,
    /// Print JSON lines instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server until Ctrl-C. Agents keep running when it stops, and the server adopts them when it starts again
    Serve(serve::ServeArgs),
    /// Run the server and play the demo, a recorded session. It needs no account
    Demo(demo::DemoArgs),
    /// Launch an agent and follow it
    Run(run::RunArgs),
    /// Follow an agent
    Tail(follow::TailArgs),
    /// List agents, newest first
    Ls(list::LsArgs),
    /// Cancel the running turn and all queued turns of an agent
    Cancel {
        /// The agent's id
        id: String,
    },
    /// Answer an agent's permission request
    Answer(list::AnswerArgs),
    /// Export an agent with its complete history to standard output or to a file
    Export(copies::ExportArgs),
    /// Import an exported agent as a read-only copy and print its id
    Import(copies::ImportArgs),
    /// Replay an agent's history as a new agent, with the original timing, and follow it
    Replay(copies::ReplayArgs),
    /// Parse stored output again with this version's parsers, and show (or, with --apply, save) the differences. The server must be stopped
    Reparse(reparse::ReparseArgs),
    /// Back up the database to a new folder and verify the copy; works while the server is running
    Backup(backup::BackupArgs),
    /// Check the configuration, programs, folders, database and permissions
    Doctor,
    /// Print the access token that clients need
    Token,
    /// Send the request on standard input to a model API (internal)
    #[command(hide = true)]
    Model {
        #[arg(value_parser = model_api)]
        api: ModelApi,
    },
    /// Speak with an agent in its protocol (internal)
    #[command(hide = true)]
    Converse {
        /// The second stage: become the agent program of the process with this id
        #[arg(long)]
        exec_for: Option<i32>,
        protocol: String,
        run_folder: PathBuf,
        #[arg(last = true, required = true)]
        program: Vec<OsString>,
    },
    /// Supervise one run of an agent (internal)
    #[command(hide = true)]
    Supervise {
        run_folder: PathBuf,
        /// The second stage: become the agent
        #[arg(long)]
        exec: bool,
    },
}

/// How a command ended, and its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Completed,
    Failed,
    Usage,
    Unreachable,
    /// The stored data is corrupt.
    Damaged,
    Interrupted,
    /// The reader of the output has gone.
    Closed,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Completed => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Unreachable => 3,
            // EX_CONFIG of sysexits.h. It tells service managers that another start does not help.
            Exit::Damaged => 78,
            Exit::Interrupted => 130,
            Exit::Closed => 141,
        })
    }
}

/// The first file descriptor after standard input, output and error.
const FIRST_INHERITED: i32 = 3;

/// Runs the program: parses the command line and executes the command.
pub fn main() -> ExitCode {
    if let Some(exit) = tokenrail_runner::supervisor_command() {
        return exit;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => return print(&answer),
    };
    // The server keeps inherited file descriptors, such as the lock of a script that has become this program.
    let serves = matches!(cli.command, Command::Serve(_) | Command::Demo(_));
    let not_again = serves.then(memory::start_again_with_settings).flatten();
    // But supervisors and agents must not inherit the files and sockets of this program's parent.
    close_fds::set_fds_cloexec(FIRST_INHERITED, &[]);
    let hidden = hide_memory();
    if let Command::Model { api } = &cli.command {
        crate::install_crypto();
        return tokenrail_runner::ask_model(*api);
    }
    if let Command::Converse { exec_for, protocol, run_folder, program } = &cli.command {
        if let Some(parent) = exec_for {
            return tokenrail_runner::exec_for(*parent, run_folder, program);
        }
        let Some(protocol) = Protocol::from_name(protocol) else { return Exit::Usage.into() };
        return tokenrail_runner::converse(protocol, run_folder, program, &SystemClock);
    }
    let mut screen = Screen::new(cli.global.json);
    if let Err(error) = hidden {
        screen.remark(&format!("warning: agents may be able to read this process's memory: {error}"));
    }
    if serves && let Err(error) = memory::give_back_after_bursts() {
        screen.remark(&format!("warning: memory is not returned to the system after bursts: {error}"));
    }
    if let Some(error) = not_again {
        screen.remark(&format!("warning: cannot tune the memory allocator: {error}"));
    }
    let flags = Flags {
        config: cli.global.config,
        data_dir: cli.global.data_dir,
        listen: cli.global.listen,
        insecure_no_auth: cli.global.insecure_no_auth,
    };
    let env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let config = match Config::load(&flags, &env) {
        Ok(config) => config,
        Err(error) => {
            screen.error(&error);
            return Exit::Usage.into();
        }
    };
    crate::install_crypto();
    if serves && let Err(error) = shorten_time_slice(&config.limits) {
        screen.remark(&format!("warning: limits.time_slice_us has no effect: {error}"));
    }
    match runtime(&config.limits) {
        Ok(runtime) => runtime.block_on(dispatch(cli.command, config, screen)).into(),
        Err(error) => {
            screen.error(&error);
            Exit::Failed.into()
        }
    }
}

/// Creates the runtime. Its number of threads does not grow with agents: blocking work waits for one of them.
fn runtime(limits: &LimitsConfig) -> io::Result<Runtime> {
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    runtime::Builder::new_multi_thread()
        .worker_threads(limits.worker_threads.min(processors))
        .max_blocking_threads(limits.blocking_threads)
        .enable_all()
        .build()
}

/// Lets the server's threads, all of which begin later, run soon after they are woken, although others are busy.
fn shorten_time_slice(limits: &LimitsConfig) -> io::Result<()> {
    match limits.time_slice_us {
        0 => Ok(()),
        us => tokenrail_runner::set_time_slice(Some(Duration::from_micros(us))),
    }
}

fn model_api(name: &str) -> Result<ModelApi, &'static str> {
    ModelApi::named(name).ok_or("unknown API")
}

/// Prints help, or the error in the command line.
fn print(answer: &clap::Error) -> ExitCode {
    match answer.print() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Screen::new(false).error(&error);
            Exit::Failed.into()
        }
        _ => u8::try_from(answer.exit_code()).unwrap_or(1).into(),
    }
}

/// Keeps other processes of this user, such as agents, from reading the token and the environment in this process's
/// memory, and keeps both out of core dumps. It has no effect on a program that this process becomes or starts.
fn hide_memory() -> std::io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

async fn dispatch(command: Command, config: Config, mut screen: Screen) -> Exit {
    let serves = matches!(command, Command::Serve(_));
    let done = match command {
        Command::Serve(args) => serve::serve(config, args, &mut screen).await,
        Command::Demo(args) => demo::demo(config, args, &mut screen).await,
        Command::Run(args) => run::run(config, args, &mut screen).await,
        Command::Tail(args) => follow::tail(&config, args, &mut screen).await,
        Command::Ls(args) => list::ls(&config, args, &mut screen).await,
        Command::Cancel { id } => list::cancel(&config, &id, &mut screen).await,
        Command::Answer(args) => list::answer(&config, args, &mut screen).await,
        Command::Export(args) => copies::export(&config, args, &mut screen).await,
        Command::Import(args) => copies::import(&config, args, &mut screen).await,
        Command::Replay(args) => copies::replay(&config, args, &mut screen).await,
        Command::Reparse(args) => reparse::reparse(&config, args, &mut screen).await,
        Command::Backup(args) => backup::backup(&config, args, &mut screen).await,
        Command::Doctor => doctor::doctor(&config, &mut screen).await,
        Command::Token => serve::token(&config, &mut screen),
        Command::Supervise { .. } | Command::Converse { .. } | Command::Model { .. } => Ok(Exit::Usage),
    };
    match done {
        // Lost output is a failure of a command, but not of a server.
        Ok(Exit::Completed) if !serves => screen.exit_or(Exit::Completed),
        Ok(exit) => exit,
        Err(error) => {
            screen.error(&*error.cause);
            error.exit
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    cause: Box<dyn std::error::Error + Send + Sync>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { exit, cause: cause.into() }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.cause.fmt(f)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(cause: E) -> Self {
        Self { exit: Exit::Failed, cause: Box::new(cause) }
    }
}
