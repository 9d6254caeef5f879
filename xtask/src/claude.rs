//! The real agent program at one known version: in the target folder, from its public package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Failure, npm, workspace};

/// The known version. The program's output changes with almost every release.
const VERSION: &str = "2.1.330";
const PACKAGE: &str = "@anthropic-ai/claude-code";

/// The tests receive the program's path in this variable. Those that need it have `real_claude` in their path.
pub(crate) const VARIABLE: &str = "TOKENRAIL_TEST_CLAUDE";
pub(crate) const TESTS: &str = "real_claude";

/// Returns the path of the program. Fetches it if it is missing. The error says why it is not available.
pub(crate) fn ready() -> Result<PathBuf, Failure> {
    let folder = workspace::target().join("node");
    if let Some(program) = installed(&folder) {
        return Ok(program);
    }
    let package = format!("{PACKAGE}@{VERSION}");
    npm::fetch(&folder, &package, &["install", "--no-save", &package])?;
    installed(&folder)
        .ok_or_else(|| Failure::new(format!("{PACKAGE} {VERSION} has no program for this machine")))
}

/// The package contains a native program for each platform, and npm installs the one that fits. It runs without Node.
/// The launcher, which requires a newer Node than many machines have, is not used.
fn installed(folder: &Path) -> Option<PathBuf> {
    let scope = folder.join("node_modules").join(PACKAGE.split('/').next()?);
    let programs = fs::read_dir(scope).ok()?.filter_map(Result::ok);
    programs.map(|entry| entry.path().join("claude")).find(|program| is_the_known_version(program))
}

fn is_the_known_version(program: &Path) -> bool {
    let asked = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    asked.is_ok_and(|answer| {
        answer.status.success()
            && String::from_utf8_lossy(&answer.stdout).split_whitespace().next() == Some(VERSION)
    })
}
