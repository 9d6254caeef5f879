//! Runs the commands of a page in a shell, from the first to the last, as a reader would type them.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::blocks::{Mark, Page};
use crate::harness::{free_port, program};

/// How long a page may take: far longer than any page takes.
const LIMIT: Duration = Duration::from_mins(2);

pub(super) enum Outcome {
    Passed,
    /// A program that the page uses is not installed.
    NotRun(String),
    /// The output of the commands.
    Failed(String),
}

pub(super) fn run(page: &Page) -> Outcome {
    if let Some(missing) = page.needs.iter().find(|need| !is_there(need)) {
        return Outcome::NotRun(missing.clone());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let address = format!("127.0.0.1:{}", free_port());
    let script = folder.path().join("session.sh");
    std::fs::write(&script, script_of(page, &address)).expect("the script");
    let log = folder.path().join("session.log");
    let ok = play(&script, &log, folder.path(), &address);
    if ok {
        return Outcome::Passed;
    }
    let output = String::from_utf8_lossy(&std::fs::read(&log).expect("its output")).into_owned();
    Outcome::Failed(format!("{}:\n{output}", page.name))
}

/// `python3:requests` is a Python module. Anything else is a program.
fn is_there(need: &str) -> bool {
    let mut command = Command::new("sh");
    match need.split_once(':') {
        Some((python, module)) => command.arg("-c").arg(format!("{python} -c 'import {module}'")),
        None => command.arg("-c").arg(format!("command -v {need}")),
    };
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The documents use the default address, but each session has its own port.
fn script_of(page: &Page, address: &str) -> String {
    let port = address.rsplit(':').next().expect("a port");
    let here = |text: &str| {
        text.replace("127.0.0.1:7117", address).replace("localhost:7117", &format!("localhost:{port}"))
    };
    let mut script = String::from("set -eu\n");
    if page.needs_server {
        let wait = format!("until curl -sf http://{address}/readyz >/dev/null; do sleep 0.1; done");
        let _ = writeln!(script, "tokenrail serve --log warn &\n{wait}\nmkdir page && cd page");
    } else {
        script.push_str("mkdir page && cd page\n");
    }
    for block in &page.blocks {
        let _ = writeln!(script, "echo '--- {}:{}' >&2", page.name, block.line);
        match &block.mark {
            Mark::File(name) => {
                let _ = writeln!(
                    script,
                    "cat > '{name}' <<'END OF THE FILE'\n{}END OF THE FILE",
                    here(&block.text)
                );
            }
            Mark::Usual if block.is_commands() => script.push_str(&here(&block.text)),
            _ => {}
        }
    }
    script
}

/// Runs the script in its own process group, and ends the whole group afterwards.
fn play(script: &Path, log: &Path, folder: &Path, address: &str) -> bool {
    let program = program();
    let path = program.parent().expect("its folder").display();
    let path = format!("{path}:{}", std::env::var("PATH").expect("PATH"));
    let out = File::create(log).expect("a log");
    let mut command = Command::new("bash");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOKENRAIL_"))
    {
        command.env_remove(name);
    }
    command.arg(script).current_dir(folder).env("PATH", path).env("HOME", folder);
    // Unlike `TOKENRAIL_LISTEN`, this does not keep `run` from starting a server of its own.
    command.env("TOKENRAIL_SERVER_LISTEN", address).env_remove("XDG_DATA_HOME").env_remove("XDG_CONFIG_HOME");
    command.stdin(Stdio::null()).stdout(out.try_clone().expect("a log")).stderr(out).process_group(0);
    let mut shell = command.spawn().expect("a shell");
    let group = Pid::from_child(&shell);
    let started = Instant::now();
    let status = loop {
        match shell.try_wait().expect("its state") {
            Some(status) => break Some(status),
            None if LIMIT < started.elapsed() => break None,
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    // End what the page has left in the background.
    let _ = kill_process_group(group, Signal::TERM);
    std::thread::sleep(Duration::from_millis(200));
    let _ = kill_process_group(group, Signal::KILL);
    let _ = shell.wait();
    status.is_some_and(|status| status.success())
}
