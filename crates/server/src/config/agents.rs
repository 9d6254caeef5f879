//! `[agents.NAME]`: the programs that can be run. They are configuration, never API.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::problem::with_suggestion;
use super::{absolute, expand_home};

/// One configured agent type.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentConfig {
    /// Which parser reads its output.
    pub format: String,
    pub runner: RunnerConfig,
    /// Folders inside which a launch may choose its working directory.
    pub cwd_roots: Vec<PathBuf>,
}

/// How it is run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunnerConfig {
    Process(ProcessConfig),
    Proxy(ProxyConfig),
    Replay(ReplayConfig),
}

/// `runner = "process"`: a program, supervised.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessConfig {
    /// Found on `PATH`, or absolute.
    pub program: String,
    pub args: Vec<String>,
    /// Added where a session is resumed; `{session}` is its id.
    pub resume_args: Vec<String>,
    /// Added where the launch names a model; `{model}` is its name.
    pub model_args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub pass_env: Vec<String>,
    /// A cancel begins with an interrupt (SIGINT) instead of SIGTERM.
    pub interrupt: bool,
}

/// `runner = "proxy"`: a service that runs the agent and sends its lines.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyConfig {
    /// The service's address; `/agent/stream` is added to it.
    pub url: String,
}

/// `runner = "replay"`: a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayConfig {
    pub transcript: Transcript,
    /// 1 is real time, 0 as fast as it goes.
    pub speed: f64,
}

/// Which recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transcript {
    BuiltIn,
    File(PathBuf),
}

/// The formats that have a parser.
pub(crate) const FORMATS: [&str; 1] = ["claude"];

/// The keys of `[agents.NAME]`; which of them are allowed depends on the runner.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AgentTable {
    runner: Option<String>,
    format: Option<String>,
    program: Option<String>,
    args: Option<Vec<String>>,
    resume_args: Option<Vec<String>>,
    model_args: Option<Vec<String>>,
    prompt: Option<String>,
    env: Option<BTreeMap<String, String>>,
    pass_env: Option<Vec<String>>,
    interrupt: Option<bool>,
    cwd_roots: Option<Vec<PathBuf>>,
    url: Option<String>,
    transcript: Option<String>,
    speed: Option<f64>,
}

/// A key, and what is wrong with it.
type Wrong = (&'static str, String);

fn missing(key: &'static str, what: &str) -> Wrong {
    (key, format!("{key} is missing: {what}"))
}

impl AgentTable {
    /// # Errors
    /// The key that is wrong, and why.
    pub(super) fn check(self, home: Option<&Path>) -> Result<AgentConfig, Wrong> {
        let format = self.format.clone().unwrap_or_else(|| "claude".to_owned());
        if !FORMATS.contains(&format.as_str()) {
            let what = with_suggestion(&format, FORMATS.into_iter());
            return Err(("format", format!("format is {what}; known are {}", FORMATS.join(", "))));
        }
        let roots = self.cwd_roots.clone().unwrap_or_default();
        let cwd_roots = roots.iter().map(|root| absolute(&expand_home(root, home))).collect();
        let runner = match self.runner.as_deref().unwrap_or("process") {
            "process" => RunnerConfig::Process(self.process()?),
            "proxy" => RunnerConfig::Proxy(self.proxy()?),
            "replay" => RunnerConfig::Replay(self.replay(home)?),
            other => {
                let what = with_suggestion(other, ["process", "proxy", "replay"].into_iter());
                return Err(("runner", format!("runner is {what}; known are process, proxy, replay")));
            }
        };
        Ok(AgentConfig { format, runner, cwd_roots })
    }

    fn process(self) -> Result<ProcessConfig, Wrong> {
        let program = self.program.ok_or_else(|| missing("program", "the name or path of what to run"))?;
        if self.prompt.as_deref().is_some_and(|prompt| prompt != "stdin") {
            return Err((
                "prompt",
                "prompt is \"stdin\" and nothing else: a prompt never goes into argv".to_owned(),
            ));
        }
        let claude = default_process();
        Ok(ProcessConfig {
            program,
            args: self.args.unwrap_or(claude.args),
            resume_args: self.resume_args.unwrap_or(claude.resume_args),
            model_args: self.model_args.unwrap_or(claude.model_args),
            env: self.env.unwrap_or_default(),
            pass_env: self.pass_env.unwrap_or(claude.pass_env),
            interrupt: self.interrupt.unwrap_or(claude.interrupt),
        })
    }

    fn proxy(self) -> Result<ProxyConfig, Wrong> {
        let url = self.url.ok_or_else(|| missing("url", "the address of the service"))?;
        if url.starts_with("http://") || url.starts_with("https://") {
            Ok(ProxyConfig { url })
        } else {
            Err(("url", format!("url is {url:?}; it begins with http:// or https://")))
        }
    }

    fn replay(self, home: Option<&Path>) -> Result<ReplayConfig, Wrong> {
        let transcript = match self.transcript.as_deref().unwrap_or("builtin") {
            "builtin" => Transcript::BuiltIn,
            path => Transcript::File(absolute(&expand_home(Path::new(path), home))),
        };
        let speed = self.speed.unwrap_or(1.0);
        if speed.is_finite() && 0.0 <= speed {
            Ok(ReplayConfig { transcript, speed })
        } else {
            Err(("speed", "speed is a number from 0 on: 1 is real time, 0 as fast as it goes".to_owned()))
        }
    }
}

/// The types that are there without any configuration.
pub(super) fn built_in() -> BTreeMap<String, AgentConfig> {
    let claude = AgentConfig {
        format: "claude".to_owned(),
        runner: RunnerConfig::Process(default_process()),
        cwd_roots: Vec::new(),
    };
    let demo = AgentConfig {
        format: "claude".to_owned(),
        runner: RunnerConfig::Replay(ReplayConfig { transcript: Transcript::BuiltIn, speed: 1.0 }),
        cwd_roots: Vec::new(),
    };
    BTreeMap::from([("claude-code".to_owned(), claude), ("demo".to_owned(), demo)])
}

fn default_process() -> ProcessConfig {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    ProcessConfig {
        program: "claude".to_owned(),
        args: words(&["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]),
        resume_args: words(&["--resume", "{session}"]),
        model_args: words(&["--model", "{model}"]),
        env: BTreeMap::new(),
        pass_env: words(&["ANTHROPIC_API_KEY", "HOME", "PATH"]),
        interrupt: true,
    }
}
