//! Packages of npm: for the tests only, in the target folder, each at one known version.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::{Failure, process, tools};

/// The largest package is about 100 MB.
const FETCH_LIMIT: Duration = Duration::from_mins(5);

/// Runs npm in a folder, which gets what is fetched and a cache beside it. No scripts: nothing of a package is run
/// before a test runs it.
pub(crate) fn fetch(folder: &Path, what: &str, arguments: &[&str]) -> Result<(), Failure> {
    if tools::found(&["npm"]).is_none() {
        tools::install("npm")?;
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
