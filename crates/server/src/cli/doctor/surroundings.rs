//! What is around the server: the address that it would listen on, and what would end its agents.

use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::{DoctorCheck, Verdict, finding};
use crate::config::Config;

/// How long the service manager may take to answer.
const SYSTEMCTL_TIMEOUT: Duration = Duration::from_secs(5);

/// Files that container engines create in each container.
const CONTAINER_MARKS: [&str; 2] = ["/.dockerenv", "/run/.containerenv"];

/// Whether a server that starts now could listen.
pub(super) fn address(config: &Config) -> DoctorCheck {
    let name = "address";
    let listen = config.listen;
    match TcpListener::bind(listen) {
        Ok(_) => finding(name, Verdict::Good, format!("{listen} is free")),
        Err(error) => {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => "stop the program that uses it, or choose another address",
                io::ErrorKind::PermissionDenied => {
                    "ports below 1024 require extra privileges; choose another address"
                }
                _ => "choose an address of this machine",
            };
            let text = format!("cannot listen on {listen}: {error}; {advice} with server.listen or --listen");
            finding(name, Verdict::Bad, text)
        }
    }
}

/// Warns if agents end when the container or the service is stopped or restarted. `None` if this process runs in
/// neither.
pub(super) async fn keeper() -> Option<DoctorCheck> {
    if CONTAINER_MARKS.iter().any(|mark| Path::new(mark).exists()) {
        let text = "in a container; agents end when the container stops, so let running agents finish before you \
                    replace it";
        return Some(finding("container", Verdict::Warning, text));
    }
    let cgroup = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let unit = Unit::of(&cgroup)?;
    let name = "service";
    Some(match unit.kill_mode().await {
        Ok(mode) if matches!(&*mode, "process" | "none") => {
            finding(name, Verdict::Good, format!("{}: agents outlive a restart (KillMode={mode})", unit.name))
        }
        Ok(mode) => {
            let text = format!(
                "{}: if the server runs in this service, a restart ends all agents (KillMode={mode}); set KillMode=process \
                 in the unit",
                unit.name
            );
            finding(name, Verdict::Warning, text)
        }
        Err(error) => {
            let text = format!("{}: cannot find out whether a restart ends agents: {error}", unit.name);
            finding(name, Verdict::Warning, text)
        }
    })
}

/// A service of systemd.
#[derive(Debug, PartialEq, Eq)]
struct Unit<'a> {
    name: &'a str,
    of_user: bool,
}

impl<'a> Unit<'a> {
    /// The service in whose control group a process runs, from its `/proc/<pid>/cgroup`. A login session is none.
    fn of(cgroup: &'a str) -> Option<Self> {
        let path = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
        let name = path.rsplit('/').find(|part| part.ends_with(".service"))?;
        let manager = |part: &&str| part.starts_with("user@") && part.ends_with(".service");
        let of_user = path.split('/').any(|part| manager(&part));
        (!manager(&name)).then_some(Self { name, of_user })
    }

    async fn kill_mode(&self) -> io::Result<String> {
        let mut systemctl = Command::new("systemctl");
        systemctl.args(self.of_user.then_some("--user"));
        systemctl.args(["show", "--property=KillMode", "--value", self.name]);
        systemctl.stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(SYSTEMCTL_TIMEOUT, systemctl.output()).await??;
        let mode = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if mode.is_empty() { Err(io::Error::other("systemctl reports no KillMode")) } else { Ok(mode) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_of_a_process_is_found() {
        let system = "0::/system.slice/tokenrail.service\n";
        assert_eq!(Unit::of(system), Some(Unit { name: "tokenrail.service", of_user: false }));
        let user =
            "1:name=x:/\n0::/user.slice/user-1000.slice/user@1000.service/app.slice/tokenrail.service\n";
        assert_eq!(Unit::of(user), Some(Unit { name: "tokenrail.service", of_user: true }));
        for none in [
            "0::/user.slice/user-1000.slice/session-2.scope\n",
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-term.scope\n",
            "0::/\n",
            "",
        ] {
            assert_eq!(Unit::of(none), None, "{none}");
        }
    }
}
