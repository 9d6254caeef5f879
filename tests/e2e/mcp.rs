//! `tokenrail mcp`: the Model Context Protocol over the pipes of a program.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{TestServer, fake_config};

/// A client that has started `tokenrail mcp`.
struct Bridge {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Bridge {
    fn start(server: &TestServer) -> Self {
        Self::start_by(server.command(&["mcp"]))
    }

    fn start_by(mut command: Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { process, input, output: BufReader::new(output) }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
    }

    fn request(id: u64, method: &str, params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.send(&Self::request(id, method, params));
        let response = self.receive();
        assert_eq!(response["id"], id, "{response}");
        response
    }

    /// The error of a tool.
    fn refused(&mut self, id: u64, tool: &str, arguments: &Value) -> String {
        let response = self.ask(id, "tools/call", &json!({"name": tool, "arguments": arguments}));
        assert_eq!(response["result"]["isError"], true, "{response}");
        response["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    fn call(&mut self, id: u64, tool: &str, arguments: &Value) -> Value {
        let response = self.ask(id, "tools/call", &json!({"name": tool, "arguments": arguments}));
        assert_eq!(response["result"]["isError"], false, "{response}");
        response["result"]["structuredContent"].clone()
    }

    /// Closes the pipe, as a client that ends does. Returns the exit code, and what is still printed.
    fn end(self) -> (Option<i32>, String) {
        let Self { mut process, input, mut output } = self;
        drop(input);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut output, &mut rest).unwrap();
        (process.wait().unwrap().code(), rest)
    }
}

async fn metrics(server: &TestServer) -> String {
    server.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap()
}

fn said(result: &Value) -> String {
    let texts = result["entries"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "text");
    texts.map(|entry| entry["text"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_launches_an_agent_over_its_pipes_and_is_told_of_its_progress() {
    let server = TestServer::start();
    let mut bridge = Bridge::start(&server);
    let agreed = bridge.ask(1, "initialize", &json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    assert_eq!(agreed["result"]["serverInfo"]["name"], "tokenrail");
    bridge.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let launch = json!({"agent_type": "fake", "prompt": r#"{"deltas":5}"#});
    let agent = bridge.call(2, "launch_agent", &launch)["agent_id"].clone();
    let wait =
        json!({"name": "wait_for_agent", "arguments": {"agent_id": agent}, "_meta": {"progressToken": 9}});
    bridge.send(&Bridge::request(3, "tools/call", &wait));
    let progress = bridge.receive();
    assert_eq!(
        (&progress["method"], &progress["params"]["progressToken"]),
        (&json!("notifications/progress"), &json!(9))
    );
    let done = std::iter::repeat_with(|| bridge.receive()).find(|message| message["id"] == 3).unwrap();
    assert_eq!(said(&done["result"]["structuredContent"]), "0 1 2 3 4 ");

    let wrong = bridge.ask(4, "tools/call", &json!({"name": "rm"}));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    bridge.send(&json!({"id": 5}));
    let refused = bridge.receive();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(5), &json!(-32600)), "a response is due");
    bridge.send(&json!([{"jsonrpc": "2.0", "id": 6, "method": "ping"}]));
    let refused = bridge.receive();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32600)), "no batches");
    assert_eq!(bridge.end(), (Some(0), String::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_is_found_again_and_the_rest_is_read_by_number() {
    let mut server = TestServer::start_with(&fake_config());
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 10, "gate": gate, "gate_after": 5 })).await;
    server.wait_until(&id, |agent| 5 < agent["head"].as_u64().unwrap()).await;
    let mut bridge = Bridge::start(&server);
    let mut looks = std::iter::repeat_with(|| {
        bridge.call(1, "wait_for_agent", &json!({"agent_id": id, "timeout_ms": 50}))
    });
    let first = looks.find(|look| said(look) == "0 1 2 3 4 ").unwrap();
    assert_eq!(first["reason"], "timeout");
    let rest = json!({"agent_id": id, "since": first["next_since"]});
    let wait = json!({"name": "wait_for_agent", "arguments": rest});
    bridge.send(&Bridge::request(2, "tools/call", &wait));
    while !metrics(&server).await.contains("tokenrail_open_streams 1\n") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.kill_9();
    let broken = bridge.receive();
    assert_eq!((&broken["id"], &broken["error"]["code"]), (&json!(2), &json!(-32000)), "{broken}");
    bridge.send(&Bridge::request(4, "tools/call", &wait));
    server.start_again();
    std::fs::write(&gate, "").unwrap();
    let done = bridge.receive();
    assert_eq!(said(&done["result"]["structuredContent"]), "5 6 7 8 9 ", "{done}");
    assert_eq!(bridge.end(), (Some(0), String::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_request_gets_no_response() {
    let server = TestServer::start();
    let id = server.launch(&json!({ "mode": "hang" })).await;
    // A reason that is cut within a character is no reason to send the response.
    for reason in ["too slow", r"cut \ud83e"] {
        let mut bridge = Bridge::start(&server);
        let wait = json!({"name": "wait_for_agent", "arguments": {"agent_id": id, "timeout_ms": 3000}});
        bridge.send(&Bridge::request(1, "tools/call", &wait));
        bridge.ask(2, "ping", &json!({}));
        let params = format!(r#"{{"requestId":1,"reason":"{reason}"}}"#);
        let notice = format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#);
        writeln!(bridge.input, "{notice}").unwrap();
        assert_eq!(bridge.end(), (Some(0), String::new()), "and nobody waits for it");
    }
    let output = {
        let mut stopped = server;
        stopped.stop();
        stopped.command(&["mcp"]).output().unwrap()
    };
    assert_eq!(output.status.code(), Some(3), "there is no server");
}

/// `tokenrail mcp`, started by an agent whose MCP client passes no variables on.
fn bridge_of_agent(server: &TestServer, id: &str) -> Bridge {
    let direct = server.command(&["mcp"]);
    let mut command = Command::new("/bin/sh");
    // The last command keeps the shell, so that it is the parent of the bridge.
    command.args(["-c", "env -u TOKENRAIL_RUN \"$0\" \"$@\"; exit $?"]).arg(direct.get_program());
    command.args(direct.get_args()).env("TOKENRAIL_RUN", format!("{id}-1"));
    Bridge::start_by(command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_launches_agents_passes_its_limits_on() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("mine/part")).unwrap();
    let limits = "[limits]\nchild_agents = 1\nchild_depth = 1\n";
    let server = TestServer::start_with(&format!("{}cwd_roots = [{root:?}]\n{limits}", fake_config()));
    let hang = json!({"mode": "hang"}).to_string();
    let launch = json!({"type": "fake", "prompt": hang, "cwd": root.join("mine")});
    let parent = server.post("/api/agents", &launch).await.1["agentId"].as_str().unwrap().to_owned();

    let mut bridge = bridge_of_agent(&server, &parent);
    let asked = |cwd: &str| json!({"agent_type": "fake", "prompt": hang, "cwd": root.join(cwd)});
    let outside = bridge.refused(1, "launch_agent", &asked(""));
    assert!(outside.ends_with("(cwd_not_allowed)"), "{outside}");
    let child = bridge.call(2, "launch_agent", &asked("mine/part"))["agent_id"].as_str().unwrap().to_owned();
    let listed = bridge.call(3, "list_agents", &json!({}));
    assert_eq!(
        (&listed["agents"][0]["agent_id"], &listed["agents"][0]["launched_by"]),
        (&json!(child), &json!(parent))
    );
    let second = bridge.refused(4, "launch_agent", &asked("mine"));
    assert!(second.ends_with("(capacity_exhausted)"), "{second}");
    let mut of_child = bridge_of_agent(&server, &child);
    let deeper = of_child.refused(1, "launch_agent", &asked("mine/part"));
    assert!(deeper.contains("limits.child_depth"), "{deeper}");

    bridge.call(5, "cancel_agent", &json!({"agent_id": child}));
    server.wait_for_status(&child, "cancelled").await;
    bridge.call(6, "launch_agent", &asked("mine"));
    assert_eq!((of_child.end().0, bridge.end().0), (Some(0), Some(0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_of_the_newest_version_needs_no_handshake_and_sends_no_headers() {
    let server = TestServer::start();
    let mut bridge = Bridge::start(&server);
    let about = |version: &str| {
        let (version_key, capabilities) =
            ("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities");
        json!({version_key: version, capabilities: {}})
    };
    let meta = about("2026-07-28");
    let discovered = bridge.ask(1, "server/discover", &json!({"_meta": meta}));
    assert_eq!(discovered["result"]["supportedVersions"][0], "2026-07-28", "{discovered}");
    let listed = bridge.ask(2, "tools/call", &json!({"name": "list_agents", "_meta": meta}));
    assert_eq!(listed["result"]["resultType"], "complete", "{listed}");
    for (id, method, params, code) in [
        (3, "ping", json!({"_meta": meta}), -32601),
        (4, "tools/call", json!({"name": "Gr\u{fc}\u{df}e\n", "_meta": meta}), -32602),
        (5, "resources/read", json!({"uri": "x:\u{e9}", "_meta": meta}), -32602),
        (6, "tools/list", json!({"_meta": about("2099-01-01")}), -32022),
    ] {
        let refused = bridge.ask(id, method, &params);
        assert_eq!(refused["error"]["code"], code, "{method}: {refused}");
    }
    let earlier = bridge.ask(7, "tools/list", &json!({}));
    assert_eq!(earlier["result"]["resultType"], Value::Null, "an earlier version, over the same pipes");
    assert_eq!(bridge.end(), (Some(0), String::new()));
}

/// How many subscriptions a program can have over its pipes.
const SUBSCRIPTIONS: u64 = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_hold_up_no_request_and_end_with_the_pipe() {
    let server = TestServer::start();
    // Its transcript does not grow any more, so nothing comes in between.
    let id = server.launch_to_completion(&json!({ "deltas": 1 })).await;
    let mut bridge = Bridge::start(&server);
    let subscribe = |number: u64| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let wanted = json!({"resourceSubscriptions": [format!("tokenrail://agents/{id}/transcript")]});
        Bridge::request(number, "subscriptions/listen", &json!({"notifications": wanted, "_meta": meta}))
    };
    for number in 0..SUBSCRIPTIONS {
        bridge.send(&subscribe(number));
        let begun = bridge.receive();
        assert_eq!(begun["method"], "notifications/subscriptions/acknowledged", "{begun}");
    }
    bridge.send(&subscribe(SUBSCRIPTIONS));
    let refused = bridge.receive();
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(SUBSCRIPTIONS), &json!(-32000)),
        "{refused}"
    );
    bridge.ask(100, "ping", &json!({}));
    bridge.send(&json!({"method": "notifications/cancelled", "params": {"requestId": 0}}));
    bridge.ask(101, "ping", &json!({}));
    bridge.send(&subscribe(200));
    assert_eq!(bridge.receive()["method"], "notifications/subscriptions/acknowledged", "there is room again");
    assert_eq!(bridge.end(), (Some(0), String::new()), "no subscription keeps the program alive");
}
