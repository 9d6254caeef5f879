//! The page: built by Vite into `crates/web/page/dist`, which is in the repository, so that nobody needs Node to build the
//! server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{Failure, process, tools, workspace};

/// Everything is fetched, checked and built within this.
const STEP_LIMIT: Duration = Duration::from_mins(10);

/// What a browser gets, and of which sources it is made.
const BUILT: [&str; 5] = ["index.html", "app.js", "app.css", "icon.svg", ".source-sha256"];

/// Fetches what the page needs, checks its types, and builds it.
pub(crate) fn build() -> Result<(), Failure> {
    if tools::found(&["npm"]).is_none() {
        tools::install("npm")?;
    }
    // No scripts: nothing of a package runs but what is called here.
    npm("fetching what the page is made of", &["ci", "--ignore-scripts", "--no-audit", "--no-fund"])?;
    npm("checking the types of the page", &["run", "typecheck"])?;
    npm("building the page", &["run", "build"])?;
    for name in BUILT {
        if !dist().join(name).exists() {
            return Err(Failure::new(format!("the build has made no {name}")));
        }
    }
    Ok(())
}

/// Builds the page, and fails if it is not what is in the repository: whoever looks at the sources sees what is served.
pub(crate) fn check() -> Result<(), Failure> {
    let before = contents()?;
    build()?;
    if before == contents()? {
        return Ok(());
    }
    Err(Failure::new(
        "crates/web/page/dist was not built from these sources: commit what `cargo xtask web` has made",
    ))
}

/// The tests of the page and of the client library.
pub(crate) fn test() -> Result<(), Failure> {
    build()?;
    npm("testing the page and the client library", &["run", "test"])
}

fn npm(what: &str, arguments: &[&str]) -> Result<(), Failure> {
    let mut npm = Command::new("npm");
    npm.args(arguments).args(["--no-update-notifier", "--loglevel=error"]).current_dir(root());
    process::step_within(STEP_LIMIT, what, &mut npm)
}

fn contents() -> Result<Vec<Vec<u8>>, Failure> {
    BUILT.iter().map(|name| read(&dist().join(name))).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}

fn dist() -> PathBuf {
    root().join("page/dist")
}

fn root() -> PathBuf {
    workspace::root().join("crates/web")
}
