//! Clients of other people's making, with which the tests talk to the server: each at one known version, in a folder
//! of its own under the target folder. What they need is pinned in `tests/clients/<folder>/package-lock.json`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Failure, npm, workspace};

/// The tests find the folders of the clients by this variable.
pub(crate) const VARIABLE: &str = "TOKENRAIL_TEST_CLIENTS";

/// The Node that runs them: the machine's own may be too old for some, or not there.
const NODE: &str = "node";

/// Fetches a client of `tests/clients`, and the Node that runs it, if they are not there yet; gives the folder of all
/// clients. The error is the reason why they can't be had.
pub(crate) fn ready(folder: &str) -> Result<PathBuf, Failure> {
    fetch(NODE)?;
    fetch(folder)?;
    Ok(target())
}

fn target() -> PathBuf {
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
