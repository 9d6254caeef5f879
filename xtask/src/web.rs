//! The page: Vite builds it into `crates/web/page/dist`, which is committed, so that building the server requires no
//! Node.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{Failure, clients, process, system, tools, workspace};

/// The time limit for each step: a fetch, a check or a build.
const STEP_LIMIT: Duration = Duration::from_mins(10);

/// The files that a browser receives, the licences of the libraries in them, and the hash of their sources.
const BUILT: [&str; 11] = [
    "index.html",
    "app.js",
    "runtime.js",
    "dom.js",
    "view.js",
    "languages.js",
    "app.css",
    "icon.svg",
    "icon-waiting.svg",
    "third-party.md",
    ".source-sha256",
];

/// A package of the npm workspace, with tests.
pub(crate) struct Package {
    /// Its row in the table.
    pub(crate) what: &'static str,
    folder: &'static str,
}

const CLIENT: Package = Package { what: "client library", folder: "client" };
const PAGE: Package = Package { what: "page", folder: "page" };
pub(crate) const PACKAGES: [Package; 2] = [CLIENT, PAGE];

/// The client library's tests find the server's program by this. They follow it, cut its connections and kill it.
const SERVER_VARIABLE: &str = "TOKENRAIL_TEST_SERVER";

/// The client library's tests find the oldest Node that it supports by this.
const OLDEST_NODE_VARIABLE: &str = "TOKENRAIL_TEST_NODE_20";

/// The client library's tests build apps with it if this names the folder of their packages.
const APPS_VARIABLE: &str = "TOKENRAIL_TEST_APPS";

/// Fetches what the packages need, and the Node that runs them, if they are missing.
pub(crate) fn fetch() -> Result<(), Failure> {
    if system::found(&["npm"]).is_none() {
        system::install("npm")?;
    }
    clients::node()?;
    clients::oldest_node()?;
    let lock = read(&root().join("package-lock.json"))?;
    // Written last, into the folder that npm empties first, so that an interrupted fetch is repeated.
    let stamp = root().join("node_modules/.fetched-lock");
    if fs::read(&stamp).is_ok_and(|fetched| fetched == lock) {
        return Ok(());
    }
    // Scripts are disabled: no code of a package runs except what is called here.
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

/// Builds the page, and fails if the result differs from the committed files. The sources thus show what is served.
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

/// Packs an npm package into the folder `out`, and returns the name of the file.
pub(crate) fn pack(package: &Path, out: &Path) -> Result<String, Failure> {
    let mut npm = npm_command(&["pack"]);
    npm.arg("--pack-destination").arg(out).arg(package);
    let printed = process::output(&format!("packing {}", package.display()), &mut npm)?;
    // The scripts of the package print too, before.
    printed
        .lines()
        .last()
        .map(str::to_owned)
        .ok_or_else(|| Failure::new("npm did not name the file that it packed"))
}

/// The licences of the libraries in the page.
pub(crate) fn third_party() -> Result<String, Failure> {
    read(&dist().join("third-party.md")).map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// The folder of the client library.
pub(crate) fn client() -> PathBuf {
    root().join(CLIENT.folder)
}

/// The tests of the page and of the client library.
pub(crate) fn test() -> Result<(), Failure> {
    build()?;
    PACKAGES
        .iter()
        .try_for_each(|package| process::step(&format!("testing the {}", package.what), &mut package.tests()))
}

impl Package {
    /// Checks the package before its tests. Leaves its files as they were.
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

    /// The command for its tests, including the check of its types.
    pub(crate) fn tests(&self) -> Command {
        Self::tests_with(&["run", "--silent", "test", "--workspace", self.folder])
    }

    fn tests_with(arguments: &[&str]) -> Command {
        let mut npm = npm_command(arguments);
        npm.env(SERVER_VARIABLE, workspace::target().join("debug/tokenrail")).env("NO_COLOR", "1");
        // Without Chromium, the library is not tested in a browser's worker. The row of Chromium says why it is
        // missing.
        if let Ok(chromium) = tools::CHROMIUM.ready() {
            npm.env(tools::CHROMIUM.variable, chromium);
        }
        if let Ok(folder) = clients::oldest_node() {
            npm.env(OLDEST_NODE_VARIABLE, folder.join("node"));
        }
        npm
    }
}

/// The command that builds the apps of the how-to pages with the packed client library, and uses them.
pub(crate) fn app_tests(packages: &Path) -> Command {
    let mut npm = Package::tests_with(&[
        "exec",
        "--workspace",
        CLIENT.folder,
        "--",
        "vitest",
        "run",
        "test/apps.test.ts",
    ]);
    npm.env(APPS_VARIABLE, packages);
    npm
}

fn npm(what: &str, arguments: &[&str]) -> Result<(), Failure> {
    process::step_within(STEP_LIMIT, what, &mut npm_command(arguments))
}

/// Runs npm, and everything that it starts, on the Node at the known version if it was fetched.
fn npm_command(arguments: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    // First, because what follows `--` among the arguments is for another program.
    npm.args(["--no-update-notifier", "--loglevel=error"]).args(arguments).current_dir(root());
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
