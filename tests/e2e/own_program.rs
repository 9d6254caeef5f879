//! The user's own programs: they know nothing about agents, and print lines.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{TestServer, fake_agent, no_process_is_left, outline, text_of};

fn start() -> TestServer {
    let program = fake_agent();
    let program = program.display();
    TestServer::start_with(&format!(
        "[agents.text]\nformat = \"text\"\nprogram = \"{program}\"\n\
         [agents.lines]\nformat = \"jsonl\"\nprogram = \"{program}\"\nresume_args = [\"--resume\", \"{{session}}\"]\n\
         [agents.lines.jsonl]\nkind = \"event.name\"\ntext = \"event.say\"\nsession = \"conversation\"\n\
         deltas = [\"token\"]\nresults = [\"done\"]\n\
         [agents.silent]\nformat = \"jsonl\"\nprogram = \"{program}\"\n[agents.silent.jsonl]\nresults = []\n"
    ))
}

/// Prints these lines, and exits with this code.
fn printing(say: &[&str], code: u8) -> Value {
    json!({ "mode": "print", "say": say, "code": code })
}

async fn ended(server: &TestServer, kind: &str, script: &Value) -> (Value, Vec<Value>) {
    let id = server.launch_as(kind, &script.to_string()).await;
    let ended = |agent: &Value| agent["endedAt"].is_string() && agent["status"] != "running";
    let agent = server.wait_until(&id, ended).await;
    no_process_is_left(&id).await;
    (agent, server.events(&id).await)
}

/// Reparses the journals with the current parsers. Returns the exit code and the output.
fn reparse(server: &mut TestServer) -> (Option<i32>, String) {
    server.stop();
    let mut command: Command = server.command(&["reparse", "--all"]);
    let output = command.output().unwrap();
    server.start_again();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[tokio::test]
async fn text_of_a_program_that_exits_with_zero_is_an_answer() {
    let mut server = start();
    let lines = ["Grüße 👩‍👩‍👧‍👦", "", "  世界\t{\"type\":\"result\"}"];
    let (agent, events) = ended(&server, "text", &printing(&lines, 0)).await;
    assert_eq!(agent["status"], "completed", "{agent}");
    assert_eq!(text_of(&events), lines.join("\n"));
    assert_eq!(outline(&events), ["user_message", "content_delta", "message", "result"]);
    let (_, events) = ended(&server, "text", &printing(&["", "", "late"], 0)).await;
    assert_eq!(text_of(&events), "\n\nlate");
    let (agent, events) = ended(&server, "text", &printing(&[], 0)).await;
    assert_eq!((&agent["status"], text_of(&events)), (&json!("completed"), String::new()));
    let (code, found) = reparse(&mut server);
    assert_eq!(code, Some(0), "the same lines say the same: {found}");
}

#[tokio::test]
async fn a_program_that_exits_otherwise_has_failed_and_its_complaint_says_why() {
    let mut server = start();
    let mut script = printing(&["Half of", "it"], 3);
    script["complain"] = "out of paper\n".into();
    let (agent, events) = ended(&server, "text", &script).await;
    assert_eq!(agent["status"], "failed", "{agent}");
    let error = agent["error"].to_string();
    assert!(error.contains("exited with code 3") && error.contains("out of paper"), "{error}");
    assert_eq!(text_of(&events), "Half of\nit", "what it had said stays");
    let (code, found) = reparse(&mut server);
    assert_eq!(code, Some(0), "the same lines say the same: {found}");
}

#[tokio::test]
async fn a_cancelled_program_is_no_success_whatever_its_exit_code() {
    let server = start();
    let gate = server.folder.path().join("gate");
    let script = json!({ "mode": "print", "say": ["one", "two"], "code": 0, "gate": gate, "gate_after": 1 });
    let id = server.launch_as("text", &script.to_string()).await;
    server.wait_until(&id, |agent| 1 < agent["head"].as_u64().unwrap()).await;
    server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    server.wait_for_status(&id, "cancelled").await;
    assert_eq!(text_of(&server.events(&id).await), "one");
    no_process_is_left(&id).await;
}

#[tokio::test]
async fn a_program_that_ends_while_no_server_runs_has_answered_all_the_same() {
    let mut server = start();
    let path = |name: &str| server.folder.path().join(name);
    let (gate, touch) = (path("gate"), path("done"));
    let mut script = printing(&["one", "two"], 0);
    (script["gate"], script["gate_after"], script["touch"]) = (json!(gate), json!(1), json!(touch));
    let id = server.launch_as("text", &script.to_string()).await;
    server.wait_until(&id, |agent| 1 < agent["head"].as_u64().unwrap()).await;
    server.kill_9();
    std::fs::write(&gate, "").unwrap();
    while !touch.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    server.start_again();
    server.wait_for_status(&id, "completed").await;
    assert_eq!(text_of(&server.events(&id).await), "one\ntwo");
}

#[tokio::test]
async fn lines_are_read_by_the_mapping_of_the_configuration() {
    let mut server = start();
    let lines = [
        r#"{"event":{"name":"token","say":"Hällo "},"conversation":"c-1"}"#,
        r#"{"event":{"name":"token","say":"🙂"}}"#,
        r#"{"event":{"name":"step"}}"#,
        r#"{"event":{"name":"done"},"result":"Hällo 🙂"}"#,
    ];
    // If there is a result, the exit code does not make the turn fail.
    let (agent, events) = ended(&server, "lines", &printing(&lines, 7)).await;
    assert_eq!((&agent["status"], &agent["sessionId"]), (&json!("completed"), &json!("c-1")), "{agent}");
    assert_eq!(text_of(&events), "Hällo 🙂");
    assert_eq!(outline(&events), ["user_message", "content_delta", "step", "message", "result"]);
    let (agent, _) = ended(&server, "lines", &printing(&lines[..3], 0)).await;
    assert_eq!(agent["status"], "failed", "with results, exit code 0 is no success: {agent}");
    let (code, found) = reparse(&mut server);
    assert_eq!(code, Some(0), "the same lines say the same: {found}");
}

#[tokio::test]
async fn without_results_in_the_mapping_the_exit_code_decides() {
    let mut server = start();
    let lines = [r#"{"type":"delta","text":"one "}"#, r#"{"type":"delta","text":"two"}"#];
    let (agent, events) = ended(&server, "silent", &printing(&lines, 0)).await;
    assert_eq!((&agent["status"], &*text_of(&events)), (&json!("completed"), "one two"), "{agent}");
    let (agent, events) = ended(&server, "silent", &printing(&lines, 3)).await;
    assert_eq!((&agent["status"], &*text_of(&events)), (&json!("failed"), "one two"), "{agent}");
    let (code, found) = reparse(&mut server);
    assert_eq!(code, Some(0), "the same lines say the same: {found}");
}

#[tokio::test]
async fn a_program_that_opens_its_output_anew_loses_nothing() {
    let script =
        "cat > /dev/null; echo a; until [ -e go ]; do sleep 0.01; done; echo b > /dev/stdout; echo c";
    let server = TestServer::start_with(&format!(
        "[agents.shell]\nformat = \"text\"\nprogram = \"sh\"\npass_env = [\"PATH\"]\nargs = [\"-c\", \"{script}\"]\n"
    ));
    let id = server.launch_as("shell", "begin").await;
    // Output that was read by then could not be lost any more.
    server.wait_until(&id, |agent| agent["head"] == 2).await;
    std::fs::write(server.data_dir().join("work").join(&id).join("go"), "").unwrap();
    server.wait_for_status(&id, "completed").await;
    assert_eq!(text_of(&server.events(&id).await), "a\nb\nc");
}
