//! Every kind of client at a server that is not the home of its agent: it writes with the same effect as at the home.

use std::path::PathBuf;

use reqwest::header::ACCEPT;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokenrail_test_postgres::{Database, database};
use tokio::time::timeout;

use super::config;
use super::launches::until_it_knows;
use super::nodes::node_with;
use crate::chat_socket::{next_text, say};
use crate::follower::{Place, connect_to};
use crate::harness::{PATIENCE, TestServer, no_process_is_left, numbers, text_of};
use crate::questions;

pub(super) fn pair(database: &Database) -> (TestServer, TestServer) {
    let node = |name| {
        let config =
            format!("[server]\ndefault_agent = \"fake\"\n{}{}", config(database), questions::block());
        node_with(config, name)
    };
    (node("home"), node("other"))
}

pub(super) async fn send(server: &TestServer, method: Method, path: &str, body: &Value) -> Response {
    let mut request = server.request(method.clone(), path);
    if !body.is_null() {
        request = request.json(body);
    }
    let answer = request.send().await.unwrap();
    assert!(
        answer.status().is_success(),
        "{method} {path}: {} {}",
        answer.status(),
        answer.text().await.unwrap()
    );
    answer
}

/// Sends a request of the Model Context Protocol. Returns its result.
async fn ask(server: &TestServer, method: &str, params: &Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let request = server.request(Method::POST, "/mcp").header(ACCEPT, "application/json, text/event-stream");
    let answer: Value = request.json(&body).send().await.unwrap().json().await.unwrap();
    assert!(answer["result"].is_object(), "{method} {params}: {answer}");
    answer["result"].clone()
}

/// Calls a tool of the Model Context Protocol. Returns its result.
pub(super) async fn call(server: &TestServer, tool: &str, arguments: &Value) -> Value {
    let result = ask(server, "tools/call", &json!({ "name": tool, "arguments": arguments })).await;
    assert_eq!(result["isError"], false, "{tool}: {result}");
    result["structuredContent"].clone()
}

/// The path with the agent's id in the forms that the vocabularies have for it.
pub(super) fn path_of(path: &str, id: &str) -> String {
    path.replace("ID", id).replace("HEX", &id.replace('-', ""))
}

