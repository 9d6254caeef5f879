//! The commands, and the options that all of them have.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use tokenrail_runner::ModelApi;

use super::agent_id::AgentArg;
use super::color::ColorWhen;
use super::{
    allow, backup, completions, config, copies, demo, list, man, open, reparse, rm, run, send, serve, show,
    tail,
};

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Configuration file [default: ./tokenrail.toml, else the one in the user's config folder]
    #[arg(long, global = true, env = "TOKENRAIL_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Data folder: the database, the access token and the output of running agents [default: `server.data_dir`, ~/.local/share/tokenrail]
    #[arg(long, global = true, env = "TOKENRAIL_DATA_DIR", value_name = "FOLDER")]
    pub(crate) data_dir: Option<PathBuf>,
    /// URL of the server to connect to, such as `https://agents.example.com`, instead of the server of the data folder. Set the token of that server in `TOKENRAIL_TOKEN`. `--url` has no effect on `serve`, `backup`, `reparse` and `token`; `allow` refuses it
    #[arg(long, global = true, env = "TOKENRAIL_URL", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// `serve`, `demo`: address to listen on [default: `server.listen`, 127.0.0.1:7117]. Other commands: address of the server to connect to [default: the server that uses the data folder]. No effect on `allow`, `backup`, `reparse` and `token`
    #[arg(long, global = true, env = "TOKENRAIL_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// `serve`, `demo`: accept requests without a token, on a loopback address only. Other commands: send no token
    #[arg(long, global = true)]
    pub(crate) insecure_no_auth: bool,
    /// When to use colours. `auto` means on a terminal, and obeys `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and `TERM=dumb`
    #[arg(long, global = true, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    pub(crate) color: ColorWhen,
    /// Print JSON lines instead of text. The output of `serve` and `export` stays the same
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server until Ctrl-C. Agents keep running when it stops, and the server adopts them when it starts again
    Serve(serve::ServeArgs),
    /// Play the demo, a recorded session, on the running server or on a new one. It needs no account
    Demo(demo::DemoArgs),
    /// Launch an agent and follow it until its turn ends. If no server is running, start one for this command only
    Run(run::RunArgs),
    /// Follow an agent
    Tail(tail::TailArgs),
    /// List agents, newest first
    Ls(list::LsArgs),
    /// Send a message to an agent and follow its answer
    Send(send::SendArgs),
    /// Show the facts of one agent
    Show(show::ShowArgs),
    /// Cancel the running turn and all queued turns of an agent
    Cancel {
        #[command(flatten)]
        agent: AgentArg,
    },
    /// Allow agents to work in a folder, or list the allowed folders
    Allow(allow::AllowArgs),
    /// Answer an agent's permission request
    Answer(list::AnswerArgs),
    /// List the open permission requests of all running agents
    Questions,
    /// Delete agents
    Rm(rm::RmArgs),
    /// Print the address of the page, with a login, and open it if there is a display
    Open(open::OpenArgs),
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
    /// Check the configuration, programs, folders, database and file permissions
    Doctor,
    /// Print the access token that clients need, or replace it
    Token(serve::TokenArgs),
    /// Show where the settings come from, show all of them, or write an example
    Config(config::ConfigArgs),
    /// Print a script that lets a shell complete commands and options
    Completions(completions::CompletionsArgs),
    /// Write the manual pages to a folder, for packagers
    Man(man::ManArgs),
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

fn model_api(name: &str) -> Result<ModelApi, &'static str> {
    ModelApi::named(name).ok_or("unknown API")
}
