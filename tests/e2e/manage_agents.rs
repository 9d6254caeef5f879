//! Commands about one agent: send, show, questions, rm, open and up.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use crate::harness::{TestServer, no_process_is_left, write_script};

fn run(server: &TestServer, args: &[&str]) -> (i32, String, String) {
    let output = server.command(args).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_sent_and_only_its_answer_is_shown() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "say": ["first"] })).await;
    let (code, shown, said) = run(&server, &["send", "latest", r#"{"say":["second"]}"#]);
    assert_eq!(code, 0, "{said}");
    assert!(shown.contains("second") && !shown.contains("first"), "{shown}");
    let (code, shown, said) = run(&server, &["send", &id, "--detach", r#"{"say":["third"]}"#]);
    assert_eq!((code, shown.trim_end()), (0, "3"), "{said}");
    server.wait_until(&id, |agent| agent["turn"] == 3 && agent["status"] == "completed").await;
    let (code, shown, said) = run(&server, &["send", &id, "--detach", "--json", "{}"]);
    assert_eq!(code, 0, "{said}");
    let sent: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&sent["agentId"], &sent["turn"]), (&json!(id), &json!(4)));
    let (code, _, said) = run(&server, &["send", &id, r#"{"mode":"no_result"}"#]);
    assert_eq!(code, 1, "the outcome of the turn: {said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_facts_of_an_agent_are_shown() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "deltas": 3 })).await;
    let (code, shown, said) = run(&server, &["show", &id]);
    assert_eq!(code, 0, "{said}");
    let agent = server.get(&format!("/api/agents/{id}")).await;
    for (name, fact) in [
        ("id", id.as_str()),
        ("status", "completed"),
        ("type", "fake"),
        ("folder", agent["cwd"].as_str().unwrap()),
        ("prompt", r#"{"deltas":3}"#),
        ("turns", "1"),
        ("events", &agent["head"].to_string()),
        ("ended", agent["endedAt"].as_str().unwrap()),
    ] {
        assert!(shown.contains(&format!("{name:<10}{fact}\n")), "{name}: {shown}");
    }
    let (code, shown, _) = run(&server, &["show", "latest", "--json"]);
    assert_eq!((code, serde_json::from_str::<Value>(&shown).unwrap()), (0, agent));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_questions_are_listed_with_the_command_that_answers_them() {
    let server = crate::questions::server("");
    let (code, shown, said) = run(&server, &["questions"]);
    assert_eq!((code, &shown[..], &said[..]), (0, "", "no agent is waiting for an answer\n"));
    let (first, second) = (crate::questions::asking(&server).await, crate::questions::asking(&server).await);
    let (code, shown, said) = run(&server, &["questions"]);
    assert_eq!(code, 0, "{said}");
    for id in [&first, &second] {
        let asked = format!("{id}  asking  Clean up\n? Allow Bash? rm -r build\n  1  Allow  (allow)\n");
        assert!(shown.contains(&asked), "{shown}");
        let answer = format!("  tokenrail answer {id} 1-1 allow|allow_always|reject --config ");
        assert!(shown.contains(&answer), "{shown}");
    }
    let (_, shown, _) = run(&server, &["questions", "--json"]);
    let asked: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(asked.len(), 2);
    assert_eq!(
        (&asked[0]["agentId"], &asked[0]["requestId"]),
        (&json!(first), &json!("1-1")),
        "the oldest comes first"
    );
    assert_eq!(asked[0]["options"].as_array().unwrap().len(), 3);
    let (code, _, said) = run(&server, &["answer", &first, "1-1", "allow"]);
    assert_eq!(code, 0, "{said}");
    server.wait_for_status(&first, "completed").await;
    let (_, shown, _) = run(&server, &["questions"]);
    assert!(!shown.contains(&first) && shown.contains(&second), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_are_deleted_but_running_ones_only_by_force() {
    let server = TestServer::start();
    let done = server.launch_to_completion(&json!({})).await;
    let busy = server.launch(&json!({ "mode": "hang" })).await;
    server.wait_for_status(&busy, "running").await;
    let (code, shown, said) = run(&server, &["rm", &done, &busy]);
    assert_eq!((code, &shown[..]), (1, ""), "{said}");
    assert!(said.contains(&format!("{busy} is running; cancel it first with: tokenrail cancel")), "{said}");
    let (code, shown, said) = run(&server, &["rm", &busy, "--json"]);
    assert_eq!((code, &shown[..]), (1, ""), "{said}");
    // Not the code `agent_active` of an export, after which the same request may succeed later.
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["code"], "agent_running");
    assert_eq!(server.get("/api/agents").await.as_array().unwrap().len(), 2, "nothing is deleted");
    let (code, shown, said) = run(&server, &["rm", &done, "latest", &done, "--force"]);
    let expected = format!("deleted {done}; its history is kept\ndeleted {busy}; its history is kept\n");
    assert_eq!((code, shown), (0, expected), "{said}");
    no_process_is_left(&busy).await;
    assert_eq!(server.get("/api/agents").await, json!([]));
    assert_eq!(server.get(&format!("/api/agents/{busy}")).await["status"], "cancelled");
    // A deleted agent is found only by its full id.
    let (code, _, said) = run(&server, &["rm", &done[..30], "--purge"]);
    assert!(code == 1 && said.contains("no such agent"), "{said}");
    let (code, shown, said) = run(&server, &["rm", &done, "--purge", "--json"]);
    assert_eq!(code, 0, "{said}");
    let purged: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(purged, json!({ "agentId": done, "purged": true }));
    let (code, _, said) = run(&server, &["show", &done]);
    assert!(code == 1 && said.contains("not_found"), "{said}");
    let (code, _, _) = run(&server, &["rm"]);
    assert_eq!(code, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_of_the_page_is_printed_and_opened_on_a_desktop() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({})).await;
    let address = server.authority();
    let (code, shown, said) = run(&server, &["open"]);
    assert!(code == 0 && is_link(&shown, &format!("http://{address}/#code=")), "{shown}{said}");
    assert!(!shown.contains(server.token()), "{shown}");
    let page = format!("http://{address}/agents/{id}#code=");
    let (code, shown, said) = run(&server, &["open", "latest", "--json"]);
    let url = serde_json::from_str::<Value>(&shown).unwrap()["url"].take();
    assert!(code == 0 && is_link(url.as_str().unwrap(), &page), "{shown}{said}");
    // A desktop whose opener writes down what it is to open.
    let opened = server.folder.path().join("opened");
    let script = format!("#!/bin/sh\necho \"$1\" > {0}.new\nmv {0}.new {0}\n", opened.display());
    write_script(&server.folder.path().join("xdg-open"), &script);
    let path = format!("{}:{}", server.folder.path().display(), std::env::var("PATH").unwrap());
    let desktop = |args: &[&str]| {
        let mut command = server.command(args);
        assert!(command.env("PATH", &path).env("DISPLAY", ":0").output().unwrap().status.success());
    };
    desktop(&["open", &id, "--print"]);
    assert!(!opened.exists());
    desktop(&["open", &id]);
    let started = std::time::Instant::now();
    while !opened.exists() {
        assert!(started.elapsed() < crate::harness::PATIENCE, "nothing was opened");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let link = std::fs::read_to_string(&opened).unwrap();
    assert!(is_link(&link, &page), "{link}");
    // A server runs already, so `up` only opens the page.
    let (code, shown, said) = run(&server, &["up"]);
    assert!(code == 0 && is_link(&shown, &format!("http://{address}/#code=")), "{shown}{said}");
}

/// Whether a text is a link that begins like this and ends with a login code.
fn is_link(text: &str, beginning: &str) -> bool {
    let code = text.trim_end().strip_prefix(beginning).unwrap_or_default();
    code.len() == 64 && code.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn up_starts_a_server_and_prints_the_address_of_its_page() {
    let mut server = TestServer::start();
    server.stop();
    let mut up = server.command(&["up", "--print"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(up.stdout.take().unwrap()).lines().map_while(Result::ok);
    let page = format!("Tokenrail is up. Its page: http://{}/#code=", server.authority());
    let first = lines.next().unwrap();
    assert!(is_link(&first, &page), "{first}");
    let about_link = lines.next().unwrap();
    assert!(
        about_link.starts_with("This link can be used once and expires after 10 minutes."),
        "{about_link}"
    );
    let advice = lines.next().unwrap();
    assert!(advice.starts_with("To run an agent in a folder: tokenrail run --cwd . \""), "{advice}");
    let id = server.launch_to_completion(&json!({ "deltas": 2 })).await;
    rustix::process::kill_process(Pid::from_child(&up), Signal::INT).unwrap();
    assert!(up.wait().unwrap().success());
    server.start_again();
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "completed");
}

#[tokio::test]
async fn up_with_json_prints_only_the_link_as_json() {
    let mut server = TestServer::start();
    server.stop();
    let mut up = server.command(&["up", "--print", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(up.stdout.take().unwrap()).lines().map_while(Result::ok);
    let first: serde_json::Value = serde_json::from_str(&lines.next().unwrap()).unwrap();
    let page = format!("http://{}/#code=", server.authority());
    assert!(is_link(first["url"].as_str().unwrap(), &page), "{first}");
    rustix::process::kill_process(Pid::from_child(&up), Signal::INT).unwrap();
    assert!(up.wait().unwrap().success());
    assert_eq!(lines.next(), None);
}