/// Runs a command that connects to this server. Returns what it prints.
fn run(server: &TestServer, args: &[&str]) -> String {
    let output = server.command(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// A message that is sent by each kind of client, and is one turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_vocabulary_sends_at_any_node() {
    let database = database();
    let (home, other) = pair(&database);
    let id = home.launch_to_completion(&json!({ "deltas": 1 })).await;
    let script = json!({ "deltas": 3 }).to_string();
    let letta = json!({ "messages": [{ "role": "user", "content": script }] });
    let kelpie = json!({ "role": "user", "content": script });
    let content = json!({ "content": script });
    let ag_ui = json!({ "threadId": id, "runId": "r", "messages": [{ "role": "user", "content": script }] });
    let ways = [
        (format!("/api/agents/{id}/messages"), &content),
        (format!("/v1/agents/agent-{id}/messages"), &letta),
        (format!("/v1/agents/agent-{id}/messages/stream"), &letta),
        (format!("/v1/agents/agent-{id}/messages/async"), &letta),
        (format!("/v1/conversations/conv-{id}/messages"), &letta),
        (format!("/v1/agents/agent-{id}/messages/stream?format=kelpie"), &kelpie),
        ("/ag-ui".to_owned(), &ag_ui),
    ];
    let mut turn = 1;
    for (path, body) in ways {
        let answer = send(&other, Method::POST, &path, body).await.text().await.unwrap();
        turn += 1;
        other.wait_until(&id, |agent| agent["turn"] == turn && agent["status"] == "completed").await;
        let is_read_to_its_end =
            ["[DONE]", "stop_reason", "RUN_FINISHED"].iter().any(|end| answer.contains(end));
        assert!(
            path.ends_with("async") || path.starts_with("/api") || is_read_to_its_end,
            "{path}: {answer}"
        );
    }
    let previous = path_of(&format!("resp_HEX{turn:08x}"), &id);
    let response = json!({ "model": "fake", "input": script, "previous_response_id": previous });
    let response: Value =
        send(&other, Method::POST, "/openai/v1/responses", &response).await.json().await.unwrap();
    assert_eq!(response["status"], "completed", "{response}");
    let sent = call(&other, "send_message", &json!({ "agent_id": id, "content": script })).await;
    assert_eq!(sent["turn"], turn + 2, "{sent}");
    other.wait_until(&id, |agent| agent["turn"] == turn + 2 && agent["status"] == "completed").await;
    assert!(run(&other, &["send", &id, &script]).contains("0 1 2"));
    other.wait_until(&id, |agent| agent["turn"] == turn + 3 && agent["status"] == "completed").await;
    let events = home.events(&id).await;
    assert_eq!(text_of(&events), numbers(1) + &numbers(3).repeat(10));
    assert_eq!(other.events(&id).await, events);
    assert_eq!(home.get(&format!("/api/agents/{id}")).await["node"], "home");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_goes_on_at_any_node() {
    let database = database();
    let (home, other) = pair(&database);
    let message = |number: u32| {
        let text = json!({ "deltas": number }).to_string();
        let parts = json!([{ "type": "text", "text": text }]);
        json!({ "id": format!("m{number}"), "role": "user", "parts": parts })
    };
    let mut said = Vec::new();
    for (server, number) in [(&home, 1), (&other, 2), (&home, 3), (&other, 2)] {
        let body = json!({ "id": "two-nodes", "messages": [message(number)] });
        said.push(send(server, Method::POST, "/api/chat", &body).await.text().await.unwrap());
    }
    assert!(said.iter().all(|said| said.trim_end().ends_with("[DONE]")), "{said:?}");
    let mut socket = connect_to(&Place::of(&other), "/api/chat").await.unwrap();
    let send = json!({ "type": "send", "requestId": "r", "id": "two-nodes", "messages": [message(5)] });
    say(&mut socket, &send).await;
    while !next_text(&mut socket).await.contains("\"type\":\"end\"") {}
    let agents = other.get("/api/agents").await;
    let [agent] = &agents.as_array().unwrap()[..] else { panic!("one chat is one agent: {agents}") };
    assert_eq!((&agent["node"], agent["turn"].as_u64()), (&json!("home"), Some(5)), "{agent}");
    let expected: String = [1, 2, 3, 2, 5].into_iter().map(numbers).collect();
    assert_eq!(text_of(&home.events(agent["agentId"].as_str().unwrap()).await), expected);
}

/// The header names the conversation, so each node finds its agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chat_completions_go_on_at_any_node() {
    let database = database();
    let (home, other) = pair(&database);
    let mut messages = Vec::new();
    for (server, number) in [(&home, 1), (&other, 2), (&home, 3), (&other, 4)] {
        messages.push(json!({ "role": "user", "content": json!({ "deltas": number }).to_string() }));
        let body = json!({ "model": "fake", "messages": messages });
        let request = server.request(Method::POST, "/openai/v1/chat/completions").json(&body);
        let answer: Value =
            request.header("x-conversation-id", "two-nodes").send().await.unwrap().json().await.unwrap();
        let said = &answer["choices"][0]["message"]["content"];
        assert_eq!(*said, numbers(number), "{answer}");
        messages.push(json!({ "role": "assistant", "content": said }));
    }
    let agents = other.get("/api/agents").await;
    let [agent] = &agents.as_array().unwrap()[..] else { panic!("one conversation is one agent: {agents}") };
    assert_eq!((&agent["node"], agent["turn"].as_u64()), (&json!("home"), Some(4)), "{agent}");
}

/// An agent that never ends by itself, and has said everything.
async fn hanging(home: &TestServer, other: &TestServer) -> String {
    let id = home.launch(&json!({ "mode": "hang", "deltas": 3 })).await;
    other.wait_until(&id, |agent| 3 < agent["head"].as_u64().unwrap()).await;
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_vocabulary_cancels_at_any_node() {
    let database = database();
    let (home, other) = pair(&database);
    for path in [
        "/api/agents/ID/cancel",
        "/api/chat/run-ID-1/stop",
        "/v1/runs/run-ID-1/cancel",
        "/v1/agents/agent-ID/messages/cancel",
        "/v1/conversations/conv-ID/cancel",
        "/ag-ui/threads/ID/cancel",
        "/openai/v1/responses/resp_HEX00000001/cancel",
        "MCP",
        "CLI",
    ] {
        let id = hanging(&home, &other).await;
        match path {
            "CLI" => drop(run(&other, &["cancel", &id])),
            "MCP" => drop(call(&other, "cancel_agent", &json!({ "agent_id": id })).await),
            _ => drop(send(&other, Method::POST, &path_of(path, &id), &json!({})).await),
        }
        home.wait_for_status(&id, "cancelled").await;
        no_process_is_left(&id).await;
        assert_eq!(other.events(&id).await, home.events(&id).await, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_cancels_its_turn_at_any_node_if_it_asked_for_that() {
    let database = database();
    let (home, other) = pair(&database);
    let id = home.launch_to_completion(&json!({ "deltas": 1 })).await;
    let script = json!({ "mode": "hang", "deltas": 3 }).to_string();
    let path = format!("/v1/agents/agent-{id}/messages/stream?format=kelpie&cancelOnDisconnect=true");
    let mut answer = send(&other, Method::POST, &path, &json!({ "role": "user", "content": script })).await;
    let mut seen = String::new();
    while !seen.contains("2 ") {
        seen.push_str(std::str::from_utf8(&answer.chunk().await.unwrap().expect("more")).unwrap());
    }
    drop(answer);
    home.wait_until(&id, |agent| agent["turn"] == 2 && agent["status"] == "cancelled").await;
    no_process_is_left(&id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_vocabulary_deletes_at_any_node() {
    let database = database();
    let (home, other) = pair(&database);
    for path in [
        "/api/agents/ID",
        "/v1/agents/agent-ID",
        "/v1/conversations/conv-ID",
        "/openai/v1/responses/resp_HEX00000001",
        "/openai/v1/chat/completions/chatcmpl-HEX00000001",
        "CLI",
    ] {
        let id = hanging(&home, &other).await;
        let agent = home.get(&format!("/api/agents/{id}")).await;
        match path {
            "CLI" => drop(run(&other, &["rm", &id, "--purge", "--force"])),
            _ => drop(send(&other, Method::DELETE, &path_of(path, &id), &Value::Null).await),
        }
        super::nodes::until_its_processes_end(&id).await;
        for server in [&home, &other] {
            let listed = server.get("/api/agents").await;
            assert!(!listed.to_string().contains(&id), "{path}: {listed}");
        }
        if path == "CLI" {
            assert!(!PathBuf::from(agent["cwd"].as_str().unwrap()).exists(), "it is purged");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_vocabulary_answers_a_permission_request_at_any_node() {
    let database = database();
    let (home, other) = pair(&database);
    for way in ["REST", "WebSocket", "Letta", "AG-UI", "MCP", "CLI"] {
        let id = home.launch_as("asking", "Clean up").await;
        other.wait_until(&id, |agent| agent["openQuestions"] == 1).await;
        match way {
            "REST" => {
                let path = format!("/api/agents/{id}/permissions/1-1");
                send(&other, Method::POST, &path, &json!({ "optionId": "allow" })).await;
            }
            "WebSocket" => {
                let mut socket = connect_to(&Place::of(&other), "/ws").await.unwrap();
                let answer = json!({ "agentId": id, "requestId": "1-1", "optionId": "allow" });
                say(&mut socket, &json!({ "type": "permission", "payload": answer })).await;
                while !next_text(&mut socket).await.contains("\"type\":\"permission\"") {}
            }
            "Letta" => {
                let approval = json!({ "type": "approval", "tool_call_id": "t", "approve": true });
                let body = json!({ "messages": [{ "type": "approval", "approvals": [approval] }] });
                send(&other, Method::POST, &format!("/v1/agents/agent-{id}/messages"), &body).await;
            }
            "AG-UI" => {
                let answer = json!({ "interruptId": "1:1-1", "status": "resolved", "payload": true });
                let body = json!({ "threadId": id, "runId": "r", "messages": [], "resume": [answer] });
                let run = send(&other, Method::POST, "/ag-ui/asking", &body).await.text().await.unwrap();
                assert!(run.contains("It was allowed.") && run.contains("RUN_FINISHED"), "{run}");
            }
            "MCP" => {
                let answer = json!({ "agent_id": id, "request_id": "1-1", "option_id": "allow" });
                call(&other, "answer_permission", &answer).await;
            }
            _ => drop(run(&other, &["answer", &id, "1-1", "allow"])),
        }
        home.wait_for_status(&id, "completed").await;
        let events = home.events(&id).await;
        assert_eq!(text_of(&events), "It was allowed.", "{way}");
        assert_eq!(other.events(&id).await, events, "{way}");
    }
}

/// The node that is asked has no free slot, so the agent runs on the other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_mcp_launches_on_another_node_is_read_at_both() {
    let database = database();
    let node = |name| node_with(format!("{}[limits]\nrunning_agents = 1\n", config(&database)), name);
    let (asked, other) = (node("asked"), node("other"));
    let warm = until_it_knows(&asked, "other").await;
    asked.wait_for_status(&warm, "completed").await;
    let full = hanging(&asked, &other).await;
    let script = json!({ "deltas": 3 }).to_string();
    let launch = json!({ "agent_type": "fake", "prompt": script, "idempotency_key": "k" });
    let launched = call(&asked, "launch_agent", &launch).await;
    let id = launched["agent_id"].as_str().unwrap();
    let waited = call(&asked, "wait_for_agent", &json!({ "agent_id": id })).await;
    assert_eq!((&waited["reason"], &waited["agent"]["status"]), (&json!("ended"), &json!("completed")));
    assert_eq!(asked.get(&format!("/api/agents/{id}")).await["node"], "other");
    let again = call(&other, "launch_agent", &launch).await;
    assert_eq!((&again["agent_id"], &again["launched_before"]), (&json!(id), &json!(true)));

    call(&other, "cancel_agent", &json!({ "agent_id": full })).await;
    let uri = format!("tokenrail://agents/{id}/transcript");
    let template = json!({ "type": "ref/resource", "uri": "tokenrail://agents/{agent_id}/transcript" });
    let typed = json!({ "ref": template, "argument": { "name": "agent_id", "value": id } });
    let mut seen = Vec::new();
    for server in [&asked, &other] {
        server.wait_for_status(&full, "cancelled").await;
        let mut answers = vec![call(server, "list_agents", &json!({})).await];
        for since in 0..=waited["next_since"].as_u64().unwrap() {
            answers.push(call(server, "read_agent", &json!({ "agent_id": id, "since": since })).await);
        }
        for entry in waited["entries"].as_array().unwrap().iter().filter(|entry| entry["text"].is_string()) {
            let part = json!({ "agent_id": id, "seq": entry["seq"], "offset": 1, "max_bytes": 4 });
            answers.push(call(server, "read_entry", &part).await);
        }
        for (method, params) in [
            ("resources/list", json!({})),
            ("resources/read", json!({ "uri": uri })),
            ("prompts/get", json!({ "name": "catch_up", "arguments": { "agent_id": id } })),
            ("completion/complete", typed.clone()),
        ] {
            answers.push(ask(server, method, &params).await);
        }
        seen.push(answers);
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0].pop().unwrap()["completion"]["values"], json!([id]));
    let transcript = ask(&asked, "resources/read", &json!({ "uri": uri })).await;
    assert!(transcript["contents"][0]["text"].as_str().unwrap().contains("Agent: 0 1 2"), "{transcript}");
}

/// A node that is not the home of an agent tells a subscriber that its transcript grows, and that it is deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_of_mcp_hears_at_any_node_what_happens_at_the_home() {
    let database = database();
    let (home, other) = pair(&database);
    let gate = home.folder.path().join("gate");
    let id = home.launch(&json!({ "deltas": 6, "gate": gate, "gate_after": 3 })).await;
    other.wait_until(&id, |agent| 3 < agent["head"].as_u64().unwrap()).await;
    let uri = format!("tokenrail://agents/{id}/transcript");
    let about = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "notifications": { "resourceSubscriptions": [uri] }, "_meta": about });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params });
    let mut answers = Vec::new();
    for server in [&home, &other] {
        let request =
            server.request(Method::POST, "/mcp").header(ACCEPT, "application/json, text/event-stream");
        let request =
            request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "subscriptions/listen");
        answers.push(request.json(&body).send().await.unwrap());
    }
    for answer in &mut answers {
        hear(answer, "notifications/subscriptions/acknowledged").await;
    }
    std::fs::write(&gate, "").unwrap();
    for answer in &mut answers {
        hear(answer, "notifications/resources/updated").await;
    }
    home.wait_for_status(&id, "completed").await;
    send(&home, Method::DELETE, &format!("/api/agents/{id}"), &Value::Null).await;
    for mut answer in answers {
        hear(&mut answer, "\"resultType\":\"complete\"").await;
        assert_eq!(timeout(PATIENCE, answer.chunk()).await.expect("in time").unwrap(), None, "it is over");
    }
}

/// Reads a stream up to the chunk that has this.
async fn hear(answer: &mut Response, word: &str) {
    loop {
        let chunk = timeout(PATIENCE, answer.chunk()).await.expect("in time").unwrap();
        let chunk = chunk.unwrap_or_else(|| panic!("it ends before {word}"));
        if String::from_utf8_lossy(&chunk).contains(word) {
            return;
        }
    }
}
