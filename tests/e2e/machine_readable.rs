//! Output and errors for programs, and errors that name what the user has to change.

use std::process::Command;

use serde_json::Value;

use crate::harness::{TestServer, program};

/// Runs a command that fails. Returns its exit code, and the error as JSON.
fn error_of(command: &mut Command) -> (i32, Value) {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((&output.stdout[..], said.lines().count()), (&b""[..], 1), "{said}");
    (output.status.code().unwrap(), serde_json::from_str(&said).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_json_an_error_is_one_line_with_a_stable_code() {
    let mut server = TestServer::start();
    let bad = server.folder.path().join("bad.toml");
    std::fs::write(&bad, "[server]\nlisen = \"x\"\n").unwrap();
    let bad = bad.to_str().unwrap();
    for (args, exit, code, message) in [
        (&["tail", "nonsense"][..], 1, "not_found", "no such agent"),
        (&["tail", "ffff"], 1, "not_found", "no such agent: ffff: no id begins or ends with it"),
        (&["run", "--type", "nope", "hi"], 1, "runner_unknown", ""),
        (&["ls", "--status", "bogus"], 1, "validation_failed", ""),
        (&["ls", "--nonsense"], 2, "usage", "unexpected argument '--nonsense' found"),
        (&["ls", "--url", "box"], 2, "configuration", ""),
    ] {
        let (found, error) = error_of(server.command(args).arg("--json"));
        assert_eq!((found, error["code"].as_str()), (exit, Some(code)), "{args:?}: {error}");
        let said = error["message"].as_str().unwrap();
        assert!(!said.is_empty() && said.starts_with(message), "{args:?}: {error}");
        assert!(!said.ends_with(')') || !said.contains(&format!("({code})")), "{args:?}: {error}");
    }
    let mut command = Command::new(program());
    let (exit, error) = error_of(command.args(["ls", "--json", "--config", bad]));
    assert_eq!((exit, error["code"].as_str()), (2, Some("configuration")));
    assert!(error["message"].as_str().unwrap().contains("did you mean `listen`?"), "{error}");
    server.stop();
    let (exit, error) = error_of(server.command(&["ls"]).arg("--json"));
    assert_eq!((exit, error["code"].as_str()), (3, Some("unreachable")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_is_json_too() {
    let server = TestServer::start();
    let output = server.command(&["token", "--json"]).output().unwrap();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed, serde_json::json!({ "token": server.token() }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_without_a_match_says_that_no_agent_has_the_status() {
    let server = TestServer::start();
    server.launch_to_completion(&serde_json::json!({})).await;
    let output = server.command(&["ls", "--status", "running"]).output().unwrap();
    assert_eq!(output.stdout, b"");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "no agents with the status running\n");
}

#[test]
fn a_wrong_variable_is_reported_by_its_name_with_few_suggestions() {
    let said = |variable: &str, value: &str| {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(program());
        command.arg("ls").env(variable, value).env("HOME", home.path()).current_dir(home.path());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let listen = said("TOKENRAIL_LISTEN", "foo");
    assert!(listen.starts_with("tokenrail: TOKENRAIL_LISTEN: invalid address \"foo\""), "{listen}");
    let unknown = said("TOKENRAIL_LIMITS_RUNNING_AGENT", "8");
    assert!(unknown.contains("did you mean TOKENRAIL_LIMITS_RUNNING_AGENTS?"), "{unknown}");
    assert!(unknown.len() < 200, "{unknown}");
    let wrong = said("TOKENRAIL_LIMITS_RUNNING_AGENTS", "many");
    assert!(wrong.contains("expected a whole number") && !wrong.contains("usize"), "{wrong}");
}
