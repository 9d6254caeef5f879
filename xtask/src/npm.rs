//! Packages of npm: for the tests only, in the target folder, each at one known version.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{Failure, process};

/// The largest package is about 100 MB.
const FETCH_LIMIT: Duration = Duration::from_mins(5);
const SYSTEM_INSTALL_LIMIT: Duration = Duration::from_mins(5);

/// Runs npm in a folder, which gets what is fetched and a cache beside it. No scripts: nothing of a package is run
/// before a test runs it.
pub(crate) fn fetch(folder: &Path, what: &str, arguments: &[&str]) -> Result<(), Failure> {
    if !answers("npm") {
        install_npm()?;
    }
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::new(format!("cannot create {}: {error}", folder.display())))?;
    let mut npm = Command::new("npm");
    npm.args(arguments).arg("--prefix").arg(folder).arg("--cache").arg(folder.join("cache"));
    npm.args(["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]);
    // A package's wish for a newer Node must not stop an installation: npm's own Node runs none of them.
    npm.args(["--engine-strict=false", "--loglevel=error", "--include=optional"]);
    npm.current_dir(folder);
    process::step_within(FETCH_LIMIT, &format!("fetching {what}"), &mut npm)
}

/// On a bare machine that is ours to change, such as a build container, npm is installed by the system.
fn install_npm() -> Result<(), Failure> {
    let missing = "npm is missing (needed to fetch what the tests talk to); install it, then try again";
    if !is_root() || !answers("apt-get") {
        return Err(Failure::new(missing));
    }
    let apt = |args: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").arg("-qq").args(args);
        process::step_within(SYSTEM_INSTALL_LIMIT, "installing npm by apt-get", &mut apt)
    };
    let installed =
        apt(&["update"]).and_then(|()| apt(&["install", "--yes", "--no-install-recommends", "npm"]));
    installed.map_err(|failure| Failure::new(format!("{missing} ({failure})")))
}

fn is_root() -> bool {
    let asked = Command::new("id").arg("-u").stdin(Stdio::null()).output();
    asked.is_ok_and(|answer| answer.stdout.trim_ascii() == b"0")
}

fn answers(program: &str) -> bool {
    let asked = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    asked.is_ok_and(|answer| answer.status.success())
}
