//! The command line.
//!
//! | modules | what they are for |
//! | --- | --- |
//! | [`command`] | the commands and their options |
//! | `up`, `serve`, `demo`, `open`, `token`, `nodes` | commands about a server |
//! | `run`, `send`, `tail`, `answer`, `questions`, `cancel` | commands about the work of agents |
//! | `ls`, `show`, `changes`, `rm`, [`edit`] (`rename`, `pin`, `archive`) | commands about agents and their lists |
//! | [`copies`] (`export`, `import`, `replay`), `reparse`, `backup`, [`move_data`] (`move`) | commands about data |
//! | `allow`, `config`, `doctor`, `completions`, `man`, `mcp` | commands about this machine and other programs |
//! | [`client`], [`agent_id`], [`own_run`] | the server that a command talks to; the agent that it means |
//! | [`attend`], [`follow`], [`event_printer`] | shows an agent while it works |
//! | [`permission_request`], [`open_requests`], [`answers`], [`typed`] | permission requests, and what users type |
//! | [`images`], [`tool_input`], [`excerpt`] | the images of a prompt; the input of a tool; the beginning of a text |
//! | [`screen`], [`color`], [`exit`], [`help`], [`flags`] | what all commands share |
//! | [`memory`] | settings of the memory allocator |

mod agent_id;
mod allow;
mod answer;
mod answers;
mod attend;
mod backup;
mod cancel;
mod changes;
mod client;
mod color;
mod command;
mod completions;
mod config;
mod copies;
mod demo;
mod doctor;
mod edit;
mod event_printer;
mod excerpt;
mod exit;
mod flags;
mod follow;
mod help;
mod images;
mod ls;
mod man;
mod mcp;
mod memory;
mod move_data;
mod nodes;
mod open;
mod open_requests;
mod own_run;
mod permission_request;
mod questions;
mod reparse;
mod rm;
mod run;
mod screen;
mod send;
mod serve;
mod show;
mod tail;
mod token;
mod tool_input;
mod typed;
mod up;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokenrail_runner::Protocol;
use tokio::runtime::{self, Runtime};

use crate::clock::SystemClock;
use crate::config::{Config, Flags, LimitsConfig};
use command::{Command, Global};
use config::ConfigCommand;
pub(crate) use exit::{Exit, Failure};
pub(crate) use screen::Screen;

/// Run AI agents, save their output as they print it, and stream it live to any number of clients
#[derive(Debug, Parser)]
#[command(name = "tokenrail", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// The first file descriptor after standard input, output and error.
const FIRST_INHERITED: i32 = 3;

/// Runs the program: parses the command line and executes the command.
pub fn main() -> ExitCode {
    if let Some(exit) = tokenrail_runner::supervisor_command() {
        return exit;
    }
    let arguments: Vec<OsString> = std::env::args_os().collect();
    color::choose(&arguments);
    let asks_for_json = arguments.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    let parsed = help::fitted(Cli::command()).try_get_matches_from(arguments);
    let (cli, matches) = match parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches))) {
        Ok(parsed) => parsed,
        Err(answer) => return print(&answer, asks_for_json),
    };
    // The server keeps inherited file descriptors, such as the lock of a script that has become this program.
    let serves = cli.command.starts_server();
    let not_again = serves.then(memory::start_again_with_settings).flatten();
    // But supervisors and agents must not inherit the files and sockets of this program's parent.
    close_fds::set_fds_cloexec(FIRST_INHERITED, &[]);
    let hidden = hide_memory();
    if let Some(exit) = internal(&cli.command) {
        return exit;
    }
    let mut screen = Screen::new(cli.global.json);
    if let Err(error) = hidden {
        screen.note(&format!("warning: agents may be able to read this process's memory: {error}"));
    }
    if serves && let Err(error) = memory::give_back_after_bursts() {
        screen.note(&format!(
            "warning: after a load peak, the server keeps memory that it no longer needs: {error}"
        ));
    }
    if let Some(error) = not_again {
        screen.note(&format!("warning: cannot tune the memory allocator: {error}"));
    }
    start(cli, &matches, screen).into()
}

/// Runs a command that a process of a run starts, or becomes.
fn internal(command: &Command) -> Option<ExitCode> {
    match command {
        Command::Model { api } => {
            crate::install_crypto();
            Some(tokenrail_runner::ask_model(*api))
        }
        Command::Converse { exec_for: Some(parent), protocol: _, run_folder, program } => {
            Some(tokenrail_runner::exec_for(*parent, run_folder, program))
        }
        Command::Converse { exec_for: None, protocol, run_folder, program } => {
            let Some(protocol) = Protocol::from_name(protocol) else { return Some(Exit::Usage.into()) };
            Some(tokenrail_runner::converse(protocol, run_folder, program, &SystemClock))
        }
        _ => None,
    }
}

