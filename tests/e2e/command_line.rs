//! The command line, as users and scripts use it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::harness::{TestServer, assert_dense, fake_config, program};

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
    let (code, shown, _) = run(&server, &["cancel", id]);
    assert_eq!((code, shown.trim_end()), (0, format!("{id} has already ended: completed").as_str()));
    let (code, _, said) = run(&server, &["run", "--type", "nope", "hi"]);
    assert_eq!(code, 1);
    assert!(said.contains("claude-code") && said.contains("fake"), "the types that there are: {said}");
    let (code, _, said) = run(&server, &["ls", "--limit", "0"]);
    assert_eq!(code, 2, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_run_has_one_of_its_own_and_the_others_say_so() {
    let mut server = TestServer::start_with(&fake_config());
    let gate = server.folder.path().join("gate");
    let other = server.launch(&json!({ "deltas": 10, "gate": gate, "gate_after": 5 })).await;
    server.wait_until(&other, |agent| 5 < agent["head"].as_u64().unwrap()).await;
    server.stop();
    let run_fake = ["run", "--type", "fake", r#"{"deltas":3}"#];
    let mut unnamed = std::process::Command::new(crate::harness::program());
    unnamed.args(run_fake).arg("--data-dir").arg(server.data_dir());
    unnamed.arg("--config").arg(server.folder.path().join("tokenrail.toml"));
    let done = unnamed.current_dir(server.folder.path()).output().unwrap();
    let (shown, said) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(shown.contains("0 1 2 "), "{shown}");
    // If an address is given, the command uses only that server.
    let (code, _, said) = run(&server, &run_fake);
    assert_eq!(code, 3, "{said}");
    let (code, _, said) = run(&server, &["ls"]);
    assert_eq!(code, 3);
    assert!(said.contains("tokenrail serve"), "{said}");
    // The private run did not affect the agents of the earlier server.
    server.start_again();
    assert_eq!(server.get(&format!("/api/agents/{other}")).await["status"], "running");
    std::fs::write(&gate, "").unwrap();
    server.wait_for_status(&other, "completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_needs_nothing() {
    let mut server = TestServer::start_with("");
    server.stop();
    let (code, shown, said) = run(&server, &["demo", "--once", "--speed", "0"]);
    assert_eq!(code, 0, "{said}");
    assert!(shown.contains("● Bash") && shown.contains("All done."), "{shown}");
    assert!(shown.contains("/#code="), "the page shows it too, while it plays: {shown}");
    let (code, shown, said) = run(&server, &["demo", "--once", "--speed", "0", "--json"]);
    assert_eq!(code, 0, "{said}");
    assert!(shown.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{shown}");
    assert!(said.contains("/#code="), "{said}");
    let (code, shown, _) = run(&server, &["doctor"]);
    assert_eq!(code, 1, "claude is the default and is not there");
    assert!(shown.contains("ok      database: agents: 2, events: 212"), "{shown}");
    assert!(shown.contains("supports: streaming\n"), "what the demo can do: {shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_plays_on_the_server_of_the_data_folder_if_one_runs() {
    let server = TestServer::start_with("[agents.demo]\nrunner = \"replay\"\nspeed = 0.0\n");
    let (code, shown, said) = run(&server, &["demo", "--speed", "2"]);
    assert_eq!(code, 0, "{said}");
    assert!(shown.contains(&format!("using the server at http://{}", server.authority())), "{shown}");
    assert!(shown.contains("All done.") && shown.contains("/#code="), "{shown}");
    assert!(said.contains("--speed has no effect"), "{said}");
    assert_eq!(server.get("/api/agents").await[0]["type"], "demo");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_words_are_told_and_help_is_given() {
    let server = TestServer::start();
    let (code, _, said) = run(&server, &["demoo"]);
    assert_eq!(code, 2);
    assert!(said.contains("demo"), "{said}");
    let (code, shown, _) = run(&server, &["--help"]);
    assert_eq!(code, 0);
    assert!(shown.starts_with("Run AI agents, save their output"), "{shown}");
    for command in ["serve", "demo", "run", "tail", "ls", "cancel", "answer", "backup", "doctor", "token"] {
        assert!(shown.contains(command), "{command} is not in the help");
    }
    assert!(!shown.contains("supervise") && !shown.contains("converse"), "{shown}");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_user_types_is_told_wrong_in_words_and_never_leads_elsewhere() {
    let server = TestServer::start();
    let (code, _, said) = run(&server, &["ls", "--status", "bogus"]);
    assert_eq!(code, 1);
    assert!(
        said.contains("status: ") && said.contains("completed") && said.contains("validation_failed"),
        "{said}"
    );
    let (code, _, said) = run(&server, &["ls", "--status", "running&limit=x"]);
    assert!(code == 1 && said.contains("status: "), "it is one value: {said}");
    for id in ["nonsense", "x/../../healthz", "..", ".", "", "a?b#c", "%2e%2e", "é"] {
        for command in ["tail", "cancel"] {
            let (code, shown, said) = run(&server, &[command, id]);
            assert_eq!((code, &shown[..]), (1, ""), "{command} {id}: {said}");
            assert!(said.contains("no such agent (not_found)"), "{command} {id}: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_ends_when_nobody_reads_its_output() {
    let server = TestServer::start();
    let gate = server.folder.path().join("gate");
    let id = server.launch(&serde_json::json!({ "deltas": 2000, "gate": gate, "gate_after": 10 })).await;
    let mut tail = server.command(&["tail", "--json", "--keep", &id]);
    let mut tail = tail.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut byte = [0];
    tail.stdout.take().unwrap().read_exact(&mut byte).unwrap();
    std::fs::write(&gate, "").unwrap();
    let output = tail.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(141), "{said}");
    assert!(said.contains(&format!("tokenrail tail {id} --since ")), "{said}");
    server.wait_for_status(&id, "completed").await;
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = server.command(&["ls"]).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(141), &b""[..]));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = server.command(&["--help"]).stdout(writer).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panic"), "{output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_servers_token_is_told_to_be_another() {
    let server = TestServer::start();
    let elsewhere = tempfile::tempdir().unwrap();
    let command = |args: &[&str]| {
        let mut command = std::process::Command::new(program());
        command.args(args).arg("--listen").arg(server.authority()).arg("--data-dir").arg(elsewhere.path());
        let output = command.current_dir(elsewhere.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = command(&["token"]);
    assert!(code == Some(1) && said.contains("no server has used the data folder"), "{said}");
    let file = elsewhere.path().join("token");
    for token in [None, Some("0".repeat(64))] {
        if let Some(token) = token {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::write(&file, token).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let (code, said) = command(&["ls"]);
        assert!(
            code == Some(1) && said.contains("pass the data folder of that server with --data-dir"),
            "{said}"
        );
    }
    std::fs::write(&file, "short").unwrap();
    let (code, said) = command(&["ls"]);
    assert!(code == Some(1) && said.contains("contains no token"), "{said}");
}

#[test]
fn every_command_says_what_it_is_for_and_refuses_what_it_does_not_know() {
    let command = |args: &[&str]| {
        let output = std::process::Command::new(program()).args(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    for name in ["serve", "demo", "run", "tail", "ls", "cancel", "answer", "backup", "doctor", "token"] {
        let (code, shown, _) = command(&[name, "--help"]);
        assert_eq!(code, Some(0), "{name}");
        assert!(shown.contains("Usage: tokenrail ") && !shown.contains('\x1b'), "{shown}");
        // Each option and argument has an explanation in its own line or in the next one.
        for (line, next) in shown.lines().zip(shown.lines().skip(1)) {
            let option = line.trim_start();
            if option.starts_with("--") || option.starts_with('-') || option.starts_with('<') {
                let explained = option.contains("  ") || next.starts_with("          ");
                assert!(explained, "{name}: nothing explains {option:?}");
            }
        }
        let (code, _, said) = command(&[name, "--nonsense"]);
        assert_eq!(code, Some(2), "{name}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_shown_with_the_command_that_answers_it() {
    let server = crate::questions::server("");
    let id = crate::questions::asking(&server).await;
    let (code, _, said) = run(&server, &["answer", &id, "1-1", "perhaps"]);
    assert_eq!(code, 1);
    assert!(said.contains("allow, allow_always, reject"), "{said}");
    let mut tail = server.command(&["tail", &id]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines().map_while(Result::ok);
    let command = format!("  tokenrail answer {id} 1-1 allow|allow_always|reject --config ");
    let mut before: Vec<String> = Vec::new();
    while !before.last().is_some_and(|line| line.starts_with(&command)) {
        before.push(lines.next().unwrap_or_else(|| panic!("no {command:?} in {before:?}")));
    }
    assert!(before.iter().any(|line| line == "? Allow Bash? rm -r build"), "{before:?}");
    assert!(before.iter().any(|line| line == "  3  Reject  (reject)"), "{before:?}");
    let (code, shown, said) = run(&server, &["answer", &id, "1-1", "allow"]);
    assert_eq!((code, shown.trim_end()), (0, "answered 1-1: allow"), "{said}");
    let after: Vec<String> = lines.collect();
    assert!(after.iter().any(|line| line == "  answered: allow (by user)"), "{after:?}");
    assert!(after.iter().any(|line| line == "It was allowed."), "{after:?}");
    assert!(tail.wait().unwrap().success());
    // Nobody can answer it any more.
    let (code, shown, _) = run(&server, &["tail", &id]);
    assert!(code == 0 && shown.contains("? Allow Bash? rm -r build\n"), "{shown}");
    assert!(!shown.contains("tokenrail answer"), "{shown}");
    let (code, _, said) = run(&server, &["answer", &id, "1-1"]);
    assert_eq!(code, 1);
    assert!(said.contains("is no longer open"), "{said}");
}
