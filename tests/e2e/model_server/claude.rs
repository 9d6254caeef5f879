//! How the real `claude` program is started, so that it talks to the scripted model and to nobody else.

use std::path::{Path, PathBuf};

use super::ModelServer;

/// Its output as JSON lines with every delta; the prompt comes on standard input.
pub(crate) const ARGUMENTS: [&str; 5] =
    ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"];

/// The program to test with.
pub(crate) fn program() -> PathBuf {
    let set = std::env::var_os("TOKENRAIL_TEST_CLAUDE").map(PathBuf::from);
    set.expect("TOKENRAIL_TEST_CLAUDE is the path of the claude program; `cargo xtask test` fetches it and sets this")
}

/// All that the program needs of an environment, besides `PATH`. Its sessions and settings are kept in `home`.
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
