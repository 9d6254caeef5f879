//! Third-party programs: clients with which the tests talk to the server, and agents that the server runs. Each has one
//! known version and a folder of its own under the target folder. Their dependencies are pinned in
//! `tests/clients/<folder>`, by `package-lock.json` or `requirements.txt`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Failure, npm, python, workspace};

/// The tests receive the folder of the clients in this variable.
pub(crate) const VARIABLE: &str = "TOKENRAIL_TEST_CLIENTS";

/// The Node that runs them. The machine's own Node may be too old for some, or missing.
const NODE: &str = "node";

/// The oldest Node that the client library supports.
const OLDEST_NODE: &str = "node-20";

/// The native program of Codex, which its adapter also contains.
const CODEX: [&str; 2] = [
    "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
    "@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
];

/// One client, at one version.
pub(crate) struct Client {
    /// Its row in the table.
    pub(crate) what: &'static str,
    /// Its folder in `tests/clients`, and in the target folder.
    folder: &'static str,
    /// Part of the path of each test that needs it.
    pub(crate) tests: &'static str,
    /// Its native program, for each kind of machine that has one. Empty if the client runs on all machines.
    programs: &'static [&'static str],
}

const fn client(what: &'static str, folder: &'static str, tests: &'static str) -> Client {
    Client { what, folder, tests, programs: &[] }
}

pub(crate) const CLIENTS: [Client; 27] = [
    client("ai 7", "ai-7", "real_clients::ai_sdk::ai_7"),
    client("ai 7.0.0", "ai-7-oldest", "real_clients::ai_sdk::oldest_7"),
    client("ai 6", "ai-6", "real_clients::ai_sdk::ai_6"),
    client("ai 6.0.0", "ai-6-oldest", "real_clients::ai_sdk::oldest_6"),
    client("ai 5", "ai-5", "real_clients::ai_sdk::ai_5"),
    client("ai 5.0.0", "ai-5-oldest", "real_clients::ai_sdk::oldest_5"),
    client("letta npm", "letta", "real_clients::letta::typescript"),
    client("letta PyPI", "letta-py", "real_clients::letta::python"),
    client("@ag-ui/client npm", "ag-ui", "real_clients::ag_ui::javascript"),
    client("@copilotkit/runtime npm", "copilotkit", "real_clients::ag_ui::copilotkit"),
    client("ag-ui-validate PyPI", "ag-ui-py", "real_clients::ag_ui::validator"),
    client("@durable-streams/client npm", "durable-streams", "real_clients::durable_streams"),
    client("openai npm", "openai", "real_clients::openai::typescript"),
    client("openai PyPI", "openai-py", "real_clients::openai::python"),
    client("@openai/agents npm", "openai-agents", "real_clients::openai::built_on_them::agents_javascript"),
    client("openai-agents PyPI", "openai-agents-py", "real_clients::openai::built_on_them::agents_python"),
    client("litellm PyPI", "litellm", "real_clients::openai::built_on_them::litellm"),
    client("MCP conformance", "mcp-conformance", "real_clients::mcp::earlier"),
    client("MCP conformance 2026", "mcp-conformance-2026", "real_clients::mcp::newest"),
    client("@modelcontextprotocol/client npm", "mcp", "real_clients::mcp::client"),
    client("socket.io-client npm", "socket-io", "real_clients::socket_io::javascript"),
    client("python-socketio PyPI", "socket-io-py", "real_clients::socket_io::python"),
    Client { programs: &CODEX, ..client("codex CLI", "codex", "real_codex::") },
    client("claude-agent-acp", "claude-acp", "real_acp::"),
    Client { programs: &CODEX, ..client("codex-acp", "codex-acp", "real_codex_acp::") },
    client("gemini CLI", "gemini", "real_gemini::"),
    Client {
        programs: &["opencode-linux-x64/bin/opencode"],
        ..client("opencode", "opencode", "real_opencode::")
    },
];

/// Fetches the native program of Codex, if it is missing.
pub(crate) fn codex() -> Result<(), Failure> {
    CLIENTS.iter().filter(|client| client.folder == "codex").try_for_each(Client::ready)
}

/// The clients that are also used in the browser, by pages of another origin.
pub(crate) fn in_pages() -> impl Iterator<Item = &'static Client> {
    CLIENTS.iter().filter(|client| matches!(client.folder, "ai-7" | "letta"))
}

/// The driver of the browser in which the page is tested, and the dev server of pages of another origin.
pub(crate) const BROWSER_DRIVER: Client = client("browser", "page", "browser::");

impl Client {
    /// Fetches the client, and the Node that runs it, if they are missing. The error says why they are not available.
    pub(crate) fn ready(&self) -> Result<(), Failure> {
        let requirements = workspace::root().join("tests/clients").join(self.folder).join("requirements.txt");
        if requirements.exists() {
            let packages = String::from_utf8_lossy(&read(&requirements)?).into_owned();
            return python::environment(&target().join(self.folder), &packages);
        }
        // The launchers of native programs are scripts that also need Node.
        fetch(NODE)?;
        fetch(self.folder)?;
        let modules = target().join(self.folder).join("node_modules");
        if self.programs.is_empty() || self.programs.iter().any(|program| modules.join(program).exists()) {
            return Ok(());
        }
        Err(Failure::new(format!("{} has no program for this machine", self.what)))
    }
}

/// The packages of the apps that the how-to pages build with the client library.
const APPS: [&str; 2] = ["app-vite", "app-next"];

/// Fetches the packages of the apps, if they are missing. Returns the folder that contains theirs.
pub(crate) fn apps() -> Result<PathBuf, Failure> {
    APPS.iter().try_for_each(|app| fetch(app))?;
    Ok(target())
}

/// The folder of Node at the known version. Fetches it if it is missing.
pub(crate) fn node() -> Result<PathBuf, Failure> {
    node_in(NODE)
}

/// The folder of the oldest Node that the client library supports. Fetches it if it is missing.
pub(crate) fn oldest_node() -> Result<PathBuf, Failure> {
    node_in(OLDEST_NODE)
}

/// There is a package for each kind of machine, and npm installs the one that fits.
fn node_in(folder: &str) -> Result<PathBuf, Failure> {
    fetch(folder)?;
    let packages = target().join(folder).join("node_modules").read_dir().ok().into_iter().flatten().flatten();
    let mut folders = packages.map(|entry| entry.path().join("bin"));
    let found = folders.find(|folder| folder.join("node").is_file());
    found.ok_or_else(|| Failure::new("Node is not available for this machine"))
}

/// The folder of the clients.
pub(crate) fn target() -> PathBuf {
    workspace::target().join("clients")
}

fn fetch(folder: &str) -> Result<(), Failure> {
    let (from, to) = (workspace::root().join("tests/clients").join(folder), target().join(folder));
    let lock = read(&from.join("package-lock.json"))?;
    // Written last, so that an interrupted fetch is repeated.
    let stamp = to.join("fetched");
    if fs::read(&stamp).is_ok_and(|fetched| fetched == lock) {
        return Ok(());
    }
    fs::create_dir_all(&to)
        .map_err(|error| Failure::new(format!("cannot create {}: {error}", to.display())))?;
    write(&to.join("package.json"), &read(&from.join("package.json"))?)?;
    write(&to.join("package-lock.json"), &lock)?;
    // The peer dependencies that a client needs are named in our `package.json`.
    npm::fetch(&to, &format!("the test client {folder}"), &["ci", "--legacy-peer-deps"])?;
    write(&stamp, &lock)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}
