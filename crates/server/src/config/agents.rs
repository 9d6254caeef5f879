//! `[agents.NAME]`: the programs that can be run. They are configuration, never API.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};
use tokenrail_parser::{Format, JsonlMapping, formats};
use tokenrail_runner::{Protocol, Unanswered};

use super::http::{HttpConfig, HttpKeys};
use super::problem::with_suggestion;
use super::{absolute, expand_home, usual};

/// One configured agent type.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Which parser reads its output.
    pub format: Format,
    /// Which field is what, where the format is `jsonl`.
    pub jsonl: JsonlMapping,
    pub runner: RunnerConfig,
    /// Folders inside which a launch may choose its working directory.
    pub cwd_roots: Vec<PathBuf>,
}

/// How it is run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunnerConfig {
    Process(ProcessConfig),
    Http(HttpConfig),
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
    /// How it is spoken with; none where it takes its prompt and needs nothing more.
    pub converse: Option<ConverseConfig>,
}

/// How a program is spoken with, and what becomes of its questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConverseConfig {
    pub protocol: Protocol,
    /// How long a question waits for its answer.
    pub permission_timeout_s: u64,
    /// What becomes of it then.
    pub permission_default: Unanswered,
    /// Whether the program may ask for files in the folder that it works in.
    pub files: bool,
    /// How long its process waits for the next turn after one; 0 where each turn has its own.
    pub rest_s: u64,
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

/// The keys of `[agents.NAME]`; which of them are allowed depends on the runner.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AgentTable {
    runner: Option<String>,
    format: Option<String>,
    jsonl: Option<JsonlMapping>,
    program: Option<String>,
    args: Option<Vec<String>>,
    resume_args: Option<Vec<String>>,
    model_args: Option<Vec<String>>,
    prompt: Option<String>,
    env: Option<BTreeMap<String, String>>,
    pass_env: Option<Vec<String>>,
    interrupt: Option<bool>,
    permission_timeout_s: Option<u64>,
    permission_default: Option<Unanswered>,
    files: Option<bool>,
    rest_s: Option<u64>,
    cwd_roots: Option<Vec<PathBuf>>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    model: Option<String>,
    system: Option<String>,
    max_tokens: Option<u32>,
    parameters: Option<Map<String, Value>>,
    url: Option<String>,
    transcript: Option<String>,
    speed: Option<f64>,
}

/// The keys of each runner, beside those that all have.
const KEYS: [(&str, &[&str]); 5] = [
    ("process", &PROCESS_KEYS),
    ("acp", &PROCESS_KEYS),
    ("http", &["base_url", "api_key_env", "model", "system", "max_tokens", "parameters"]),
    ("proxy", &["url"]),
    ("replay", &["transcript", "speed"]),
];

const PROCESS_KEYS: [&str; 12] = [
    "program",
    "args",
    "resume_args",
    "model_args",
    "env",
    "pass_env",
    "interrupt",
    "prompt",
    "permission_timeout_s",
    "permission_default",
    "files",
    "rest_s",
];

/// The runner, and the format, of agents that speak the Agent Client Protocol.
const ACP: &str = "acp";

