//! How the known programs are run: the types that are there without any configuration, and what a block leaves out.

use std::collections::BTreeMap;

use tokenrail_parser::{Format, JsonlMapping};
use tokenrail_runner::{ModelApi, Protocol, Unanswered};

use super::agents::{AgentConfig, ConverseConfig, ProcessConfig, ReplayConfig, RunnerConfig, Transcript};
use super::http::HttpConfig;

/// The types that are there without any configuration.
pub(super) fn built_in() -> BTreeMap<String, AgentConfig> {
    let replay = ReplayConfig { transcript: Transcript::BuiltIn, speed: 1.0 };
    let api = |api| RunnerConfig::Http(HttpConfig::official(api));
    let types = [
        ("anthropic-api", "anthropic", api(ModelApi::Anthropic)),
        ("claude-code", "claude", RunnerConfig::Process(process("claude"))),
        ("claude-two-way", "claude-two-way", RunnerConfig::Process(process("claude-two-way"))),
        ("codex", "codex", RunnerConfig::Process(process("codex"))),
        ("codex-app-server", "codex-app-server", RunnerConfig::Process(process("codex-app-server"))),
        ("demo", "claude", RunnerConfig::Replay(replay)),
        ("gemini", "gemini", RunnerConfig::Process(process("gemini"))),
        ("gemini-acp", "acp", RunnerConfig::Process(gemini_acp())),
        ("openai-chat", "openai-chat", api(ModelApi::OpenAiChat)),
        ("openai-responses", "openai-responses", api(ModelApi::OpenAiResponses)),
        ("opencode", "opencode", RunnerConfig::Process(process("opencode"))),
        ("opencode-acp", "acp", RunnerConfig::Process(opencode_acp())),
    ];
    let types = types.into_iter().filter_map(|(name, format, runner)| {
        let (jsonl, cwd_roots) = (JsonlMapping::default(), Vec::new());
        Some((name.to_owned(), AgentConfig { format: Format::named(format)?, jsonl, runner, cwd_roots }))
    });
    types.collect()
}

/// How a program of that format is run; of a format that is anybody's, only what fits any program.
pub(super) fn process(format: &str) -> ProcessConfig {
    let any = ProcessConfig {
        program: format.to_owned(),
        args: Vec::new(),
        resume_args: Vec::new(),
        model_args: words(&["--model", "{model}"]),
        env: BTreeMap::new(),
        pass_env: words(&["HOME", "PATH"]),
        interrupt: true,
        converse: None,
    };
    match format {
        "claude" => ProcessConfig {
            args: words(&["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]),
            resume_args: words(&["--resume", "{session}"]),
            pass_env: words(&["ANTHROPIC_API_KEY", "HOME", "PATH"]),
            ..any
        },
        "claude-two-way" => ProcessConfig {
            program: "claude".to_owned(),
            args: words(&[
                "-p",
                "--input-format",
                "stream-json",
                "--output-format",
                "stream-json",
                "--verbose",
                "--include-partial-messages",
                "--permission-prompt-tool",
                "stdio",
            ]),
            converse: Some(converse(Protocol::Claude)),
            ..process("claude")
        },
        "codex" => ProcessConfig {
            args: words(&["exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write"]),
            // A subcommand, so that it comes after all that belongs to `exec`.
            resume_args: words(&["resume", "{session}"]),
            pass_env: words(&["CODEX_HOME", "HOME", "OPENAI_API_KEY", "PATH"]),
            ..any
        },
        "codex-app-server" => ProcessConfig {
            program: "codex".to_owned(),
            args: words(&[
                "app-server",
                "-c",
                "approval_policy=\"on-request\"",
                "-c",
                "sandbox_mode=\"workspace-write\"",
            ]),
            // It is asked for both by messages.
            resume_args: Vec::new(),
            model_args: Vec::new(),
            converse: Some(converse(Protocol::CodexAppServer)),
            ..process("codex")
        },
        "gemini" => ProcessConfig {
            args: words(&["--output-format", "stream-json"]),
            resume_args: words(&["--resume", "{session}"]),
            // Otherwise it is a launcher that listens to no signal.
            env: BTreeMap::from([("GEMINI_CLI_NO_RELAUNCH".to_owned(), "true".to_owned())]),
            pass_env: words(&["GEMINI_API_KEY", "HOME", "PATH"]),
            ..any
        },
        "opencode" => ProcessConfig {
            args: words(&["run", "--format", "json", "--thinking"]),
            resume_args: words(&["--session", "{session}"]),
            pass_env: words(&["ANTHROPIC_API_KEY", "HOME", "OPENAI_API_KEY", "PATH"]),
            // It may go on after a SIGINT.
            interrupt: false,
            ..any
        },
        "acp" => by_acp(any),
        // Anybody's program: nothing is known of it.
        _ => ProcessConfig { model_args: Vec::new(), interrupt: false, ..any },
    }
}

/// How a program is spoken with that asks questions: nothing is allowed by nobody's answer.
fn converse(protocol: Protocol) -> ConverseConfig {
    ConverseConfig {
        protocol,
        permission_timeout_s: 600,
        permission_default: Unanswered::Reject,
        files: true,
        rest_s: if protocol.can_rest() { 60 } else { 0 },
    }
}

/// The same program, spoken with by the Agent Client Protocol: session and model come in messages.
fn by_acp(program: ProcessConfig) -> ProcessConfig {
    ProcessConfig {
        args: Vec::new(),
        resume_args: Vec::new(),
        model_args: Vec::new(),
        interrupt: true,
        converse: Some(converse(Protocol::Acp)),
        ..program
    }
}

fn gemini_acp() -> ProcessConfig {
    ProcessConfig {
        args: words(&["--acp"]),
        // Where a client has files, Gemini CLI takes a file that is not there yet for one that cannot be read, and
        // so makes no new ones.
        converse: Some(ConverseConfig { files: false, ..converse(Protocol::Acp) }),
        ..by_acp(process("gemini"))
    }
}

fn opencode_acp() -> ProcessConfig {
    ProcessConfig { args: words(&["acp"]), ..by_acp(process("opencode")) }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
