//! An agent launches another one: the real Claude Code, by MCP, launches the real Codex. Both run in the server, and
//! use scripted models.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{TestServer, processes_of_agent, program};
use crate::model_server::{Gate, ModelServer, Reply, Request, claude};
use crate::real_agents::SLOW;
use crate::real_codex::app_server::APP_SERVER;

const WORDS: usize = 20;
/// How many words Codex has said when Claude is killed.
const BEFORE: usize = 8;

/// How Claude reaches the server: its entry for the MCP server.
type Entry = fn(&TestServer) -> Value;

fn by_pipes(server: &TestServer) -> Value {
    let url = format!("http://{}", server.authority());
    let env = json!({ "TOKENRAIL_URL": url, "TOKENRAIL_TOKEN": server.token() });
    json!({ "command": program(), "args": ["mcp"], "env": env })
}

fn by_http(server: &TestServer) -> Value {
    let url = format!("http://{}/mcp", server.authority());
    let token = format!("Bearer {}", server.token());
    let headers = json!({ "Authorization": token, "Tokenrail-Run": "${TOKENRAIL_RUN}" });
    json!({ "type": "http", "url": url, "headers": headers })
}

/// A server with both agents. Claude's settings are in `home`.
fn start(codex_model: &ModelServer, claude_model: &ModelServer, home: &Path, entry: Entry) -> TestServer {
    let servers = home.join("mcp.json");
    let arguments = [
        "--mcp-config",
        servers.to_str().unwrap(),
        "--strict-mcp-config",
        "--allowedTools",
        "mcp__tokenrail",
    ];
    let claude = claude::block(claude_model, home, &arguments);
    // The scripted model calls the tools without searching for them first.
    let claude = claude.replace("env = { ", "env = { ENABLE_TOOL_SEARCH = \"false\", ");
    let config = format!("{}{claude}", APP_SERVER.config(codex_model, home));
    let server = TestServer::start_with(&config);
    let servers_json = json!({ "mcpServers": { "tokenrail": entry(&server) } });
    std::fs::write(servers, servers_json.to_string()).unwrap();
    server
}

fn call(tool: &str, arguments: Value) -> Reply {
    Reply::tool_call(&format!("mcp__tokenrail__{tool}"), arguments)
}

/// The results of the tool calls that the model has seen, the newest first.
fn results(request: &Request) -> impl Iterator<Item = &str> {
    let messages = request.body()["messages"].as_array().unwrap();
    let blocks = messages.iter().rev().filter_map(|message| message["content"].as_array()).flatten();
    let contents = blocks.filter(|block| block["type"] == "tool_result").map(|block| &block["content"]);
    contents.map(|content| content.as_str().or(content[0]["text"].as_str()).expect("a text"))
}

