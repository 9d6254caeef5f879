//! The real program understands the scripted model. Otherwise the tests that build on it would prove nothing.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Gate, ModelServer, Reply, claude};

/// Runs one prompt to its end, and returns the output: one JSON object per line.
fn ask(model: &ModelServer, home: &TempDir, prompt: &str, more: &[&str]) -> Vec<Value> {
    let output = start(model, home, prompt, more).wait_with_output().expect("an end");
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect()
}

/// Reads the output to its end, and runs `then` when this delta comes.
fn watch(mut child: Child, delta: &str, then: impl FnOnce(&Child)) -> Vec<Value> {
    let mut then = Some(then);
    let mut seen = Vec::new();
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        let line: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        if line["event"]["delta"]["text"] == delta
            && let Some(then) = then.take()
        {
            then(&child);
        }
        seen.push(line);
    }
    child.wait().expect("an end");
    seen
}

fn start(model: &ModelServer, home: &TempDir, prompt: &str, more: &[&str]) -> Child {
    let mut command = Command::new(claude::program());
    command.args(claude::ARGUMENTS).args(more).current_dir(home.path());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(claude::environment(model, home.path()));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(prompt.as_bytes()).expect("a program that reads");
    drop(stdin);
    child
}

fn deltas(lines: &[Value], kind: &str) -> Vec<String> {
    let deltas = lines.iter().map(|line| &line["event"]["delta"]);
    let texts = deltas.filter_map(|delta| delta[kind].as_str());
    texts.map(ToOwned::to_owned).collect()
}

fn result(lines: &[Value]) -> &Value {
    lines.iter().find(|line| line["type"] == "result").expect("a result")
}

#[test]
fn it_prints_each_delta_and_then_the_result() {
    let model = ModelServer::start([Reply::thinking(["Hm", ". "]).saying(["Hel", "lo, ", "world"])]);
    let home = TempDir::new().expect("a folder");
    let lines = ask(&model, &home, "Say hello", &[]);
    assert_eq!(deltas(&lines, "thinking"), ["Hm", ". "]);
    assert_eq!(deltas(&lines, "text"), ["Hel", "lo, ", "world"]);
    assert_eq!(result(&lines)["result"], "Hello, world");
    assert_eq!(model.requests()[0].conversation().last().expect("a line"), "user: Say hello");
}

#[test]
fn it_tries_again_when_the_model_is_overloaded() {
    let overloaded = Reply::error(529, "overloaded_error", "Overloaded").retry_after_s(0);
    let model = ModelServer::start([overloaded, Reply::text(["Here now"])]);
    let home = TempDir::new().expect("a folder");
    let lines = ask(&model, &home, "Are you there?", &[]);
    assert!(lines.iter().any(|line| line["subtype"] == "api_retry" && line["error_status"] == 529));
    assert_eq!(result(&lines)["result"], "Here now");
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn it_runs_the_tool_that_the_model_calls() {
    let call = Reply::tool_call("Bash", json!({ "command": "echo hi", "description": "Say hi" }));
    let model = ModelServer::start([call.saying(["I run it."]), Reply::text(["It said hi"])]);
    let home = TempDir::new().expect("a folder");
    let lines = ask(&model, &home, "Run echo hi", &["--allowedTools", "Bash(echo:*)"]);
    assert_eq!(result(&lines)["result"], "It said hi");
    let conversation = model.requests()[1].conversation();
    assert_eq!(conversation.last().expect("a line"), "user: hi");
}

#[test]
fn a_resumed_session_carries_what_was_said_before() {
    let model = ModelServer::start([Reply::text(["Noted"]), Reply::text(["Plum"])]);
    let home = TempDir::new().expect("a folder");
    let first = ask(&model, &home, "Remember the word plum", &[]);
    let session = result(&first)["session_id"].as_str().expect("a session").to_owned();
    let second = ask(&model, &home, "Which word?", &["--resume", &session]);
    assert_eq!(result(&second)["result"], "Plum");
    let conversation = model.requests()[1].conversation();
    let said = ["user: Remember the word plum", "assistant: Noted", "user: Which word?"];
    assert_eq!(conversation, said);
}

#[test]
fn a_cut_stream_is_asked_for_again() {
    let gate = Gate::new();
    let cut = Reply::text(["It was a dark", " and"]).gated(&gate).then_cut();
    let model = ModelServer::start([cut, Reply::text(["A new ", "start"])]);
    let home = TempDir::new().expect("a folder");
    gate.pass(2);
    let lines = watch(start(&model, &home, "Tell me", &[]), " and", |_| gate.open());
    assert_eq!(deltas(&lines, "text"), ["It was a dark", " and", "A new ", "start"]);
    assert_eq!(result(&lines)["result"], "A new start");
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn an_interrupt_in_the_middle_of_a_text_is_told_in_the_result() {
    let model = ModelServer::start([Reply::text(["I begin", " and"]).then_silence()]);
    let home = TempDir::new().expect("a folder");
    let lines = watch(start(&model, &home, "Begin", &[]), " and", |child| {
        kill_process(Pid::from_child(child), Signal::INT).expect("it runs");
    });
    assert_eq!(result(&lines)["terminal_reason"], "aborted_streaming");
}
