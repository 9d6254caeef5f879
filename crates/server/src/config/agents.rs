//! `[agents.NAME]`: the programs that can be run. They are configuration, never API.

mod built_in;
mod http;
mod process;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokenrail_parser::{Format, JsonlMapping};
use tokenrail_runner::{ModelSettings, Protocol, Unanswered};

use super::problem::{ConfigError, with_suggestion};
use super::source::Source;

pub(super) use built_in::former;
pub(super) use http::sends_key_in_clear;
pub(super) use table::AgentTable;

/// The built-in types, and those of the file.
pub(super) fn all(
    tables: BTreeMap<String, AgentTable>,
    home: Option<&Path>,
    source: &Source,
) -> Result<BTreeMap<String, AgentConfig>, ConfigError> {
    let mut agents = built_in::built_in();
    for (name, agent) in tables {
        let wrong = |(key, message): (&str, String)| {
            source.wrong(&["agents", &name, key], format!("agents.{name}: {message}"))
        };
        let agent = agent.check(&name, home).map_err(wrong)?;
        agents.insert(name, agent);
    }
    Ok(agents)
}

/// Says that `server.default_agent` is no agent type.
pub(super) fn unknown_default(name: &str, agents: &BTreeMap<String, AgentConfig>) -> String {
    let what = with_suggestion(name, agents.keys().map(String::as_str));
    let known = agents.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    format!("server.default_agent: unknown agent type {what} (available: {known})")
}

/// One configured agent type.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Which parser reads its output.
    pub format: Format,
    /// Which field holds what. Used only with the format `jsonl`.
    pub jsonl: JsonlMapping,
    pub runner: RunnerConfig,
    /// Folders inside which a launch may choose its working directory.
    pub cwd_roots: Vec<PathBuf>,
}

/// How an agent type is run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunnerConfig {
    Process(ProcessBlock),
    /// `runner = "http"`: a model behind an HTTP API.
    Http(ModelSettings),
    Proxy(ProxyBlock),
    Replay(ReplayBlock),
}

/// `runner = "process"`: a program, supervised.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessBlock {
    /// Found on `PATH`, or absolute.
    pub program: String,
    pub args: Vec<String>,
    /// Added when a session is resumed. `{session}` stands for its id.
    pub resume_args: Vec<String>,
    /// Added when the launch names a model. `{model}` stands for its name.
    pub model_args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub pass_env: Vec<String>,
    /// A cancel begins with an interrupt (SIGINT) instead of SIGTERM.
    pub interrupt: bool,
    /// The protocol of an interactive program. `None` if the program reads its prompt and nothing more.
    pub converse: Option<ConverseBlock>,
}

/// The protocol of an interactive program, and what happens to its permission requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConverseBlock {
    pub protocol: Protocol,
    /// How long a permission request waits for an answer.
    pub permission_timeout_s: u64,
    /// The answer after that time.
    pub permission_default: Unanswered,
    /// Whether the program may read and write files of its working directory through the server.
    pub files: bool,
    /// How long the process stays for the next turn after a turn has ended. 0: each turn starts a process.
    pub rest_s: u64,
}

/// `runner = "proxy"`: a service that runs the agent and sends its lines.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyBlock {
    /// The service's address; `/agent/stream` is added to it.
    pub url: String,
}

/// `runner = "replay"`: a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayBlock {
    pub transcript: RecordingSource,
    /// 1 is the original speed, 0 is as fast as possible.
    pub speed: f64,
}

/// Which recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingSource {
    BuiltIn,
    File(PathBuf),
}
