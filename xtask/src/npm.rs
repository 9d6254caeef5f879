//! npm packages: for tests and benchmarks only, in the target folder, each at one known version.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::{Failure, process, system};

/// The largest package is about 100 MB.
const FETCH_LIMIT: Duration = Duration::from_mins(5);

/// Runs npm in a folder, into which the packages and a cache are written. Scripts are disabled: no code of a package
/// runs before a test runs it.
pub(crate) fn fetch(folder: &Path, what: &str, arguments: &[&str]) -> Result<(), Failure> {
    if system::found(&["npm"]).is_none() {
        system::install("npm")?;
    }
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::new(format!("cannot create {}: {error}", folder.display())))?;
    let mut npm = Command::new("npm");
    npm.args(arguments).arg("--prefix").arg(folder).arg("--cache").arg(folder.join("cache"));
    npm.args(["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]);
    // A package that requires a newer Node must not stop the installation: npm's own Node does not run the packages.
    npm.args(["--engine-strict=false", "--loglevel=error", "--include=optional"]);
    npm.current_dir(folder);
    process::step_within(FETCH_LIMIT, &format!("fetching {what}"), &mut npm)
}

/// Compiles a fetched package with its own script, for the Node of this machine.
pub(crate) fn compile(folder: &Path, package: &str) -> Result<(), Failure> {
    let mut npm = Command::new("npm");
    npm.args(["rebuild", package, "--loglevel=error", "--foreground-scripts=false"]);
    npm.arg("--prefix").arg(folder).arg("--cache").arg(folder.join("cache"));
    // Precompiled programs are not fetched. Most systems have the headers of their Node. If not, npm fetches them.
    npm.env("npm_config_build_from_source", "true").current_dir(folder);
    let node = system::found(&["node"]).and_then(|node| node.canonicalize().ok());
    if let Some(root) = node.as_deref().and_then(|node| node.parent()?.parent())
        && root.join("include/node/node.h").is_file()
    {
        npm.env("npm_config_nodedir", root);
    }
    process::step_within(FETCH_LIMIT, &format!("compiling {package}"), &mut npm)
}
