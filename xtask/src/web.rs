//! The page: built by Vite into `crates/web/page/dist`, which is in the repository, so that nobody needs Node to build the
//! server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{Failure, clients, process, system, tools, workspace};

/// Everything is fetched, checked and built within this.
const STEP_LIMIT: Duration = Duration::from_mins(10);

/// What a browser gets, and of which sources it is made.
const BUILT: [&str; 9] = [
    "index.html",
    "app.js",
    "runtime.js",
    "dom.js",
    "view.js",
    "languages.js",
    "app.css",
    "icon.svg",
    ".source-sha256",
];

/// A package of the workspace of npm, with tests.
pub(crate) struct Package {
    /// Its row of the table.
    pub(crate) what: &'static str,
    folder: &'static str,
}

const CLIENT: Package = Package { what: "client library", folder: "client" };
const PAGE: Package = Package { what: "page", folder: "page" };
pub(crate) const PACKAGES: [Package; 2] = [CLIENT, PAGE];

/// The client library's tests find the server's program by this, and follow it, cut its connections and kill it.
const SERVER_VARIABLE: &str = "TOKENRAIL_TEST_SERVER";

/// Fetches what the packages need, and the Node that runs them, if they are not there yet.
pub(crate) fn fetch() -> Result<(), Failure> {
    if system::found(&["npm"]).is_none() {
        system::install("npm")?;
    }
    clients::node()?;
    let lock = read(&root().join("package-lock.json"))?;
    // Written last, into the folder that npm empties first: a fetch that broke off is begun again.
    let stamp = root().join("node_modules/.fetched-lock");
    if fs::read(&stamp).is_ok_and(|fetched| fetched == lock) {
        return Ok(());
    }
    // No scripts: nothing of a package runs but what is called here.
    npm("fetching the page's dependencies", &["ci", "--ignore-scripts", "--no-audit", "--no-fund"])?;
    write(&stamp, &lock)
}

/// Fetches what the page needs, checks its types, and builds it.
pub(crate) fn build() -> Result<(), Failure> {
    fetch()?;
    npm("checking the types of the page", &["run", "typecheck"])?;
    npm("building the page", &["run", "build"])?;
    for name in BUILT {
        if !dist().join(name).exists() {
            return Err(Failure::new(format!("the build did not create {name}")));
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
        "crates/web/page/dist does not match its sources: run `cargo xtask web` and commit the result",
    ))
}

/// The tests of the page and of the client library.
pub(crate) fn test() -> Result<(), Failure> {
    build()?;
    PACKAGES
        .iter()
        .try_for_each(|package| process::step(&format!("testing the {}", package.what), &mut package.tests()))
}

impl Package {
    /// What is wrong with it before any test; the files are as before.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.folder != PAGE.folder {
            return Ok(());
        }
        let before = contents()?;
        let checked = check();
        for (name, bytes) in BUILT.iter().zip(&before) {
            write(&dist().join(name), bytes)?;
        }
        checked
    }

    /// Its types, and its tests.
    pub(crate) fn tests(&self) -> Command {
        let mut npm = npm_command(&["run", "--silent", "test", "--workspace", self.folder]);
        npm.env(SERVER_VARIABLE, workspace::target().join("debug/tokenrail")).env("NO_COLOR", "1");
        // Without one the library is not tried in a browser's worker; the row of Chromium says why there is none.
        if let Ok(chromium) = tools::CHROMIUM.ready() {
            npm.env(tools::CHROMIUM.variable, chromium);
        }
        npm
    }
}

fn npm(what: &str, arguments: &[&str]) -> Result<(), Failure> {
    process::step_within(STEP_LIMIT, what, &mut npm_command(arguments))
}

/// npm, and with it everything that it starts, runs on the Node at the known version, where that was fetched.
fn npm_command(arguments: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    npm.args(arguments).args(["--no-update-notifier", "--loglevel=error"]).current_dir(root());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = clients::node().ok().into_iter().chain(std::env::split_paths(&path));
    if let Ok(path) = std::env::join_paths(folders) {
        npm.env("PATH", path);
    }
    npm
}

fn contents() -> Result<Vec<Vec<u8>>, Failure> {
    BUILT.iter().map(|name| read(&dist().join(name))).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}

fn dist() -> PathBuf {
    root().join("page/dist")
}

fn root() -> PathBuf {
    workspace::root().join("crates/web")
}