/// Reads the configuration and executes the command.
fn start(cli: Cli, matches: &ArgMatches, mut screen: Screen) -> Exit {
    let env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let repeat = flags::repeated(matches);
    let flags = flags::flags(cli.global, matches);
    if let Some(done) = without_settings(&cli.command, &flags, &env, &mut screen) {
        return finish(done, &mut screen);
    }
    let config = match Config::load(&flags, &env) {
        Ok(config) => Config { repeat, ..config },
        Err(error) => {
            screen.error("configuration", &error);
            return Exit::Usage;
        }
    };
    crate::install_crypto();
    let serves = cli.command.starts_server();
    if serves && let Err(error) = shorten_time_slice(&config.limits) {
        screen.note(&format!("warning: limits.time_slice_us has no effect: {error}"));
    }
    match runtime(&config.limits) {
        Ok(runtime) => runtime.block_on(dispatch(cli.command, config, screen)),
        Err(error) => {
            screen.error(Exit::Failed.code(), &error);
            Exit::Failed
        }
    }
}

/// Executes a command that works even if the configuration is wrong. `None` for any other command.
fn without_settings(
    command: &Command,
    flags: &Flags,
    env: &BTreeMap<String, String>,
    screen: &mut Screen,
) -> Option<Result<Exit, Failure>> {
    let file = flags.config.as_deref();
    match command {
        Command::Config(args) if args.command == ConfigCommand::Path => {
            Some(Ok(config::path(file, env, screen)))
        }
        Command::Config(args) if args.command == ConfigCommand::Init => Some(config::init(file, env, screen)),
        Command::Completions(args) => {
            Some(completions::completions(args, &help::fitted(Cli::command()), screen))
        }
        Command::Man(args) => Some(man::man(args, help::fitted(Cli::command()), screen)),
        _ => None,
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

/// Prints help, or the error in the command line.
fn print(answer: &clap::Error, json: bool) -> ExitCode {
    if json && answer.use_stderr() {
        let text = answer.render().to_string();
        let message = text.split("\n\nUsage:").next().unwrap_or_default().trim();
        let message = message.strip_prefix("error: ").unwrap_or(message);
        Screen::new(json).error(Exit::Usage.code(), &io::Error::other(message));
        return Exit::Usage.into();
    }
    match answer.print() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Screen::new(json).error(Exit::Failed.code(), &error);
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
    let serves = matches!(command, Command::Serve(_) | Command::Up(_));
    let done = match command {
        Command::Up(args) => Box::pin(up::up(config, args, &mut screen)).await,
        Command::Serve(args) => Box::pin(serve::serve(config, args, &mut screen)).await,
        Command::Demo(args) => Box::pin(demo::demo(config, args, &mut screen)).await,
        Command::Run(args) => Box::pin(run::run(config, args, &mut screen)).await,
        Command::Tail(args) => tail::tail(&config, args, &mut screen).await,
        Command::Ls(args) => ls::ls(&config, args, &mut screen).await,
        Command::Cancel { agent } => cancel::cancel(&config, &agent, &mut screen).await,
        Command::Allow(args) => allow::allow(&config, &args, &mut screen),
        Command::Answer(args) => answer::answer(&config, args, &mut screen).await,
        Command::Send(args) => send::send(&config, args, &mut screen).await,
        Command::Show(args) => show::show(&config, args, &mut screen).await,
        Command::Changes(args) => changes::changes(&config, args, &mut screen).await,
        Command::Questions => questions::questions(&config, &mut screen).await,
        Command::Rename(args) => edit::rename(&config, args, &mut screen).await,
        Command::Pin(args) => edit::pin(&config, args, &mut screen).await,
        Command::Archive(args) => edit::archive(&config, args, &mut screen).await,
        Command::Rm(args) => rm::rm(&config, args, &mut screen).await,
        Command::Mcp => mcp::mcp(config).await,
        Command::Open(args) => open::open(&config, args, &mut screen).await,
        Command::Export(args) => copies::export(&config, args, &mut screen).await,
        Command::Import(args) => copies::import(&config, args, &mut screen).await,
        Command::Replay(args) => copies::replay(&config, args, &mut screen).await,
        Command::Reparse(args) => reparse::reparse(&config, args, &mut screen).await,
        Command::Nodes(args) => nodes::nodes(&config, args, &mut screen).await,
        Command::Backup(args) => backup::backup(&config, args, &mut screen).await,
        Command::Move(args) => move_data::move_data(&config, args, &mut screen).await,
        Command::Doctor => doctor::doctor(&config, &mut screen).await,
        Command::Token(args) => token::token(&config, &args, &mut screen),
        Command::Config(_) => config::show(&config, &mut screen),
        Command::Completions(_)
        | Command::Man(_)
        | Command::Supervise { .. }
        | Command::Converse { .. }
        | Command::Model { .. } => Ok(Exit::Usage),
    };
    match done {
        // Lost output is a failure of a command, but not of a server.
        Ok(Exit::Completed) if serves => Exit::Completed,
        done => finish(done, &mut screen),
    }
}

/// Prints the error of a command, and returns its exit.
fn finish(done: Result<Exit, Failure>, screen: &mut Screen) -> Exit {
    match done {
        Ok(Exit::Completed) => screen.exit_or(Exit::Completed),
        Ok(exit) => exit,
        Err(error) => {
            screen.error(error.code(), error.cause());
            error.exit
        }
    }
}
