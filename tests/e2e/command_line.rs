//! The command line, as a person and as a script use it.

use std::process::Output;

use serde_json::Value;

use crate::harness::{TestServer, assert_dense, fake_config};

fn run(server: &TestServer, args: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = server.command(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_follows_and_its_exit_code_is_the_outcome() {
    let server = TestServer::start();
    let (code, shown, _) = run(&server, &["run", "--type", "fake", r#"{"deltas":5}"#]);
    assert_eq!(code, 0);
    assert!(shown.contains("0 1 2 3 4 \n— completed"), "{shown}");
    assert!(!shown.contains('\x1b'), "no colours in a pipe");
    let (code, shown, _) = run(&server, &["run", "--type", "fake", r#"{"mode":"no_result"}"#]);
    assert_eq!(code, 1, "{shown}");
    let (code, _, said) = run(&server, &["run", "--type", "nope", "hi"]);
    assert_eq!(code, 1);
    assert!(said.contains("runner_unknown"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_of_json_are_the_events() {
    let server = TestServer::start();
    let (code, shown, _) = run(&server, &["run", "--json", "--type", "fake", r#"{"deltas":5}"#]);
    assert_eq!(code, 0);
    let events: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_dense(&events);
    let id = events[0]["agentId"].as_str().unwrap();
    assert_eq!(events, server.events(id).await);

    let (code, shown, _) = run(&server, &["tail", id, "--since", "4", "--json"]);
    assert_eq!((code, shown.lines().count()), (0, events.len() - 4));
    let (code, shown, _) = run(&server, &["ls"]);
    assert_eq!(code, 0);
    assert!(shown.contains(id) && shown.contains("completed"), "{shown}");
    let (code, _, _) = run(&server, &["cancel", id]);
    assert_eq!(code, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_run_has_one_of_its_own_and_the_others_say_so() {
    let mut server = TestServer::start_with(&fake_config());
    server.stop();
    let (code, shown, said) = run(&server, &["run", "--type", "fake", r#"{"deltas":3}"#]);
    assert_eq!(code, 0, "{said}");
    assert!(shown.contains("0 1 2 "), "{shown}");
    let (code, _, said) = run(&server, &["ls"]);
    assert_eq!(code, 3);
    assert!(said.contains("tokenrail serve"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_needs_nothing() {
    let mut server = TestServer::start_with("");
    server.stop();
    let (code, shown, said) = run(&server, &["demo", "--once", "--speed", "0"]);
    assert_eq!(code, 0, "{said}");
    assert!(shown.contains("● Bash") && shown.contains("All done."), "{shown}");
    let (code, shown, _) = run(&server, &["doctor"]);
    assert_eq!(code, 1, "claude is the default and is not there");
    assert!(shown.contains("ok      database: 1 agents, 106 events"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_words_are_told_and_help_is_given() {
    let server = TestServer::start();
    let (code, _, said) = run(&server, &["demoo"]);
    assert_eq!(code, 2);
    assert!(said.contains("demo"), "{said}");
    let (code, shown, _) = run(&server, &["--help"]);
    assert_eq!(code, 0);
    for command in ["serve", "demo", "run", "tail", "ls", "cancel", "doctor", "token"] {
        assert!(shown.contains(command), "{command} is not in the help");
    }
    assert!(!shown.contains("supervise"), "{shown}");
    let (code, shown, _) = run(&server, &["token"]);
    assert_eq!((code, shown.trim()), (0, server.token()));
    let file = server.folder.path().join("bad.toml");
    std::fs::write(&file, "[server]\nlisen = \"x\"\n").unwrap();
    let output = std::process::Command::new(crate::harness::program())
        .args(["ls", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("bad.toml:2:") && said.contains("did you mean `listen`?"), "{said}");
}
