//! The keys of a block `[agents.NAME]`, and what is wrong with them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};
use tokenrail_parser::{Format, JsonlMapping, formats};
use tokenrail_runner::{ModelSettings, Unanswered};

use super::http::HttpKeys;
use super::process::{ConverseKeys, ProcessKeys};
use super::{AgentConfig, ProxyBlock, RecordingSource, ReplayBlock, RunnerConfig, built_in};
use crate::config::problem::{Wrong, missing, with_suggestion};
use crate::config::{absolute, expand_home};

/// The keys of `[agents.NAME]`. The runner decides which of them are allowed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct AgentTable {
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

/// The keys of each runner, besides those of every runner.
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

impl AgentTable {
    /// Checks the block of this name. If a built-in type has the name, the block changes it: a key that it leaves out
    /// has the value of the built-in type, unless the block names another runner or format.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub(in crate::config) fn check(self, name: &str, home: Option<&Path>) -> Result<AgentConfig, Wrong> {
        let changed = built_in::changed_by(name).filter(|changed| self.may_change(changed));
        let usual_runner = changed.as_ref().map_or("process", |changed| runner_name(&changed.runner));
        let runner = self.runner.clone().unwrap_or_else(|| usual_runner.to_owned());
        let Some((_, keys)) = KEYS.iter().find(|(known, _)| *known == runner) else {
            let what = with_suggestion(&runner, KEYS.iter().map(|(known, _)| *known));
            return Err((
                "runner",
                format!("runner: unknown runner {what} (available: process, acp, http, proxy, replay)"),
            ));
        };
        let format = self.check_format(&runner, changed.as_ref())?;
        self.check_keys(&runner, keys)?;
        let jsonl = self.jsonl.clone().unwrap_or_default();
        let roots = self.cwd_roots.clone().unwrap_or_default();
        let cwd_roots = roots.iter().map(|root| absolute(&expand_home(root, home))).collect();
        let runner = match runner.as_str() {
            "http" => RunnerConfig::Http(self.http(changed.is_some().then_some(format))?),
            "proxy" => RunnerConfig::Proxy(self.proxy()?),
            "replay" => RunnerConfig::Replay(self.replay(home)?),
            _ => {
                let usual = changed.and_then(|changed| match changed.runner {
                    RunnerConfig::Process(process) => Some(process),
                    _ => None,
                });
                RunnerConfig::Process(self.process().check(format, usual, home)?)
            }
        };
        Ok(AgentConfig { format, jsonl, runner, cwd_roots })
    }

    /// Whether the block names neither another runner nor another format than this type has.
    fn may_change(&self, built_in: &AgentConfig) -> bool {
        let runner = runner_name(&built_in.runner);
        let format = built_in.format.name;
        self.runner.as_ref().is_none_or(|own| own == runner || (own == ACP && format == ACP))
            && self.format.as_ref().is_none_or(|own| own == format)
    }

    fn check_format(&self, runner: &str, changed: Option<&AgentConfig>) -> Result<Format, Wrong> {
        let speaks_acp = runner == ACP;
        let usual = changed.map_or(if speaks_acp { ACP } else { "claude" }, |changed| changed.format.name);
        let format = self.format.as_deref().unwrap_or(usual);
        let Some(format) = Format::from_name(format) else {
            let names = || formats().map(|format| format.name);
            let (what, known) = (with_suggestion(format, names()), names().collect::<Vec<_>>().join(", "));
            return Err(("format", format!("format: unknown format {what} (available: {known})")));
        };
        let name = format.name;
        if speaks_acp && name != ACP {
            return Err((
                "format",
                format!("format: runner = \"acp\" requires format = \"acp\", not {name:?}"),
            ));
        }
        if self.jsonl.is_some() && name != "jsonl" {
            return Err(("jsonl", format!("jsonl: not used with format = {name:?}, only with \"jsonl\"")));
        }
        let is_interactive = built_in::process(name).converse.is_some();
        if runner == "proxy" && is_interactive {
            let why = "because its agents are interactive";
            return Err(("format", format!("format: {name:?} requires runner = \"process\", {why}")));
        }
        // In earlier versions, such a block was not interactive, so its arguments may be those of another format.
        if self.args.is_some() && self.format.is_none() && !speaks_acp && is_interactive {
            let what = "args: set format too, because arguments depend on it";
            let what = format!("{what}; if these are for {name}, add format = {name:?}");
            return Err(("args", what));
        }
        Ok(format)
    }

    /// A key that the runner ignores is a mistake: its author expects an effect.
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
                "{key}: not used with runner = {runner:?}; keys of this runner: runner, format, jsonl, cwd_roots, \
                 {keys}"
            ),
        ))
    }

    fn process(self) -> ProcessKeys {
        ProcessKeys {
            program: self.program,
            args: self.args,
            resume_args: self.resume_args,
            model_args: self.model_args,
            prompt: self.prompt,
            env: self.env,
            pass_env: self.pass_env,
            interrupt: self.interrupt,
            converse: ConverseKeys {
                permission_timeout_s: self.permission_timeout_s,
                permission_default: self.permission_default,
                files: self.files,
                rest_s: self.rest_s,
            },
        }
    }

    /// `usual`: the format if the block has none.
    fn http(self, usual: Option<Format>) -> Result<ModelSettings, Wrong> {
        let format = self.format.or_else(|| usual.map(|format| format.name.to_owned()));
        let format = format.ok_or_else(|| missing("format", "set the API to use, such as anthropic"))?;
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

    fn proxy(self) -> Result<ProxyBlock, Wrong> {
        let url = self.url.ok_or_else(|| missing("url", "set the URL of the service"))?;
        if url.starts_with("http://") || url.starts_with("https://") {
            Ok(ProxyBlock { url })
        } else {
            Err(("url", format!("url: {url:?} must begin with http:// or https://")))
        }
    }

    fn replay(self, home: Option<&Path>) -> Result<ReplayBlock, Wrong> {
        let transcript = match self.transcript.as_deref().unwrap_or("builtin") {
            "builtin" => RecordingSource::BuiltIn,
            path => RecordingSource::File(readable(absolute(&expand_home(Path::new(path), home)))?),
        };
        let speed = self.speed.unwrap_or(1.0);
        if speed.is_finite() && 0.0 <= speed {
            Ok(ReplayBlock { transcript, speed })
        } else {
            Err((
                "speed",
                "speed: must be a number, 0 or greater: 1 is the original speed, 0 is as fast as possible"
                    .to_owned(),
            ))
        }
    }
}

fn runner_name(runner: &RunnerConfig) -> &'static str {
    match runner {
        RunnerConfig::Process(_) => "process",
        RunnerConfig::Http(_) => "http",
        RunnerConfig::Proxy(_) => "proxy",
        RunnerConfig::Replay(_) => "replay",
    }
}

fn readable(transcript: PathBuf) -> Result<PathBuf, Wrong> {
    let wrong =
        |why: String| ("transcript", format!("transcript: cannot read {}: {why}", transcript.display()));
    let file = File::open(&transcript).map_err(|error| wrong(error.to_string()))?;
    match file.metadata() {
        Ok(file) if file.is_dir() => Err(wrong("it is a folder".to_owned())),
        Ok(_) => Ok(transcript),
        Err(error) => Err(wrong(error.to_string())),
    }
}
