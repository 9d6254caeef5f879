//! The real agent program: one known version of it, in the target folder, from its public package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Failure, npm, workspace};

/// A known version: its output changes with almost every release.
const VERSION: &str = "2.1.330";
const PACKAGE: &str = "@anthropic-ai/claude-code";

/// The tests get the program's path by this variable, and the ones that need it are called so.
pub(crate) const VARIABLE: &str = "TOKENRAIL_TEST_CLAUDE";
pub(crate) const TESTS: &str = "real_claude";

/// The program, fetched if it is not there yet. The error is the reason why it can't be had.
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

/// The package brings a native program of its own for each platform, and npm picks the one that fits.
/// So no Node is needed to run it, and the launcher, which wants a newer Node than many have, is left aside.
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
