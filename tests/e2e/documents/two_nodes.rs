//! Runs the commands of `docs/how-to/several-servers.md` that bring up two nodes behind nginx on one PostgreSQL. Only
//! the ports are others. `cargo xtask test` installs nginx and PostgreSQL.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokenrail_test_postgres::account;

use super::blocks::{Mark, Page};
use super::root;
use crate::harness::{copy_program, free_port, processes_of, program};

/// Names the program.
const NGINX: &str = "TOKENRAIL_TEST_NGINX";

const PAGE: &str = "docs/how-to/several-servers.md";

/// How many commands bring up everything.
const COMMANDS_MAX: usize = 10;

/// How long the page may take: far longer than it takes.
const LIMIT: Duration = Duration::from_mins(2);

/// The ports of the page: nginx, two nodes, PostgreSQL.
const PORTS: [&str; 4] = ["7117", "7118", "7119", "5433"];

/// Clients of Socket.IO that poll: the session that a client opens is in the memory of one node. Each client says
/// something in its session. If the requests went to any node, one of these would not find the session.
const POLLING: &str = r#"
auth="authorization: Bearer $TOKENRAIL_TOKEN"
polling="$TOKENRAIL_URL/socket.io/?EIO=4&transport=polling"
for client in 1 2 3 4 5 6 7 8; do
    sid=$(curl -sf -H "$auth" "$polling" | sed 's/.*"sid":"\([^"]*\)".*/\1/')
    curl -sf -H "$auth" --data 40 "$polling&sid=$sid"
done
"#;

/// Whatever the page starts ends with this.
struct Folder(tempfile::TempDir);

impl Folder {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn processes(&self) -> Vec<Pid> {
        processes_of(self.path())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let lock = self.path().join("two-nodes/db/postmaster.pid");
        let lock = fs::read_to_string(lock).unwrap_or_default();
        let postmaster = lock.lines().next().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
        if let Some(postmaster) = postmaster {
            let _ = kill_process(postmaster, Signal::QUIT);
        }
        for pid in self.processes() {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

/// The blocks of the page that this test runs.
fn blocks() -> Vec<String> {
    let page = Page::read(PAGE, &fs::read_to_string(root().join(PAGE)).unwrap());
    let own = Mark::TestedIn("tests/e2e/documents/two_nodes.rs".to_owned());
    page.blocks.into_iter().filter(|block| block.mark == own).map(|block| block.text).collect()
}

/// Copies the programs to a folder that any account can read, unlike the one where they were built.
fn install(folder: &Path) -> PathBuf {
    let (built, bin) = (program(), folder.join("bin"));
    fs::create_dir(&bin).unwrap();
    for name in ["tokenrail", "tokenrail-supervisor"] {
        let from = built.with_file_name(name);
        if from.exists() {
            copy_program(&from, &bin.join(name));
        }
    }
    bin
}

/// Runs the script as an account that may run PostgreSQL. Returns what it says, and whether it succeeds.
fn play(script: &str, folder: &Path) -> (String, bool) {
    let bin = install(folder);
    let (file, log) = (folder.join("session.sh"), folder.join("session.log"));
    fs::write(&file, script).unwrap();
    let out = fs::File::create(&log).unwrap();
    account::give_all(folder);
    let mut command = account::command("/bin/bash");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOKENRAIL_"))
    {
        command.env_remove(name);
    }
    let mut folders = vec![bin];
    folders.extend(std::env::var_os(tokenrail_test_postgres::VARIABLE).map(PathBuf::from));
    folders.extend(std::env::var_os(NGINX).and_then(|nginx| Some(Path::new(&nginx).parent()?.to_owned())));
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let path = std::env::join_paths(folders).unwrap();
    command.arg(file).current_dir(folder).env("PATH", path).env("HOME", folder);
    command.env_remove("XDG_DATA_HOME").env_remove("XDG_CONFIG_HOME");
    command.stdin(Stdio::null()).stdout(out.try_clone().unwrap()).stderr(out);
    let mut shell = command.spawn().unwrap();
    let started = Instant::now();
    let status = loop {
        match shell.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if LIMIT < started.elapsed() => break None,
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    if status.is_none() {
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
    (fs::read_to_string(&log).unwrap(), status.is_some_and(|status| status.success()))
}

/// The logs of what the page has started.
fn logs(folder: &Path) -> String {
    let mut logs = String::new();
    for name in ["a.log", "b.log", "db.log", "nginx.log"] {
        let log = fs::read_to_string(folder.join("two-nodes").join(name)).unwrap_or_default();
        write!(logs, "\n--- {name}\n{log}").unwrap();
    }
    logs
}

#[test]
fn the_page_brings_up_two_nodes_in_ten_commands() {
    let blocks = blocks();
    assert_eq!(blocks.len(), 4, "bring up, use, stop one, stop the rest");
    let commands = blocks[0].split("\n\n").filter(|command| !command.trim().is_empty()).count();
    assert!(commands <= COMMANDS_MAX, "{commands} commands");

    let mut script = String::from("set -eu\n");
    let [bring_up, use_them, stop_one, stop_rest] = &blocks[..] else { unreachable!("it was counted") };
    for block in [bring_up, use_them, POLLING, stop_one, stop_rest] {
        write!(script, "echo '--- the next block'\n{block}").unwrap();
    }
    for port in PORTS {
        script = script.replace(port, &free_port().to_string());
    }
    let folder = Folder(tempfile::tempdir().unwrap());
    let (output, ok) = play(&script, folder.path());
    assert!(ok, "{output}{}", logs(folder.path()));
    let parts: Vec<&str> = output.split("--- the next block\n").collect();
    let [_, _, used, polled, one, _] = parts[..] else { panic!("{output}") };
    assert!(used.contains("node-b  alive"), "{used}");
    assert_eq!(polled, "ok".repeat(8), "each client reaches its session");
    for shown in ["demo", "node-a  away", "node-b  alive"] {
        assert!(one.contains(shown), "no {shown:?} in {one}");
    }
    let started = Instant::now();
    while !folder.processes().is_empty() {
        assert!(started.elapsed() < LIMIT, "{:?} are left: {output}", folder.processes());
        std::thread::sleep(Duration::from_millis(20));
    }
}
