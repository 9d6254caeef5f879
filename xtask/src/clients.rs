//! Programs of other people's making: clients with which the tests talk to the server, and agents that it runs. Each
//! is at one known version, in a folder of its own under the target folder. What they need is pinned in
//! `tests/clients/<folder>`, by `package-lock.json` or `requirements.txt`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Failure, npm, python, workspace};

/// The tests find the folders of the clients by this variable.
pub(crate) const VARIABLE: &str = "TOKENRAIL_TEST_CLIENTS";

/// The Node that runs them: the machine's own may be too old for some, or not there.
const NODE: &str = "node";

/// One client, at one version.
pub(crate) struct Client {
    /// Its row in the table.
    pub(crate) what: &'static str,
    /// In `tests/clients`, and in the target folder.
    folder: &'static str,
    /// In the path of each test that needs it.
    pub(crate) tests: &'static str,
    /// A native program of it, on any of the machines for which there is one; none is for all machines.
    programs: &'static [&'static str],
}

const fn client(what: &'static str, folder: &'static str, tests: &'static str) -> Client {
    Client { what, folder, tests, programs: &[] }
}

pub(crate) const CLIENTS: [Client; 13] = [
    client("ai 7", "ai-7", "real_clients::ai_sdk::ai_7"),
    client("ai 7.0.0", "ai-7-oldest", "real_clients::ai_sdk::oldest_7"),
    client("ai 6", "ai-6", "real_clients::ai_sdk::ai_6"),
    client("ai 6.0.0", "ai-6-oldest", "real_clients::ai_sdk::oldest_6"),
    client("ai 5", "ai-5", "real_clients::ai_sdk::ai_5"),
    client("ai 5.0.0", "ai-5-oldest", "real_clients::ai_sdk::oldest_5"),
    client("letta npm", "letta", "real_clients::letta::typescript"),
    client("letta PyPI", "letta-py", "real_clients::letta::python"),
    Client {
        programs: &[
            "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
            "@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
        ],
        ..client("codex CLI", "codex", "real_codex::")
    },
    client("claude-agent-acp", "claude-acp", "real_acp::"),
    Client {
        programs: &[
            "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
            "@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
        ],
        ..client("codex-acp", "codex-acp", "real_codex_acp::")
    },
    client("gemini CLI", "gemini", "real_gemini::"),
    Client {
        programs: &["opencode-linux-x64/bin/opencode"],
        ..client("opencode", "opencode", "real_opencode::")
    },
];

/// Those that pages of another origin use, too, in the browser.
pub(crate) fn in_pages() -> impl Iterator<Item = &'static Client> {
    CLIENTS.iter().filter(|client| matches!(client.folder, "ai-7" | "letta"))
}

/// What drives the browser in which the page is tried, and the dev server of pages of another origin.
pub(crate) const BROWSER_DRIVER: Client = client("browser", "page", "browser::");

impl Client {
    /// Fetches the client, and the Node that runs it, if they are not there yet. The error is the reason why they
    /// can't be had.
    pub(crate) fn ready(&self) -> Result<(), Failure> {
        let requirements = workspace::root().join("tests/clients").join(self.folder).join("requirements.txt");
        if requirements.exists() {
            let packages = String::from_utf8_lossy(&read(&requirements)?).into_owned();
            return python::environment(&target().join(self.folder), &packages);
        }
        // The launchers of native programs are scripts for it too.
        fetch(NODE)?;
        fetch(self.folder)?;
        let modules = target().join(self.folder).join("node_modules");
        if self.programs.is_empty() || self.programs.iter().any(|program| modules.join(program).exists()) {
            return Ok(());
        }
        Err(Failure::new(format!("{} has no program for this machine", self.what)))
    }
}

/// The folder of the Node at the known version, fetched if it is not there yet: there is a package for each kind of
/// machine, and npm picks the one that fits.
pub(crate) fn node() -> Result<PathBuf, Failure> {
    fetch(NODE)?;
    let packages = target().join(NODE).join("node_modules").read_dir().ok().into_iter().flatten().flatten();
    let mut folders = packages.map(|entry| entry.path().join("bin"));
    let found = folders.find(|folder| folder.join("node").is_file());
    found.ok_or_else(|| Failure::new("Node is not available for this machine"))
}

/// Where the clients are.
pub(crate) fn target() -> PathBuf {
    workspace::target().join("clients")
}

fn fetch(folder: &str) -> Result<(), Failure> {
    let (from, to) = (workspace::root().join("tests/clients").join(folder), target().join(folder));
    let lock = read(&from.join("package-lock.json"))?;
    // Written last: a fetch that broke off is begun again.
    let stamp = to.join("fetched");
    if fs::read(&stamp).is_ok_and(|fetched| fetched == lock) {
        return Ok(());
    }
    fs::create_dir_all(&to)
        .map_err(|error| Failure::new(format!("cannot create {}: {error}", to.display())))?;
    write(&to.join("package.json"), &read(&from.join("package.json"))?)?;
    write(&to.join("package-lock.json"), &lock)?;
    // What a package would like to find beside it is named in our list where it is needed.
    npm::fetch(&to, &format!("the test client {folder}"), &["ci", "--legacy-peer-deps"])?;
    write(&stamp, &lock)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}