/// A key, and what is wrong with it.
pub(super) type Wrong = (&'static str, String);

fn missing(key: &'static str, what: &str) -> Wrong {
    (key, format!("{key} is missing: {what}"))
}

/// A name without a folder is looked up when the agent is started; where it would be looked for must not depend on
/// where the server was started.
fn check_program(program: &str, home: Option<&Path>) -> Result<(), Wrong> {
    if !program.is_empty() && (!program.contains('/') || program.starts_with('/')) {
        return Ok(());
    }
    let hint = match program {
        "" => String::new(),
        _ => format!("; did you mean \"{}\"?", absolute(&expand_home(Path::new(program), home)).display()),
    };
    Err(("program", format!("program is {program:?}; it is a name on PATH, or an absolute path{hint}")))
}

fn readable(transcript: PathBuf) -> Result<PathBuf, Wrong> {
    let wrong =
        |why: String| ("transcript", format!("transcript: {} cannot be read: {why}", transcript.display()));
    let file = File::open(&transcript).map_err(|error| wrong(error.to_string()))?;
    match file.metadata() {
        Ok(file) if file.is_dir() => Err(wrong("it is a folder".to_owned())),
        Ok(_) => Ok(transcript),
        Err(error) => Err(wrong(error.to_string())),
    }
}

impl AgentTable {
    /// # Errors
    /// The key that is wrong, and why.
    pub(super) fn check(self, home: Option<&Path>) -> Result<AgentConfig, Wrong> {
        let speaks_acp = self.runner.as_deref() == Some(ACP);
        let format = self.format.as_deref().unwrap_or(if speaks_acp { ACP } else { "claude" });
        let Some(format) = Format::named(format) else {
            let names = || formats().map(|format| format.name);
            let (what, known) = (with_suggestion(format, names()), names().collect::<Vec<_>>().join(", "));
            return Err(("format", format!("format is {what}; known are {known}")));
        };
        if speaks_acp && format.name != ACP {
            return Err((
                "format",
                format!("format is {:?}, and runner = \"acp\" has but \"acp\"", format.name),
            ));
        }
        if self.jsonl.is_some() && format.name != "jsonl" {
            let what = format!("jsonl means nothing to format = {:?}, but to \"jsonl\" alone", format.name);
            return Err(("jsonl", what));
        }
        let jsonl = self.jsonl.clone().unwrap_or_default();
        let roots = self.cwd_roots.clone().unwrap_or_default();
        let cwd_roots = roots.iter().map(|root| absolute(&expand_home(root, home))).collect();
        let runner = self.runner.clone().unwrap_or_else(|| "process".to_owned());
        let Some((_, keys)) = KEYS.iter().find(|(known, _)| *known == runner) else {
            let what = with_suggestion(&runner, KEYS.iter().map(|(known, _)| *known));
            return Err(("runner", format!("runner is {what}; known are process, acp, http, proxy, replay")));
        };
        self.check_keys(&runner, keys)?;
        if runner == "proxy" && usual::process(format.name).converse.is_some() {
            let what =
                format!("format = {:?} needs runner = \"process\": its agents are spoken with", format.name);
            return Err(("format", what));
        }
        let runner = match runner.as_str() {
            "http" => RunnerConfig::Http(self.http()?),
            "proxy" => RunnerConfig::Proxy(self.proxy()?),
            "replay" => RunnerConfig::Replay(self.replay(home)?),
            _ => RunnerConfig::Process(self.process(format, home)?),
        };
        Ok(AgentConfig { format, jsonl, runner, cwd_roots })
    }

    /// A key that the runner does not look at is a mistake: whoever has written it expects something of it.
    fn check_keys(&self, runner: &str, keys: &[&str]) -> Result<(), Wrong> {
        let given = [
            ("program", self.program.is_some()),
            ("args", self.args.is_some()),
            ("resume_args", self.resume_args.is_some()),
            ("model_args", self.model_args.is_some()),
            ("prompt", self.prompt.is_some()),
            ("env", self.env.is_some()),
            ("pass_env", self.pass_env.is_some()),
            ("interrupt", self.interrupt.is_some()),
            ("permission_timeout_s", self.permission_timeout_s.is_some()),
            ("permission_default", self.permission_default.is_some()),
            ("files", self.files.is_some()),
            ("rest_s", self.rest_s.is_some()),
            ("base_url", self.base_url.is_some()),
            ("api_key_env", self.api_key_env.is_some()),
            ("model", self.model.is_some()),
            ("system", self.system.is_some()),
            ("max_tokens", self.max_tokens.is_some()),
            ("parameters", self.parameters.is_some()),
            ("url", self.url.is_some()),
            ("transcript", self.transcript.is_some()),
            ("speed", self.speed.is_some()),
        ];
        let Some((key, _)) = given.into_iter().find(|(key, is_given)| *is_given && !keys.contains(key))
        else {
            return Ok(());
        };
        let keys = keys.join(", ");
        Err((
            key,
            format!(
                "{key} means nothing to runner = {runner:?}; it has runner, format, jsonl, cwd_roots, {keys}"
            ),
        ))
    }

    fn process(self, format: Format, home: Option<&Path>) -> Result<ProcessConfig, Wrong> {
        let usual = usual::process(format.name);
        let converse = self.converse(format, usual.converse)?;
        let program = self.program.ok_or_else(|| missing("program", "the name or path of what to run"))?;
        check_program(&program, home)?;
        if self.prompt.as_deref().is_some_and(|prompt| prompt != "stdin") {
            return Err((
                "prompt",
                "prompt is \"stdin\" and nothing else: a prompt never goes into argv".to_owned(),
            ));
        }
        Ok(ProcessConfig {
            converse,
            program,
            args: self.args.unwrap_or(usual.args),
            resume_args: self.resume_args.unwrap_or(usual.resume_args),
            model_args: self.model_args.unwrap_or(usual.model_args),
            env: self.env.unwrap_or(usual.env),
            pass_env: self.pass_env.unwrap_or(usual.pass_env),
            interrupt: self.interrupt.unwrap_or(usual.interrupt),
        })
    }

    fn http(self) -> Result<HttpConfig, Wrong> {
        let format =
            self.format.ok_or_else(|| missing("format", "the API that is asked, such as anthropic"))?;
        let keys = HttpKeys {
            base_url: self.base_url,
            api_key_env: self.api_key_env,
            model: self.model,
            system: self.system,
            max_tokens: self.max_tokens,
            parameters: self.parameters,
        };
        keys.check(&format)
    }

    /// How the program is spoken with.
    fn converse(
        &self,
        format: Format,
        usual: Option<ConverseConfig>,
    ) -> Result<Option<ConverseConfig>, Wrong> {
        let given = [
            ("permission_timeout_s", self.permission_timeout_s.is_some()),
            ("permission_default", self.permission_default.is_some()),
            ("files", self.files.is_some()),
            ("rest_s", self.rest_s.is_some()),
        ];
        let Some(usual) = usual else {
            let given = given.into_iter().find(|(_, is_given)| *is_given);
            return given.map_or(Ok(None), |(key, _)| {
                Err((
                    key,
                    format!("{key} means nothing to format = {:?}: nobody speaks with it", format.name),
                ))
            });
        };
        if self.files.is_some() && usual.protocol != Protocol::Acp {
            return Err((
                "files",
                format!("files means nothing to format = {:?}, but to \"acp\" alone", format.name),
            ));
        }
        if self.rest_s.is_some() && !usual.protocol.can_rest() {
            return Err((
                "rest_s",
                format!("rest_s means nothing to format = {:?}: its process ends with its turn", format.name),
            ));
        }
        if self.permission_timeout_s == Some(0) {
            return Err((
                "permission_timeout_s",
                "permission_timeout_s is 0; it must be at least 1".to_owned(),
            ));
        }
        Ok(Some(ConverseConfig {
            permission_timeout_s: self.permission_timeout_s.unwrap_or(usual.permission_timeout_s),
            permission_default: self.permission_default.unwrap_or(usual.permission_default),
            files: self.files.unwrap_or(usual.files),
            rest_s: self.rest_s.unwrap_or(usual.rest_s),
            ..usual
        }))
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
            path => Transcript::File(readable(absolute(&expand_home(Path::new(path), home)))?),
        };
        let speed = self.speed.unwrap_or(1.0);
        if speed.is_finite() && 0.0 <= speed {
            Ok(ReplayConfig { transcript, speed })
        } else {
            Err(("speed", "speed is a number from 0 on: 1 is real time, 0 as fast as it goes".to_owned()))
        }
    }
}
