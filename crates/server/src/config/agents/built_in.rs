//! The agent types that exist without any configuration, and the defaults of the keys that a block omits.

use std::collections::BTreeMap;

use tokenrail_parser::{Format, JsonlMapping};
use tokenrail_runner::{ModelApi, ModelSettings, Protocol, Unanswered};

use super::{AgentConfig, ConverseBlock, ProcessBlock, RecordingSource, ReplayBlock, RunnerConfig};

/// The types that exist without any configuration.
pub(super) fn built_in() -> BTreeMap<String, AgentConfig> {
    let replay = ReplayBlock { transcript: RecordingSource::BuiltIn, speed: 1.0 };
    let api = |api| RunnerConfig::Http(ModelSettings::official(api));
    let types = [
        ("anthropic-api", "anthropic", api(ModelApi::Anthropic)),
        ("claude-code", "claude-two-way", RunnerConfig::Process(process("claude-two-way"))),
        ("claude-code-one-way", "claude", RunnerConfig::Process(process("claude"))),
        ("codex", "codex-app-server", RunnerConfig::Process(process("codex-app-server"))),
        ("codex-one-way", "codex", RunnerConfig::Process(process("codex"))),
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
        Some((name.to_owned(), AgentConfig { format: Format::from_name(format)?, jsonl, runner, cwd_roots }))
    });
    types.collect()
}

/// The built-in type that a block of this name changes, if it is one.
pub(super) fn changed_by(name: &str) -> Option<AgentConfig> {
    built_in().remove(name)
}

/// The built-in types by the names that they had in earlier versions, unless a configured type has the name. Agents of
/// these types exist, and must continue.
pub(in crate::config) fn former(configured: &BTreeMap<String, AgentConfig>) -> BTreeMap<String, AgentConfig> {
    let mut now = built_in();
    let former = [("claude-two-way", "claude-code"), ("codex-app-server", "codex")];
    let former = former.into_iter().filter(|(name, _)| !configured.contains_key(*name));
    former.filter_map(|(name, new)| Some((name.to_owned(), now.remove(new)?))).collect()
}

/// The defaults for a program of that format. If a format can belong to any program, only what suits all programs.
pub(super) fn process(format: &str) -> ProcessBlock {
    let any = ProcessBlock {
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
        "claude" => ProcessBlock {
            args: words(&["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]),
            resume_args: words(&["--resume", "{session}"]),
            // The second and third name a gateway and its key.
            pass_env: words(&[
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_AUTH_TOKEN",
                "ANTHROPIC_BASE_URL",
                "HOME",
                "PATH",
            ]),
            ..any
        },
        "claude-two-way" => claude_two_way(),
        "codex" => ProcessBlock {
            args: words(&["exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write"]),
            // A subcommand: it must follow all options of `exec`.
            resume_args: words(&["resume", "{session}"]),
            pass_env: words(&["CODEX_HOME", "HOME", "OPENAI_API_KEY", "PATH"]),
            ..any
        },
        "codex-app-server" => codex_app_server(),
        "gemini" => ProcessBlock {
            args: words(&["--output-format", "stream-json"]),
            resume_args: words(&["--resume", "{session}"]),
            // Otherwise the process is a launcher that ignores signals.
            env: BTreeMap::from([("GEMINI_CLI_NO_RELAUNCH".to_owned(), "true".to_owned())]),
            pass_env: words(&["GEMINI_API_KEY", "HOME", "PATH"]),
            ..any
        },
        "opencode" => ProcessBlock {
            args: words(&["run", "--format", "json", "--thinking"]),
            resume_args: words(&["--session", "{session}"]),
            pass_env: words(&["ANTHROPIC_API_KEY", "HOME", "OPENAI_API_KEY", "PATH"]),
            // It may continue after a SIGINT.
            interrupt: false,
            ..any
        },
        "acp" => by_acp(any),
        // An unknown program.
        _ => ProcessBlock { model_args: Vec::new(), interrupt: false, ..any },
    }
}

fn claude_two_way() -> ProcessBlock {
    ProcessBlock {
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
    }
}

fn codex_app_server() -> ProcessBlock {
    ProcessBlock {
        program: "codex".to_owned(),
        args: words(&[
            "app-server",
            "-c",
            "approval_policy=\"on-request\"",
            "-c",
            "sandbox_mode=\"workspace-write\"",
        ]),
        // Messages carry both.
        resume_args: Vec::new(),
        model_args: Vec::new(),
        converse: Some(converse(Protocol::CodexAppServer)),
        ..process("codex")
    }
}

/// The defaults for an interactive program: a permission request without an answer is rejected.
fn converse(protocol: Protocol) -> ConverseBlock {
    ConverseBlock {
        protocol,
        permission_timeout_s: 600,
        permission_default: Unanswered::Reject,
        files: true,
        rest_s: if protocol.can_be_idle() { 60 } else { 0 },
    }
}

/// The same program with the Agent Client Protocol: messages carry the session and the model.
fn by_acp(program: ProcessBlock) -> ProcessBlock {
    ProcessBlock {
        args: Vec::new(),
        resume_args: Vec::new(),
        model_args: Vec::new(),
        interrupt: true,
        converse: Some(converse(Protocol::Acp)),
        ..program
    }
}

fn gemini_acp() -> ProcessBlock {
    ProcessBlock {
        args: words(&["--acp"]),
        // If the client serves files, Gemini CLI treats a missing file as unreadable and creates no new files.
        converse: Some(ConverseBlock { files: false, ..converse(Protocol::Acp) }),
        ..by_acp(process("gemini"))
    }
}

fn opencode_acp() -> ProcessBlock {
    ProcessBlock { args: words(&["acp"]), ..by_acp(process("opencode")) }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_code_gets_the_address_and_the_key_of_a_gateway() {
        for name in ["claude-code", "claude-code-one-way"] {
            let RunnerConfig::Process(process) = built_in().remove(name).unwrap().runner else {
                panic!("{name}")
            };
            for variable in ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"] {
                assert!(process.pass_env.iter().any(|passed| passed == variable), "{name}: {variable}");
            }
        }
    }
}
