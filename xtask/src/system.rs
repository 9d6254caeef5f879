//! Programs of the system: found on `PATH`, or installed from the system's packages.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{Failure, process};

/// Where Debian's PostgreSQL looks for settings of new servers, beside its own file.
const CLUSTER_SETTINGS: &str = "/etc/postgresql-common/createcluster.d";

const FETCH_LIMIT: Duration = Duration::from_mins(5);

/// The first of these programs on `PATH`. If there is none, installs the system's package.
pub(crate) fn program(package: &str, names: &[&str]) -> Result<PathBuf, Failure> {
    if let Some(program) = found(names) {
        return Ok(program);
    }
    install(package)?;
    found(names).ok_or_else(|| Failure::new(format!("{package} was installed, but is not on PATH")))
}

/// Installs a package with `apt-get` if run as root, as in a build container. Otherwise the error says what to install.
pub(crate) fn install(package: &str) -> Result<(), Failure> {
    let missing = format!("{package} is missing; install it, then try again");
    if !is_root() || found(&["apt-get"]).is_none() {
        return Err(Failure::new(missing));
    }
    let apt = |args: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").arg("-qq").args(args);
        process::step_within(FETCH_LIMIT, &format!("installing {package} by apt-get"), &mut apt)
    };
    let installed =
        apt(&["update"]).and_then(|()| apt(&["install", "--yes", "--no-install-recommends", package]));
    installed.map_err(|failure| Failure::new(format!("{missing} ({failure})")))
}

/// Installs PostgreSQL without the database server that Debian's package otherwise sets up and starts.
pub(crate) fn install_postgres() -> Result<(), Failure> {
    // Only root installs anything, and the setting is only for now: whoever installs it again may want the server.
    let setting = Path::new(CLUSTER_SETTINGS).join("tokenrail-tests.conf");
    let is_set = is_root() && {
        let made = std::fs::create_dir_all(CLUSTER_SETTINGS);
        made.and_then(|()| std::fs::write(&setting, "create_main_cluster = false\n")).is_ok()
    };
    let installed = install("postgresql");
    if is_set && let Err(error) = std::fs::remove_file(&setting) {
        return Err(Failure::new(format!("cannot remove {}: {error}", setting.display())));
    }
    installed
}

pub(crate) fn is_root() -> bool {
    let asked = Command::new("id").arg("-u").stdin(Stdio::null()).output();
    asked.is_ok_and(|answer| answer.stdout.trim_ascii() == b"0")
}

/// The first of these programs that is on `PATH`.
pub(crate) fn found(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let candidates = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.into_iter().find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_the_first_of_its_names() {
        assert!(found(&["no-such-program-anywhere", "sh"]).is_some_and(|path| path.ends_with("sh")));
        assert_eq!(found(&["no-such-program-anywhere"]), None);
    }
}
