//! How to start the real `claude` program so that it only talks to the scripted model.

use std::path::{Path, PathBuf};

use super::ModelServer;

/// The output is JSON lines with every delta. The program reads the prompt from standard input.
pub(crate) const ARGUMENTS: [&str; 5] =
    ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"];

/// The program to test with.
pub(crate) fn program() -> PathBuf {
    let set = std::env::var_os("TOKENRAIL_TEST_CLAUDE").map(PathBuf::from);
    set.expect("TOKENRAIL_TEST_CLAUDE is the path of the claude program; `cargo xtask test` fetches it and sets this")
}

/// The configuration block of the agent type `claude-code`. Its sessions and settings are in `home`.
pub(crate) fn block(model: &ModelServer, home: &Path, more_args: &[&str]) -> String {
    let environment = environment(model, home);
    let env: Vec<_> = environment.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
    let args: Vec<_> = ARGUMENTS.iter().chain(more_args).map(|arg| format!("{arg:?}")).collect();
    format!(
        "[agents.claude-code]\nformat = \"claude\"\nprogram = \"{}\"\nargs = [{}]\npass_env = [\"PATH\"]\nenv = {{ {} }}\n",
        program().display(),
        args.join(", "),
        env.join(", "),
    )
}

/// The environment that the program needs besides `PATH`. Its sessions and settings are in `home`.
pub(crate) fn environment(model: &ModelServer, home: &Path) -> Vec<(&'static str, String)> {
    let home = home.to_str().expect("a path in UTF-8").to_owned();
    vec![
        ("ANTHROPIC_BASE_URL", model.url().to_owned()),
        ("ANTHROPIC_API_KEY", "dummy".to_owned()),
        ("CLAUDE_CONFIG_DIR", format!("{home}/.claude")),
        ("HOME", home),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ("DISABLE_TELEMETRY", "1".to_owned()),
        ("DISABLE_ERROR_REPORTING", "1".to_owned()),
        ("DISABLE_AUTOUPDATER", "1".to_owned()),
    ]
}