/// The result of the newest tool call that the model has seen.
fn result(request: &Request) -> Value {
    let text = results(request).next().expect("a result");
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// How far the model has read, as it knows from the results of its waits.
fn last_read(request: &Request) -> Value {
    let mut read = results(request).filter_map(|text| serde_json::from_str::<Value>(text).ok());
    read.find(|read| read["next_since"].is_u64()).expect("the history of the session before")
}

fn said(result: &Value) -> String {
    let texts = result["entries"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "text");
    texts.map(|entry| entry["text"].as_str().unwrap()).collect()
}

/// Waits until Claude has saved what it has read. It writes its session to a file a little later. If it is killed
/// before that, it resumes the session without it, and has to read it again.
async fn until_saved(home: &Path, read: &Value) {
    let written = format!("next_since\\\":{}", read["next_since"]);
    let files = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let started = tokio::time::Instant::now();
    let is_saved = |file: &PathBuf| std::fs::read_to_string(file).is_ok_and(|text| text.contains(&written));
    while !files(&home.join(".claude/projects")).iter().any(|folder| files(folder).iter().any(is_saved)) {
        assert!(started.elapsed() < SLOW, "Claude never saves its session");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Kills the program of an agent, but not its supervisor.
fn kill_claude(id: &str) {
    let program = claude::program().canonicalize().unwrap();
    let is_claude =
        |pid: &String| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
    let claude: Vec<_> = processes_of_agent(id).into_iter().filter(is_claude).collect();
    assert_eq!(claude.len(), 1, "{claude:?}");
    kill_process(Pid::from_raw(claude[0].parse().unwrap()).unwrap(), Signal::KILL).unwrap();
}

async fn a_killed_agent_reads_the_rest_of_its_childs_answer(entry: Entry) {
    let gate = Gate::new();
    let words: Vec<String> = (0..WORDS).map(|number| format!("w{number} 🙂 ")).collect();
    let codex_model = ModelServer::start([Reply::text(words.clone()).gated(&gate)]);
    let claude_model = ModelServer::start_to_be_told();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut server = start(&codex_model, &claude_model, home.path(), entry);
    let seen =
        async |number| tokio::time::timeout(SLOW, claude_model.request(number)).await.expect("a request");

    let parent = server.launch_as("claude-code", "Let Codex count").await;
    let launch = json!({ "agent_type": "codex-app-server", "prompt": "Count", "idempotency_key": "count" });
    claude_model.say(call("launch_agent", launch));
    let child = result(&seen(2).await)["agent_id"].as_str().unwrap().to_owned();
    let agent = server.get(&format!("/api/agents/{child}")).await;
    assert_eq!(agent["launchedBy"], json!(parent), "Claude says who it is");
    tokio::time::timeout(SLOW, codex_model.request(1)).await.expect("Codex asks its model");
    gate.pass(BEFORE);
    let begun = words[..BEFORE].concat();
    let mut first = Value::Null;
    let mut number = 2;
    while said_or_empty(&first) != begun {
        claude_model.say(call("wait_for_agent", json!({ "agent_id": child, "timeout_ms": 200 })));
        number += 1;
        first = result(&seen(number).await);
        assert_eq!(first["reason"], "timeout", "{first}");
    }
    let rest = |read: &Value| {
        let (id, since) = (&read["agent"]["agent_id"], &read["next_since"]);
        json!({ "agent_id": id, "since": since, "timeout_ms": 50_000 })
    };
    claude_model.say(call("wait_for_agent", rest(&first)));
    let calls =
        |events: &[Value]| events.iter().filter(|event| event["metadata"]["eventType"] == "tool_use").count();
    while calls(&server.events(&parent).await) < number {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    until_saved(home.path(), &first).await;
    kill_claude(&parent);
    server.wait_within(SLOW, &parent, |agent| agent["endedAt"].is_string()).await;
    server.kill_and_start_again();
    assert_eq!(server.get(&format!("/api/agents/{child}")).await["status"], "running", "it goes on");
    gate.open();

    let go_on = json!({ "content": "Go on" });
    server.post(&format!("/api/agents/{parent}/messages"), &go_on).await;
    let known = last_read(&seen(number + 1).await);
    assert_eq!(known, first, "it is the same session, and knows what it has read");
    claude_model.say(call("wait_for_agent", rest(&known)));
    let last = result(&seen(number + 2).await);
    assert_eq!((&last["reason"], &last["agent"]["status"]), (&json!("ended"), &json!("completed")));
    assert_eq!(said(&last), words[BEFORE..].concat(), "exactly the rest");
    claude_model.say(Reply::text(["Done."]));
    let done = |agent: &Value| agent["turn"] == 2 && agent["endedAt"].is_string();
    let ended = server.wait_within(SLOW, &parent, done).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(codex_model.requests().len(), 1, "nothing was asked twice");
}

fn said_or_empty(result: &Value) -> String {
    if result.is_null() { String::new() } else { said(result) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claude_is_killed_and_reads_the_rest_of_the_answer_of_codex_over_pipes() {
    a_killed_agent_reads_the_rest_of_its_childs_answer(by_pipes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claude_is_killed_and_reads_the_rest_of_the_answer_of_codex_over_http() {
    a_killed_agent_reads_the_rest_of_its_childs_answer(by_http).await;
}
