//! Packages of Python: for the tests only, in an environment of their own in the target folder, each at one known
//! version.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::{Failure, process};

const FETCH_LIMIT: Duration = Duration::from_mins(5);

/// Makes an environment in `folder` with what `requirements` lists, unless it is there already.
pub(crate) fn venv(folder: &Path, what: &str, requirements: &Path) -> Result<(), Failure> {
    let wanted = fs::read(requirements)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", requirements.display())))?;
    // Written last: a fetch that broke off is begun again.
    let stamp = folder.join("fetched");
    if fs::read(&stamp).is_ok_and(|fetched| fetched == wanted) {
        return Ok(());
    }
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(folder);
    process::step_within(FETCH_LIMIT, &format!("making a Python environment for {what}"), &mut make)
        .map_err(|failure| {
            Failure::new(format!("{failure}; on Debian and Ubuntu: apt-get install python3-venv"))
        })?;
    let mut fetch = Command::new(folder.join("bin/pip"));
    fetch.args(["install", "--quiet", "--disable-pip-version-check", "--no-input", "--requirement"]);
    fetch.arg(requirements);
    process::step_within(FETCH_LIMIT, &format!("fetching {what}"), &mut fetch)?;
    fs::write(&stamp, wanted)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", stamp.display())))
}
