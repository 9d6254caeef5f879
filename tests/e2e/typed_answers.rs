//! Permission requests that are answered on the terminal where the agent is followed.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{TestServer, processes_of_agent, text_of};
use crate::questions::{asking, server, server_asking_for};
use crate::terminal::{self, OnTerminal};

/// Follows an agent on a terminal. The user has typed `typed` before.
fn run(server: &TestServer, args: &[&str], typed: &str) -> OnTerminal {
    let mut command = server.command(args);
    command.env("TERM", "xterm").stderr(Stdio::null());
    terminal::start_for_typing(command, typed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_typed_where_the_agent_is_followed() {
    let server = server("");
    // What was typed before the question was seen is not its answer.
    let mut run = run(&server, &["run", "--type", "asking", "Clean up"], "3\n");
    let shown = run.read_until("answer (1 to 3): ");
    for line in ["? Allow Bash? rm -r build", "  1  ", "  (allow)", "  3  ", "  (reject)"] {
        assert!(shown.contains(line), "no {line:?} in {shown}");
    }
    assert!(!shown.contains("tokenrail answer"), "{shown}");
    run.type_line("4");
    run.read_until("answer (1 to 3): ");
    run.type_line("1");
    let (code, shown) = run.finish();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("answered: allow (by user)") && shown.contains("It was allowed."), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_somebody_else_answers_needs_no_answer_any_more() {
    let server = server("");
    let id = asking(&server).await;
    let mut tail = run(&server, &["tail", &id], "");
    tail.read_until("answer (1 to 3): ");
    server.post(&format!("/api/agents/{id}/permissions/1-1"), &json!({ "optionId": "reject" })).await;
    tail.type_line("1");
    let (code, shown) = tail.finish();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("answered: reject") && shown.contains("It was refused."), "{shown}");
    assert!(text_of(&server.events(&id).await).contains("It was refused."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_is_shown_before_it_is_allowed() {
    let input = json!({ "file_path": "src/a.rs", "old_string": "let a = 1;", "new_string": "let a = 2;" });
    let server = server_asking_for(&input);
    let mut run = run(&server, &["run", "--type", "asking", "Clean up"], "");
    let shown = run.read_until("answer (1 to 3): ");
    for line in ["src/a.rs", "  - let a = 1;", "  + let a = 2;"] {
        assert!(shown.contains(line), "no {line:?} in {shown}");
    }
    run.type_line("reject");
    let (_, shown) = run.finish();
    assert!(shown.contains("It was refused."), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_a_tool_is_to_do_is_shown_before_it_is_allowed() {
    let command = format!("echo{}; rm -r a\nrm -r b", " ".repeat(200));
    let server = server_asking_for(&json!({ "command": command, "run_in_background": true }));
    let mut run = run(&server, &["run", "--type", "asking", "Clean up"], "");
    let shown = run.read_until("answer (1 to 3): ");
    for part in ["? Allow Bash? echo", "; rm -r a", "  rm -r b", "  in the background"] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    run.type_line("reject");
    assert!(run.finish().1.contains("It was refused."));

    let long = (0..40).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n");
    let server = server_asking_for(&json!({ "command": long }));
    let id = asking(&server).await;
    let listed = server.command(&["questions"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("  line 11\n  … 223 more characters in 28 lines\n"), "{listed}");
    server.post(&format!("/api/agents/{id}/permissions/1-1"), &json!({ "optionId": "reject" })).await;
    server.wait_for_status(&id, "completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_was_lost_with_its_process_does_not_block_the_next_one() {
    let server = server("");
    let id = asking(&server).await;
    let mut tail = run(&server, &["tail", &id, "--keep"], "");
    tail.read_until("answer (1 to 3): ");
    // The command line of `tail` has the id too.
    let follower = tail.child.id().to_string();
    for pid in processes_of_agent(&id).into_iter().filter(|pid| *pid != follower) {
        let _ = kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL);
    }
    tail.read_until("— ");
    server.wait_until(&id, |agent| agent["status"] != "running").await;
    server.post(&format!("/api/agents/{id}/messages"), &json!({ "content": "Clean up" })).await;
    tail.read_until("answer (1 to 3): ");
    tail.type_line("1");
    server.wait_for_status(&id, "completed").await;
    assert!(text_of(&server.events(&id).await).ends_with("It was allowed."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answers_to_a_question_are_shown_with_their_descriptions_and_without_json() {
    let server = crate::richer_answers::server_with_colours();
    let mut run = run(&server, &["run", "--type", "asking", "Which?"], "");
    let shown = run.read_until("answer (1 to 3): ");
    assert!(
        shown.contains("? Which colours?") && shown.contains("  2  Blue  (answer_2)  a colour"),
        "{shown}"
    );
    assert!(!shown.contains('{'), "{shown}");
    run.type_line("1,2");
    assert!(run.finish().1.contains("It was told: "));
}

/// The kernel stops a process in the background that changes or reads the terminal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_in_the_background_shows_a_request_and_is_not_stopped() {
    let server = server("");
    let id = asking(&server).await;
    let tail = server.command(&["tail", &id]);
    // The shell has job control, so that its job is in the background.
    let mut shell = Command::new("setsid");
    shell.args(["--ctty", "--wait", "bash", "-c", "set -m; timeout -s KILL 30 \"$@\" & wait $!", "bash"]);
    shell.arg(tail.get_program()).args(tail.get_args());
    shell.current_dir(server.folder.path()).env("TERM", "xterm").stderr(Stdio::null());
    let mut shell = terminal::start_for_typing(shell, "");
    shell.read_until("answer (1 to 3): ");
    server.post(&format!("/api/agents/{id}/permissions/1-1"), &json!({ "optionId": "allow" })).await;
    let (code, shown) = shell.finish();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("It was allowed."), "{shown}");
}
