//! Ctrl-C while an agent is followed: the agent keeps running, unless the user insists.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{TestServer, no_process_is_left, numbers, program};
use crate::terminal;

/// Starts the command with `--json`, and waits for the first event. Returns the agent's id too.
fn followed(mut command: Command) -> (Child, String) {
    let mut child = command.arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut first).unwrap();
    // A command whose output is closed would end by itself.
    std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    let event: Value = serde_json::from_str(&first).unwrap();
    (child, event["agentId"].as_str().unwrap().to_owned())
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits for the end. Returns the exit code and what the command said on standard error.
fn end(mut child: Child) -> (i32, String) {
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code().unwrap(), said)
}

/// The command that the text advises, which begins with these words.
fn advised(said: &str, begins: &str) -> Command {
    let at = said.find(&format!("tokenrail {begins}")).unwrap_or_else(|| panic!("no {begins} in {said}"));
    let line = said[at..].lines().next().unwrap();
    let mut command = Command::new(program());
    command.args(line.split(' ').skip(1)).stdin(Stdio::null());
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_in_run_leaves_the_agent_running_and_says_how_to_go_on() {
    let server = TestServer::start();
    let gate = server.folder.path().join("gate");
    let script = json!({ "deltas": 10, "gate": gate, "gate_after": 5 }).to_string();
    let (run, id) = followed(server.command(&["run", "--type", "fake", &script]));
    server.wait_until(&id, |agent| 5 < agent["head"].as_u64().unwrap()).await;
    send(&run, Signal::INT);
    let (code, said) = end(run);
    assert_eq!(code, 130, "{said}");
    assert!(said.contains("the agent keeps running"), "{said}");
    assert!(said.contains("press Ctrl-C again within 2 s"), "{said}");
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "running");
    // Both commands work as they are printed.
    std::fs::write(&gate, "").unwrap();
    server.wait_for_status(&id, "completed").await;
    let rest = advised(&said, "tail").arg("--json").output().unwrap();
    let first: Value =
        serde_json::from_slice(rest.stdout.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
    let since = said.split("--since ").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(first["sequenceNumber"], since.parse::<u64>().unwrap() + 1);
    let cancelled = advised(&said, "cancel").output().unwrap();
    assert!(String::from_utf8(cancelled.stdout).unwrap().contains(&id));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_ctrl_c_soon_after_cancels_the_agent() {
    let server = TestServer::start();
    let (mut run, id) = followed(server.command(&["run", "--type", "fake", r#"{"mode":"hang"}"#]));
    let mut stderr = BufReader::new(run.stderr.take().unwrap());
    let mut said = String::new();
    send(&run, Signal::INT);
    while !said.contains("press Ctrl-C again") {
        assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "{said}");
    }
    send(&run, Signal::INT);
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("cancelled"), "{said}");
    server.wait_for_status(&id, "cancelled").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tail_and_a_stop_by_a_service_manager_leave_the_agent_at_once() {
    let server = TestServer::start();
    let id = server.launch(&json!({ "mode": "hang" })).await;
    let (tail, _) = followed(server.command(&["tail", &id]));
    send(&tail, Signal::INT);
    let (run, other) = followed(server.command(&["run", "--type", "fake", r#"{"mode":"hang"}"#]));
    send(&run, Signal::TERM);
    for (command, id) in [(tail, id), (run, other)] {
        let (code, said) = end(command);
        assert_eq!(code, 130, "{said}");
        assert!(said.contains("the agent keeps running") && !said.contains("press Ctrl-C"), "{said}");
        assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "running");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_progress_line_is_erased() {
    let server = TestServer::start();
    let mut run = server.command(&["run", "--type", "fake", r#"{"mode":"hang","deltas":0}"#]);
    run.env("TERM", "xterm").stderr(Stdio::piped());
    let mut run = terminal::start(run);
    let shown = run.read_until(" delta");
    assert!(!shown.contains("1 events") && !shown.contains("1 deltas"), "{shown:?}");
    send(&run.child, Signal::INT);
    let mut stderr = run.child.stderr.take().unwrap();
    let (code, shown) = run.finish();
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(code, 130, "{said}");
    assert!(shown.ends_with("\r\x1b[2K"), "{shown:?}");
    assert!(said.starts_with("the agent keeps running"), "{said}");
}

/// The agent is in the middle of a line then, where no status can be shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_says_that_the_server_is_away_and_goes_on_when_it_is_back() {
    let mut server = TestServer::start();
    let gate = server.folder.path().join("gate");
    let script = json!({ "deltas": 10, "gate": gate, "gate_after": 5 }).to_string();
    let mut run = server.command(&["run", "--type", "fake", &script]);
    run.env("TERM", "xterm").stderr(Stdio::piped());
    let mut run = terminal::start(run);
    let mut stderr = BufReader::new(run.child.stderr.take().unwrap());
    run.read_until(numbers(5).trim_end());
    server.kill_9();
    let mut said = String::new();
    stderr.read_line(&mut said).unwrap();
    assert_eq!(said, "cannot reach the server; retrying for up to 30 s\n");
    server.start_again();
    std::fs::write(&gate, "").unwrap();
    let (code, shown) = run.finish();
    assert_eq!(code, 0, "{shown}");
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(said.matches("cannot reach").count(), 1, "{said}");
}

/// A command that knows the server only by its data folder.
fn unnamed(server: &TestServer, args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(args).arg("--data-dir").arg(server.data_dir());
    command.arg("--config").arg(server.folder.path().join("tokenrail.toml"));
    command.current_dir(server.folder.path()).stdin(Stdio::null());
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_outlives_the_private_server_of_run_if_the_user_leaves_it() {
    let mut server = TestServer::start();
    server.stop();
    let gate = server.folder.path().join("gate");
    let script = json!({ "deltas": 10, "gate": gate, "gate_after": 5 }).to_string();
    let (run, id) = followed(unnamed(&server, &["run", "--type", "fake", &script]));
    send(&run, Signal::INT);
    let (code, said) = end(run);
    assert_eq!(code, 130, "{said}");
    assert!(
        said.contains("stopping the server that this command started; the agent keeps running"),
        "{said}"
    );
    assert!(said.contains("to start a server: tokenrail serve --config "), "{said}");
    std::fs::write(&gate, "").unwrap();
    server.start_again();
    server.wait_for_status(&id, "completed").await;
    let rest = advised(&said, "tail").output().unwrap();
    assert!(String::from_utf8(rest.stdout).unwrap().contains("— completed"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_can_launch_an_agent_without_following_it() {
    let mut server = TestServer::start();
    let launch = ["run", "--detach", "--type", "fake", r#"{"deltas":3}"#];
    let output = server.command(&launch).output().unwrap();
    let id = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    server.wait_for_status(id.trim_end(), "completed").await;
    let output = server.command(&[&launch[..], &["--json"]].concat()).output().unwrap();
    let agent: Value = serde_json::from_slice(&output.stdout).unwrap();
    server.wait_for_status(agent["agentId"].as_str().unwrap(), "completed").await;
    no_process_is_left(id.trim_end()).await;
    // A private server would end before the agent.
    server.stop();
    let output = unnamed(&server, &launch).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(3) && said.contains("start one with: tokenrail serve"), "{said}");
}
