//! Clients of other people's making, with which the tests talk to the server: each at one known version, in a folder
//! of its own under the target folder. What they need is pinned in `tests/clients/<folder>`, by `package-lock.json` or
//! `requirements.txt`.

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
}

pub(crate) const CLIENTS: [Client; 5] = [
    Client { what: "ai 7", folder: "ai-7", tests: "real_clients::ai_sdk::ai_7" },
    Client { what: "ai 6", folder: "ai-6", tests: "real_clients::ai_sdk::ai_6" },
    Client { what: "ai 5", folder: "ai-5", tests: "real_clients::ai_sdk::ai_5" },
    Client { what: "letta npm", folder: "letta", tests: "real_clients::letta::typescript" },
    Client { what: "letta PyPI", folder: "letta-py", tests: "real_clients::letta::python" },
];

/// What drives the browser in which the page is tried.
pub(crate) const BROWSER_DRIVER: Client = Client { what: "browser", folder: "page", tests: "browser::" };

impl Client {
    /// Fetches the client, and the Node that runs it, if they are not there yet. The error is the reason why they
    /// can't be had.
    pub(crate) fn ready(&self) -> Result<(), Failure> {
        let requirements = workspace::root().join("tests/clients").join(self.folder).join("requirements.txt");
        if requirements.exists() {
            let packages = String::from_utf8_lossy(&read(&requirements)?).into_owned();
            return python::environment(&target().join(self.folder), &packages);
        }
        fetch(NODE)?;
        fetch(self.folder)
    }
}

/// The folder of the Node at the known version, fetched if it is not there yet: there is a package for each kind of
/// machine, and npm picks the one that fits.
pub(crate) fn node() -> Result<PathBuf, Failure> {
    fetch(NODE)?;
    let packages = target().join(NODE).join("node_modules").read_dir().ok().into_iter().flatten().flatten();
    let mut folders = packages.map(|entry| entry.path().join("bin"));
    let found = folders.find(|folder| folder.join("node").is_file());
    found.ok_or_else(|| Failure::new("there is no Node for this machine"))
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
