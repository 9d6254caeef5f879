//! How the known programs are run: the types that are there without any configuration, and what a block leaves out.

use std::collections::BTreeMap;

use tokenrail_parser::{Format, JsonlMapping};

use super::agents::{AgentConfig, ProcessConfig, ReplayConfig, RunnerConfig, Transcript};

/// The types that are there without any configuration.
pub(super) fn built_in() -> BTreeMap<String, AgentConfig> {
    let replay = ReplayConfig { transcript: Transcript::BuiltIn, speed: 1.0 };
    let types = [
        ("claude-code", "claude", RunnerConfig::Process(process("claude"))),
        ("demo", "claude", RunnerConfig::Replay(replay)),
    ];
    let types = types.into_iter().filter_map(|(name, format, runner)| {
        let (jsonl, cwd_roots) = (JsonlMapping::default(), Vec::new());
        Some((name.to_owned(), AgentConfig { format: Format::named(format)?, jsonl, runner, cwd_roots }))
    });
    types.collect()
}

/// How a program of that format is run; of a format that is anybody's, only what fits any program.
pub(super) fn process(format: &str) -> ProcessConfig {
    match format {
        "claude" => ProcessConfig {
            program: "claude".to_owned(),
            args: words(&["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]),
            resume_args: words(&["--resume", "{session}"]),
            model_args: words(&["--model", "{model}"]),
            env: BTreeMap::new(),
            pass_env: words(&["ANTHROPIC_API_KEY", "HOME", "PATH"]),
            interrupt: true,
        },
        _ => ProcessConfig {
            program: String::new(),
            args: Vec::new(),
            resume_args: Vec::new(),
            model_args: Vec::new(),
            env: BTreeMap::new(),
            pass_env: words(&["HOME", "PATH"]),
            interrupt: false,
        },
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
