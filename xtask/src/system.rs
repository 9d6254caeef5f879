//! What the system has, and what it can be given.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{Failure, process};

const INSTALL_LIMIT: Duration = Duration::from_mins(5);

/// Whether there is such a program.
pub(crate) fn answers(program: &str) -> bool {
    let asked = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    asked.is_ok_and(|answer| answer.status.success())
}

/// Makes sure that there is the program, which is in the Debian package of the same name. On a bare machine that is
/// ours to change, such as a build container, the system installs it.
pub(crate) fn need(program: &str, purpose: &str) -> Result<(), Failure> {
    if answers(program) {
        return Ok(());
    }
    let missing = format!("{program} is missing (needed {purpose}); install it, then try again");
    if !is_root() || !answers("apt-get") {
        return Err(Failure::new(missing));
    }
    let apt = |args: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").arg("-qq").args(args);
        process::step_within(INSTALL_LIMIT, &format!("installing {program} by apt-get"), &mut apt)
    };
    let installed =
        apt(&["update"]).and_then(|()| apt(&["install", "--yes", "--no-install-recommends", program]));
    installed.map_err(|failure| Failure::new(format!("{missing} ({failure})")))
}

fn is_root() -> bool {
    let asked = Command::new("id").arg("-u").stdin(Stdio::null()).output();
    asked.is_ok_and(|answer| answer.stdout.trim_ascii() == b"0")
}
