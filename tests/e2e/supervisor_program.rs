//! A small program next to the server's supervises agents, if it exists and is of the same build. Otherwise the
//! server's own program does. The only visible difference is memory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{TestServer, copy_program, no_process_is_left, numbers, program, text_of, write_script};

const SMALL: &str = "tokenrail-supervisor";

/// A folder with the server's program, and optionally the small one.
struct Installed(TempDir);

impl Installed {
    fn alone() -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy_program(&program(), &folder.path().join("tokenrail"));
        Self(folder)
    }

    fn whole() -> Self {
        let installed = Self::alone();
        copy_program(&program().with_file_name(SMALL), &installed.small());
        installed
    }

    fn small(&self) -> PathBuf {
        self.0.path().join(SMALL)
    }

    fn own(&self) -> PathBuf {
        self.0.path().join("tokenrail")
    }

    /// Replaces the small program, as an upgrade does. The new program prints its version. Otherwise it exits with 64,
    /// as a program of another build does, and records that it was called. Returns the file with these records.
    fn upgrade(&self) -> PathBuf {
        let (new, used) = (self.0.path().join("new"), self.0.path().join("used"));
        let says = format!("[ \"$1\" = --version ] && echo {SMALL} 0.0.1+of-another-build && exit 0");
        write_script(&new, &format!("#!/bin/sh\n{says}\necho \"$@\" >> {}\nexit 64\n", used.display()));
        fs::rename(new, self.small()).unwrap();
        used
    }

    /// The same command with the program of this folder.
    fn command(&self, server: &TestServer, args: &[&str]) -> Command {
        let usual = server.command(args);
        let mut command = Command::new(self.own());
        command.args(usual.get_args()).current_dir(server.folder.path()).stdin(Stdio::null());
        command
    }

    /// Starts the server. Its log is the file `log` in its folder.
    fn serve(&self, server: &mut TestServer) {
        let mut command = self.command(server, &["serve", "--log", "info"]);
        command.stderr(File::create(log(server)).unwrap());
        server.start_by(command).unwrap();
    }

    fn doctor(&self, server: &TestServer) -> String {
        let shown = self.command(server, &["doctor"]).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        shown.lines().find(|line| line.contains("supervisors:")).unwrap().to_owned()
    }
}

fn log(server: &TestServer) -> PathBuf {
    server.folder.path().join("log")
}

fn stopped() -> TestServer {
    let mut server = TestServer::start();
    assert!(server.stop().success());
    server
}

/// A server that was started with this program.
fn served_by(installed: Installed) -> (Installed, TestServer) {
    let mut server = stopped();
    installed.serve(&mut server);
    (installed, server)
}

/// The program that supervises the agent's first turn.
fn supervisor_of(server: &TestServer, id: &str) -> PathBuf {
    let record = server.data_dir().join(format!("runs/{id}-1/supervisor.json"));
    let record: Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
    let exe = fs::read_link(format!("/proc/{}/exe", record["pid"])).unwrap();
    PathBuf::from(exe.to_str().unwrap().trim_end_matches(" (deleted)"))
}

/// Launches an agent that continues when the file exists.
async fn launch(server: &TestServer, gate: &Path) -> String {
    let id = server.launch(&json!({ "deltas": 30, "gate": gate, "gate_after": 10 })).await;
    server.wait_until(&id, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    id
}

async fn ends_well(server: &TestServer, id: &str) {
    server.wait_for_status(id, "completed").await;
    assert_eq!(text_of(&server.events(id).await), numbers(30));
    no_process_is_left(id).await;
}

#[tokio::test]
async fn by_default_the_small_program_supervises_and_is_recognised_by_the_next_server() {
    let (installed, mut server) = served_by(Installed::whole());
    let gate = server.folder.path().join("gate");
    let id = launch(&server, &gate).await;
    assert_eq!(supervisor_of(&server, &id), installed.small());
    server.kill_9();
    installed.serve(&mut server);
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "running");
    fs::write(&gate, "").unwrap();
    ends_well(&server, &id).await;
    assert!(!fs::read_to_string(log(&server)).unwrap().contains("supervised"), "there is nothing to be told");
    let shown = installed.doctor(&server);
    assert!(shown.starts_with("ok") && shown.ends_with(SMALL), "{shown}");
}

