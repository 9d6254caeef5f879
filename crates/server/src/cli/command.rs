//! The commands, and the options that all of them have.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use tokenrail_runner::ModelApi;

use super::agent_id::AgentArg;
use super::color::ColorWhen;
use super::{
    allow, answer, backup, changes, completions, config, copies, demo, edit, ls, man, move_data, nodes, open,
    reparse, rm, run, send, serve, show, tail, token, up,
};

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Configuration file [default: ./tokenrail.toml, else the one in the user's config folder]
    #[arg(long, global = true, env = "TOKENRAIL_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Data folder: the database, the access token and the output of running agents [default: `server.data_dir`, else
    /// `$XDG_DATA_HOME/tokenrail`, else `~/.local/share/tokenrail`]
    #[arg(long, global = true, env = "TOKENRAIL_DATA_DIR", value_name = "FOLDER")]
    pub(crate) data_dir: Option<PathBuf>,
    /// URL of the server to connect to, such as `https://agents.example.com`; its token is read from `TOKENRAIL_TOKEN`
    /// [default: the server that uses the data folder]
    #[arg(long, global = true, env = "TOKENRAIL_URL", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Address of the server to connect to; for `up`, `serve` and `demo`, address to listen on
    #[arg(long, global = true, env = "TOKENRAIL_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Send no token; for `up`, `serve` and `demo`, accept requests without a token
    #[arg(long, global = true)]
    pub(crate) insecure_no_auth: bool,
    /// When to use colours. `auto`: only on a terminal, unless `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` or `TERM=dumb`
    /// says otherwise
    #[arg(long, global = true, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    pub(crate) color: ColorWhen,
    /// Print JSON lines instead of text. Has no effect on the output of `serve`, `export` and `completions`
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the server, open its page in a browser if there is a display, and run until Ctrl-C. If a server already
    /// uses the data folder, or `--url` names a server, only open its page
    Up(up::UpArgs),
    /// Run the server until Ctrl-C. Agents keep running when it stops; when it starts again, it takes them over
    Serve(serve::ServeArgs),
    /// Play the demo, a recorded session, on the running server or on a new one. The demo needs no account
    Demo(demo::DemoArgs),
    /// Launch an agent and follow it until its turn ends
    #[command(after_help = run::NOTES)]
    Run(run::RunArgs),
    /// Print an agent's events, then follow it live until no turn is running or queued
    Tail(tail::TailArgs),
    /// List agents, newest first
    Ls(ls::LsArgs),
    /// Send a message to an agent and follow its answer
    Send(send::SendArgs),
    /// Show the details of one agent
    Show(show::ShowArgs),
    /// List the files in the agent's git repository that differ from the commit at the start of a turn
    Changes(changes::ChangesArgs),
    /// Cancel the running turn and all queued turns of an agent
    Cancel {
        #[command(flatten)]
        agent: AgentArg,
    },
    /// Allow agents to work in a folder, or list the folders that `allow` and `run --cwd` have added
    Allow(allow::AllowArgs),
    /// Answer an agent's permission request
    Answer(answer::AnswerArgs),
    /// List the open permission requests of all agents, oldest first
    Questions,
    /// Rename an agent
    Rename(edit::RenameArgs),
    /// Pin or unpin agents. The page lists first the agents that need you, then pinned agents, then the others
    Pin(edit::PinArgs),
    /// Archive or unarchive agents. An archived agent is left out of lists. It is unarchived automatically
    /// when it receives a message or asks for permission
    Archive(edit::ArchiveArgs),
    /// Delete agents: remove them from the lists, but keep their history
    Rm(rm::RmArgs),
    /// Print a link that logs a browser in to the web page, and open it if there is a display. The link can be
    /// used once and expires after 10 minutes
    Open(open::OpenArgs),
    /// Run an MCP server on standard input and output. Its tools let an MCP client launch agents on the running
    /// server, wait for them and read their output
    Mcp,
    /// Export an agent, with all turns that have ended (at least one is required), to standard output or to a file
    Export(copies::ExportArgs),
    /// Import an exported agent as a read-only copy and print its id
    Import(copies::ImportArgs),
    /// Replay an agent's history as a new agent, with the original timing, and follow it
    Replay(copies::ReplayArgs),
    /// Parse stored output again with this version's parsers, and show (or, with --apply, save) the differences. Stop
    /// the server first
    Reparse(reparse::ReparseArgs),
    /// Back up the SQLite database to a new or empty folder and verify the copy; works while the server is running
    Backup(backup::BackupArgs),
    /// List the nodes (the servers that share the database), or remove a node that will not come back
    Nodes(nodes::NodesArgs),
    /// Copy the database of the data folder into an empty PostgreSQL database, and verify the copy. Stop the server
    /// first; agents can keep running. If the command is interrupted, run it again
    Move(move_data::MoveArgs),
    /// Check the configuration, programs, folders, database and file permissions
    Doctor,
    /// Print the access token that clients need, or replace it
    Token(token::TokenArgs),
    /// Show which configuration file is read, show all settings, or write an example file
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

impl Command {
    /// Whether the process becomes a server.
    pub(crate) fn starts_server(&self) -> bool {
        matches!(self, Self::Up(_) | Self::Serve(_) | Self::Demo(_))
    }
}

fn model_api(name: &str) -> Result<ModelApi, &'static str> {
    ModelApi::from_name(name).ok_or("unknown API")
}
