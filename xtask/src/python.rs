//! Python packages: for the tests only, in environments of their own in the target folder, each at one known version.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::{Failure, process, system};

const FETCH_LIMIT: Duration = Duration::from_mins(5);

/// Records the contents of an environment. Written last, so that an interrupted fetch is repeated.
const STAMP: &str = "fetched";

/// Creates an environment in `folder` with these packages, one per line as in a `requirements.txt`, unless it already
/// exists.
pub(crate) fn environment(folder: &Path, packages: &str) -> Result<(), Failure> {
    if is_fetched(folder, packages) {
        return Ok(());
    }
    if make(folder).is_err() {
        // Debian has a part of Python in a separate package.
        system::install("python3-venv")?;
        make(folder)?;
    }
    let names = packages.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
    let mut fetch = Command::new(folder.join("bin/pip"));
    fetch.args(["install", "--quiet", "--disable-pip-version-check", "--no-input"]).args(&names);
    let what = folder.file_name().unwrap_or_default().display();
    process::step_within(FETCH_LIMIT, &format!("fetching {what} of Python"), &mut fetch)?;
    let stamp = folder.join(STAMP);
    fs::write(&stamp, packages)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", stamp.display())))
}

fn make(folder: &Path) -> Result<(), Failure> {
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(folder);
    process::step_within(FETCH_LIMIT, "creating a Python environment", &mut make)
}

fn is_fetched(folder: &Path, packages: &str) -> bool {
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|fetched| fetched == packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_known_version_will_do() {
        let folder = std::env::temp_dir().join(format!("xtask-python-{}", std::process::id()));
        assert!(!is_fetched(&folder, "some==0.1.0"), "nothing is there");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(STAMP), "some==0.1.0").unwrap();
        let (same, other) = (is_fetched(&folder, "some==0.1.0"), is_fetched(&folder, "some==0.2.0"));
        fs::remove_dir_all(&folder).unwrap();
        assert!(same && !other);
    }
}