#[tokio::test]
async fn alone_in_its_folder_the_server_supervises_itself_and_says_so() {
    let (installed, mut server) = served_by(Installed::alone());
    let gate = server.folder.path().join("gate");
    let id = launch(&server, &gate).await;
    assert_eq!(supervisor_of(&server, &id), installed.own());
    let said = fs::read_to_string(log(&server)).unwrap();
    let lines: Vec<_> = said.lines().filter(|line| line.contains(SMALL)).collect();
    assert!(lines.len() == 1 && lines[0].contains("INFO") && lines[0].contains("does not exist"), "{said}");
    server.kill_9();
    installed.serve(&mut server);
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "running");
    fs::write(&gate, "").unwrap();
    ends_well(&server, &id).await;
    let shown = installed.doctor(&server);
    assert!(shown.starts_with("warning") && shown.contains(&format!("{SMALL} does not exist")), "{shown}");
}

#[tokio::test]
async fn one_of_another_build_is_told_of_and_never_supervises() {
    let (installed, mut server) = (Installed::whole(), stopped());
    let used = installed.upgrade();
    let shown = installed.doctor(&server);
    let other = "different build";
    assert!(shown.starts_with("warning") && shown.contains(other) && shown.contains("0.0.1"), "{shown}");
    installed.serve(&mut server);
    let said = fs::read_to_string(log(&server)).unwrap();
    assert!(said.lines().any(|line| line.contains("WARN") && line.contains(other)), "{said}");
    let id = server.launch(&json!({ "deltas": 30 })).await;
    ends_well(&server, &id).await;
    assert!(!used.exists(), "{:?}", fs::read_to_string(used));
}

#[tokio::test]
async fn an_upgrade_under_a_running_server_breaks_no_run() {
    let (installed, mut server) = served_by(Installed::whole());
    let gate = server.folder.path().join("gate");
    let before = launch(&server, &gate).await;
    let used = installed.upgrade();
    let after = launch(&server, &gate).await;
    assert_eq!(supervisor_of(&server, &before), installed.small());
    assert_eq!(supervisor_of(&server, &after), installed.own());
    let next = launch(&server, &gate).await;
    assert_eq!(supervisor_of(&server, &next), installed.own());
    assert_eq!(fs::read_to_string(used).unwrap().lines().count(), 1, "it is tried once");
    let said = fs::read_to_string(log(&server)).unwrap();
    assert_eq!(said.matches("different build").count(), 1, "{said}");
    // The next server adopts the runs of both programs.
    server.kill_9();
    installed.serve(&mut server);
    fs::write(&gate, "").unwrap();
    for id in [before, after, next] {
        ends_well(&server, &id).await;
    }
}

#[tokio::test]
async fn a_small_program_that_is_removed_under_a_running_server_is_done_without() {
    let (installed, server) = served_by(Installed::whole());
    fs::remove_file(installed.small()).unwrap();
    let gate = server.folder.path().join("gate");
    let id = launch(&server, &gate).await;
    assert_eq!(supervisor_of(&server, &id), installed.own());
    fs::write(&gate, "").unwrap();
    ends_well(&server, &id).await;
}

#[test]
fn the_small_program_refuses_what_is_not_for_its_build() {
    let small = program().with_file_name(SMALL);
    let run = tempfile::tempdir().unwrap();
    let folder = run.path().to_str().unwrap();
    let refused = [
        &["supervise", folder, "--for", "0.0.1+of-another-build"][..],
        &["supervise", folder],
        &["converse", "acp", folder, "--", "/bin/true"],
        &["serve"],
        &[],
    ];
    for args in refused {
        let ended = Command::new(&small).args(args).output().unwrap();
        assert_eq!(ended.status.code(), Some(64), "{args:?}");
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "nothing was done");
    }
    let shown = Command::new(&small).arg("--version").output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let build = shown.trim_end().strip_prefix("tokenrail-supervisor ").unwrap();
    let ended = Command::new(&small).args(["supervise", folder, "--for", build]).status().unwrap();
    assert!(ended.success() && run.path().join("exit.json").exists(), "and does the rest");
}

/// A server whose small program hangs starts nevertheless.
#[tokio::test]
async fn a_small_program_that_says_nothing_is_not_waited_for() {
    let (installed, mut server) = (Installed::alone(), stopped());
    write_script(&installed.small(), "#!/bin/sh\nexec sleep 600\n");
    server.config.push_str("[limits]\nspawn_timeout_s = 1\n");
    installed.serve(&mut server);
    let said = fs::read_to_string(log(&server)).unwrap();
    assert!(said.contains("does not work"), "{said}");
    let needle = installed.small();
    let left = crate::harness::processes_of(&needle);
    assert_eq!(left, [] as [Pid; 0], "it was ended");
}
