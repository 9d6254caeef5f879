//! The system's unit, without systemd: the server is started and stopped as the unit says.

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::harness::{TestServer, numbers, processes_of_agent, text_of};
use crate::packaged::{package, run};

/// The Debian package without an installation: its files, and the settings of its unit.
struct Unpacked {
    folder: TempDir,
    unit: String,
}

impl Unpacked {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let deb = package("tokenrail_", "_amd64.deb").to_string_lossy().into_owned();
        run(folder.path(), "dpkg-deb", &["--extract", &deb, "."]);
        let unit = folder.path().join("lib/systemd/system/tokenrail.service");
        let unit = std::fs::read_to_string(unit).unwrap();
        Self { folder, unit }
    }

    /// The last value of a setting, as systemd sees it.
    fn setting(&self, name: &str) -> Option<&str> {
        self.unit.lines().rev().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }

    /// The command of the unit, with the files of the package and of a test's server.
    fn start(&self, server: &TestServer) -> Command {
        let words: Vec<_> = self.setting("ExecStart").unwrap().split(' ').collect();
        let (program, arguments) = words.split_first().unwrap();
        let mut command = Command::new(self.folder.path().join(program.trim_start_matches('/')));
        let data = server.data_dir().to_string_lossy().into_owned();
        let config = server.folder.path().join("tokenrail.toml").to_string_lossy().into_owned();
        let ours = |word: &&str| match *word {
            "/var/lib/tokenrail/data" => data.clone(),
            "/etc/tokenrail/tokenrail.toml" => config.clone(),
            other => other.to_owned(),
        };
        command.args(arguments.iter().map(ours)).arg("--listen").arg(server.authority());
        command
    }

    /// Stops the server: systemd ends the main process alone, or by default every process of the unit.
    fn stop(&self, server: &mut TestServer, agent: &str) {
        assert!(server.stop().success());
        if self.setting("KillMode") != Some("process") {
            let pids =
                processes_of_agent(agent).into_iter().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
            for pid in pids {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

#[tokio::test]
async fn an_agent_survives_a_restart_of_the_service() {
    let unpacked = Unpacked::new();
    let mut server = TestServer::start();
    server.stop();
    server.start_by(unpacked.start(&server)).expect("the packaged server serves");
    let hurry = server.folder.path().join("hurry");
    let deltas = 20_000;
    let script = json!({ "mode": "stream", "deltas": deltas, "pace_us": 2000, "hurry": hurry });
    let id = server.launch(&script).await;
    server.wait_until(&id, |agent| 20 < agent["head"].as_u64().unwrap()).await;

    unpacked.stop(&mut server, &id);
    server.start_by(unpacked.start(&server)).expect("it serves again");

    let agent = server.get(&format!("/api/agents/{id}")).await;
    assert_eq!(agent["status"], "running", "{agent}");
    std::fs::write(&hurry, "").unwrap();
    server.wait_for_status(&id, "completed").await;
    assert_eq!(text_of(&server.events(&id).await), numbers(deltas), "no token is lost or doubled");
}

#[test]
fn no_setting_deletes_files_of_agents_that_keep_running() {
    let unpacked = Unpacked::new();
    for setting in ["PrivateTmp", "RuntimeDirectory", "DynamicUser"] {
        assert_eq!(unpacked.setting(setting), None, "systemd cleans up at a stop, but agents keep running");
    }
}
