//! A server works even if its user has no inotify instance left: it then polls for output.
//!
//! Every other story can run this way too: `TOKENRAIL_TEST_WITHOUT_INOTIFY=true cargo xtask test --only <name>`.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::harness::{TestServer, fake_config, no_process_is_left, numbers, text_of};

/// A user namespace has its own counters. A process in this namespace gets no inotify instance.
const NO_INSTANCE: &str = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$@\"";

/// The same command without inotify. If the system does not allow namespaces, the program itself is told to do without.
fn without_inotify(mut command: Command) -> Command {
    let mut inside = Command::new("unshare");
    inside.args(["--user", "--map-root-user", "sh", "-c", NO_INSTANCE, "sh"]);
    let mut trial = Command::new("unshare");
    trial.args(["--user", "--map-root-user", "sh", "-c", NO_INSTANCE, "sh", "true"]).stderr(Stdio::null());
    if !trial.status().is_ok_and(|status| status.success()) {
        command.env("TOKENRAIL_TEST_WITHOUT_INOTIFY", "true");
        return command;
    }
    inside.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    if let Some(folder) = command.get_current_dir() {
        inside.current_dir(folder);
    }
    inside
}

#[tokio::test]
async fn agents_are_launched_followed_and_cancelled_without_inotify() {
    let mut server = TestServer::start_with(&fake_config());
    assert!(server.stop().success());
    let mut command = without_inotify(server.command(&["serve", "--log", "warn"]));
    let log = server.folder.path().join("log");
    command.stderr(std::fs::File::create(&log).unwrap());
    server.start_by(command).unwrap();
    assert!(std::fs::read_to_string(log).unwrap().contains("the server polls the run folders"));

    let id = server.launch_to_completion(&json!({ "deltas": 40, "pace_us": 5000 })).await;
    let events = server.events(&id).await;
    assert!(text_of(&events).contains(&numbers(40)), "all of it, in order");

    let id = server.launch(&json!({ "mode": "hang" })).await;
    server.wait_until(&id, |agent| 5 < agent["head"].as_u64().unwrap()).await;
    server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    server.wait_for_status(&id, "cancelled").await;
    no_process_is_left(&id).await;
}

#[test]
fn doctor_names_the_setting_of_the_system() {
    let server = TestServer::start_with(&fake_config());
    let mut doctor = without_inotify(server.command(&["doctor"]));
    if doctor.get_program() != "unshare" {
        return;
    }
    let shown = doctor.output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let line = shown.lines().find(|line| line.contains("inotify:")).unwrap();
    assert!(line.starts_with("warning") && line.contains("fs.inotify.max_user_instances"), "{line}");
}
