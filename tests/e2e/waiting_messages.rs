//! Messages that wait, because an earlier turn waits for the answer to a permission request; and requests that nobody
//! can answer any more.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{TestServer, text_of};
use crate::questions::{asking, server};
use crate::terminal;

fn run(server: &TestServer, args: &[&str]) -> (i32, String, String) {
    let output = server.command(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn on_terminal(mut command: Command) -> terminal::OnTerminal {
    command.env("TERM", "xterm").stderr(Stdio::piped());
    terminal::start_for_typing(command, "")
}

/// What the program says on standard error until its end.
fn said(program: &mut terminal::OnTerminal) -> String {
    let mut said = String::new();
    program.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    said
}

async fn answer(server: &TestServer, id: &str, request: &str) {
    let path = format!("/api/agents/{id}/permissions/{request}");
    let (status, told) = server.post(&path, &json!({ "optionId": "allow" })).await;
    assert_eq!(status, 200, "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_behind_a_question_says_so_and_the_question_is_answered_there() {
    let server = server("");
    let id = asking(&server).await;
    let mut send = on_terminal(server.command(&["send", &id, "Again"]));
    let shown = send.read_until("answer (1 to 3): ");
    assert!(shown.contains("? Allow Bash? rm -r build"), "{shown}");
    send.type_line("1");
    // The second turn asks too.
    send.read_until("answer (1 to 3): ");
    send.type_line("3");
    assert_eq!(said(&mut send), "turn 2 waits for turn 1, which needs an answer from you\n");
    let (code, shown) = send.finish();
    assert_eq!(code, 0, "{shown}");
    assert!(text_of(&server.events(&id).await).starts_with("It was allowed."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_behind_a_question_names_the_command_that_answers_it() {
    let server = server("");
    let id = asking(&server).await;
    let (code, turn, told) = run(&server, &["send", "--detach", &id, "Again"]);
    assert_eq!((code, &turn[..]), (0, "2\n"), "{told}");
    let expected = format!(
        "turn 2 waits for turn 1, which needs an answer: tokenrail answer {id} 1-1 allow|allow_always|reject"
    );
    assert!(told.starts_with(&expected), "{told}");
    // The command that follows prints it too, although the request comes before the message.
    let mut send = server.command(&["send", &id, "And again"]);
    let mut send = send.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(send.stdout.take().unwrap());
    let mut shown = String::new();
    let command = format!("tokenrail answer {id} 1-1 allow|allow_always|reject");
    while !shown.contains(&command) {
        assert_ne!(stdout.read_line(&mut shown).unwrap(), 0, "{shown}");
    }
    answer(&server, &id, "1-1").await;
    for turn in 2..=3 {
        server.wait_until(&id, |agent| agent["turn"] == turn && agent["openQuestions"] == 1).await;
        let asked = server.get("/api/questions").await[0]["requestId"].as_str().unwrap().to_owned();
        answer(&server, &id, &asked).await;
    }
    stdout.read_to_string(&mut shown).unwrap();
    let told = String::from_utf8(send.wait_with_output().unwrap().stderr).unwrap();
    assert!(told.starts_with("turn 3 waits for turn 1, which needs an answer from you\n"), "{told}");
    assert!(shown.matches("rm -r build").count() == 3, "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_says_that_a_message_that_waits_stays_queued() {
    let server = server("");
    let id = asking(&server).await;
    let mut send = on_terminal(server.command(&["send", &id, "Again"]));
    send.read_until("answer (1 to 3): ");
    kill_process(Pid::from_child(&send.child), Signal::INT).unwrap();
    let said = said(&mut send);
    assert!(said.contains("the message stays queued as turn 2, and the agent keeps running"), "{said}");
    assert_eq!(send.finish().0, 130);
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["queued"], 1);
    server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_that_begins_after_a_question_asks_it() {
    let server = server("");
    let id = asking(&server).await;
    let head = server.get(&format!("/api/agents/{id}")).await["head"].to_string();
    let mut tail = on_terminal(server.command(&["tail", &id, "--since", &head]));
    let shown = tail.read_until("answer (1 to 3): ");
    assert_eq!(shown.matches("? Allow Bash? rm -r build").count(), 1, "{shown}");
    tail.type_line("1");
    assert!(tail.finish().1.contains("It was allowed."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_open_request_is_answered_without_its_id() {
    let server = server("");
    let (code, _, told) = run(&server, &["answer", "latest", "allow"]);
    assert!(code == 1 && told.contains("there are no agents in the list"), "{told}");
    let id = asking(&server).await;
    let (code, _, told) = run(&server, &["answer", &id]);
    assert!(
        code == 2 && told.contains("required arguments were not provided"),
        "nothing is dismissed: {told}"
    );
    let (code, shown, told) = run(&server, &["answer", "latest", "allow"]);
    assert_eq!((code, &shown[..]), (0, "answered 1-1: allow\n"), "{told}");
    server.wait_for_status(&id, "completed").await;
    assert!(text_of(&server.events(&id).await).contains("It was allowed."));
    let (code, _, told) = run(&server, &["answer", &id, "allow"]);
    assert!(code == 1 && told.contains(&format!("the agent {id} has no open permission request")), "{told}");
    let (code, _, told) = run(&server, &["answer", &id, "--note", "why", "reject", "--json"]);
    let error: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((code, &error["code"]), (1, &json!("not_found")));
}

/// Asks twice at once.
const TWICE: &str = r#"#!/bin/sh
read -r prompt
ask() { printf '%s\n' '{"type":"control_request","request_id":"'"$1"'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"'"$2"'"},"tool_use_id":"'"$1"'"}}'; }
echo '{"type":"system","subtype":"init","session_id":"s-1"}'
ask a 'rm one'
ask b 'rm two'
read -r answer
read -r answer
echo '{"type":"result","subtype":"success","is_error":false,"result":""}'
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_open_requests_one_must_be_named() {
    let server = crate::questions::server_with(TWICE, "");
    let id = server.launch_as("asking", "Clean up").await;
    server.wait_until(&id, |agent| agent["openQuestions"] == 2).await;
    let (code, _, told) = run(&server, &["answer", &id, "allow"]);
    let listed = "name one of them before the option:\n  1-1  Bash rm one\n  1-2  Bash rm two\n";
    assert!(code == 1 && told.ends_with(listed), "{told}");
    let (code, _, told) = run(&server, &["answer", &id, "1-2", "reject"]);
    assert_eq!(code, 0, "{told}");
    let (code, shown, told) = run(&server, &["answer", &id, "allow"]);
    assert_eq!((code, &shown[..]), (0, "answered 1-1: allow\n"), "{told}");
    server.wait_for_status(&id, "completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_cannot_be_answered_has_no_command_that_answers_it() {
    let server = server("");
    let id = asking(&server).await;
    answer(&server, &id, "1-1").await;
    server.wait_for_status(&id, "completed").await;
    let (code, shown, told) = run(&server, &["tail", &id]);
    assert!(code == 0 && shown.contains("? Allow Bash? rm -r build"), "{told}");
    assert!(!shown.contains("tokenrail answer") && !shown.contains("(recorded)"), "{shown}");

    let (code, shown, told) = run(&server, &["replay", &id, "--speed", "0"]);
    assert!(code == 0 && shown.contains("  3  Reject  (reject)\n  (recorded)\n"), "{shown}{told}");
    assert!(!shown.contains("tokenrail answer"), "{shown}");
    let replay = on_terminal(server.command(&["replay", &id, "--speed", "0"]));
    let (code, shown) = replay.finish();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("(recorded)") && !shown.contains("answer ("), "{shown}");
}
