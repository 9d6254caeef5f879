//! ACP agents that misbehave: scripts whose every line is known.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{TestServer, no_process_is_left, text_of, write_script};

/// The beginning of every script: functions that print a JSON-RPC response, or some text of the agent.
const BEGIN: &str = r#"#!/bin/sh
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
say() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$1"; }
ask() { printf '{"jsonrpc":"2.0","id":"%s","method":"%s","params":%s}\n' "$1" "$2" "$3"; read -r told; }
hello() { read -r initialize; answer 1 '{"protocolVersion":1}'; }
prompted() { hello; read -r new; answer 2 '{"sessionId":"s"}'; read -r prompt; }
"#;

/// The bytes `GIF89a another one` in base64.
const IMAGE: &str = "R0lGODlhIGFub3RoZXIgb25l";

struct Script {
    server: TestServer,
    _folder: tempfile::TempDir,
}

impl Script {
    /// A server with an agent that runs this script.
    fn start(script: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("agent");
        write_script(&program, &format!("{BEGIN}{script}\n"));
        let config = format!(
            "[agents.scripted]\nrunner = \"acp\"\nrest_s = 0\nprogram = \"{}\"\n{more}",
            program.display()
        );
        Self { server: TestServer::start_with(&config), _folder: folder }
    }

    /// The agent after its turn, and its text.
    async fn turn(&self) -> (Value, String) {
        let id = self.server.launch_as("scripted", "Go").await;
        let ended = |agent: &Value| agent["endedAt"].is_string() && agent["status"] != "running";
        let agent = self.server.wait_until(&id, ended).await;
        no_process_is_left(&id).await;
        (agent, text_of(&self.server.events(&id).await))
    }
}

/// A script that requests files and prints the responses, without characters that would end a JSON string.
fn asks_for_files(outside: &Path) -> String {
    let link = format!("ln -s {} link", outside.parent().unwrap().display());
    let steps = [
        ("write", r#"{"sessionId":"s","path":"'"$PWD"'/a/new","content":"mine"}"#.to_owned()),
        ("read", r#"{"sessionId":"s","path":"'"$PWD"'/a/new"}"#.to_owned()),
        ("read", format!(r#"{{"sessionId":"s","path":"{}"}}"#, outside.display())),
        ("read", r#"{"sessionId":"s","path":"'"$PWD"'/link/secret"}"#.to_owned()),
        ("read", r#"{"sessionId":"s","path":"'"$PWD"'/../secret"}"#.to_owned()),
        ("write", format!(r#"{{"sessionId":"s","path":"{}","content":"mine"}}"#, outside.display())),
    ];
    let asked = steps.map(|(what, params)| {
        format!("ask f fs/{what}_text_file '{params}'; say \"$(printf %s \"$told\" | tr -d '\\\\\"')|\"")
    });
    format!("prompted; {link}; {}; answer 3 '{{\"stopReason\":\"end_turn\"}}'", asked.join("; "))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_gets_files_of_its_folder_and_no_others() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "a secret").unwrap();
    let (agent, said) = Script::start(&asks_for_files(&secret), "").turn().await;
    assert_eq!(agent["status"], "completed", "{agent}");
    let answers: Vec<&str> = said.trim_end_matches('|').split('|').collect();
    assert_eq!(answers.len(), 6, "{said}");
    assert!(answers[0].contains("result:{}") && answers[1].contains("content:mine"), "{said}");
    for refused in &answers[2..] {
        assert!(refused.contains("code:-32602"), "{refused}");
    }
    assert!(!said.contains("a secret"), "{said}");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "a secret");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_gets_no_files_where_the_configuration_says_so() {
    let script = r#"prompted; ask f fs/read_text_file '{"path":"'"$PWD"'/a"}'; say "$(printf %s "$told" | tr -d '"')"; answer 3 '{"stopReason":"end_turn"}'"#;
    let (agent, said) = Script::start(script, "files = false\n").turn().await;
    assert_eq!(agent["status"], "completed", "{agent}");
    assert!(said.contains("code:-32601"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_asks_that_nobody_knows_is_answered_with_an_error() {
    let script = "prompted; ask 9 terminal/create '{}'; case \"$told\" in *-32601*) say refused;; esac; answer 3 '{\"stopReason\":\"end_turn\"}'";
    let (agent, said) = Script::start(script, "").turn().await;
    assert_eq!((&agent["status"], said.as_str()), (&"completed".into(), "refused"), "{agent}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_ends_before_its_answer_has_failed() {
    for script in ["exit 0", "hello; exit 3", "prompted; say half; exit 0"] {
        let (agent, said) = Script::start(script, "").turn().await;
        assert_eq!(agent["status"], "failed", "{script}: {agent}");
        assert_eq!(said, if script.contains("half") { "half" } else { "" });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_wants_a_login_says_which() {
    let script = r#"read -r initialize; answer 1 '{"protocolVersion":1,"authMethods":[{"id":"browser","name":"Log in with a browser"}]}'; read -r new; printf '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"no login"}}\n'; read -r more"#;
    let script = Script::start(script, "");
    let (agent, _) = script.turn().await;
    assert_eq!(agent["status"], "failed", "{agent}");
    let events = script.server.events(agent["id"].as_str().unwrap()).await;
    let error = events.iter().find(|event| event["type"] == "error").unwrap();
    assert_eq!(error["metadata"]["error"]["class"], "authentication", "{error}");
    assert_eq!(error["metadata"]["error"]["code"], "login_required", "{error}");
    assert!(error["content"].to_string().contains("Log in with a browser"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_accepts_images_gets_them_before_the_text() {
    // It keeps the prompt in a file of its folder.
    let script = r#"read -r initialize; answer 1 '{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{"image":true}}}'; read -r new; answer 2 '{"sessionId":"s"}'; read -r prompt; printf '%s' "$prompt" > asked; say seen; answer 3 '{"stopReason":"end_turn"}'"#;
    let script = Script::start(script, "");
    let body = json!({ "type": "scripted", "prompt": "What is this?", "images": [{ "data": IMAGE }] });
    let (status, agent) = script.server.post("/api/agents", &body).await;
    assert_eq!(status, 201, "{agent}");
    let id = agent["id"].as_str().unwrap();
    script.server.wait_for_status(id, "completed").await;
    assert_eq!(text_of(&script.server.events(id).await), "seen");
    let asked = script.server.data_dir().join("work").join(id).join("asked");
    let asked: Value = serde_json::from_str(&std::fs::read_to_string(asked).unwrap()).unwrap();
    let image = json!({ "type": "image", "mimeType": "image/gif", "data": IMAGE });
    assert_eq!(asked["params"]["prompt"], json!([image, { "type": "text", "text": "What is this?" }]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_accepts_no_images_fails_with_an_error_that_says_so() {
    let script = Script::start("prompted; answer 3 '{\"stopReason\":\"end_turn\"}'", "");
    let body = json!({ "type": "scripted", "prompt": "What is this?", "images": [{ "data": IMAGE }] });
    let (_, agent) = script.server.post("/api/agents", &body).await;
    let id = agent["id"].as_str().unwrap();
    script.server.wait_for_status(id, "failed").await;
    let events = script.server.events(id).await;
    let error = events.iter().find(|event| event["type"] == "error").unwrap();
    assert!(error["content"].to_string().contains("image"), "{error}");
}
