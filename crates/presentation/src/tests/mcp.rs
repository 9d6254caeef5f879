//! What clients of the Model Context Protocol see.

use actix_web::test::TestRequest;
use serde_json::{Value, json};

use super::harness::{Answer, HOST, Harness, TOKEN};

const MCP: &str = "/mcp";

async fn send(harness: &Harness, message: &Value) -> Answer {
    harness.post(MCP, &message.to_string()).await
}

pub(super) async fn ask(harness: &Harness, method: &str, params: &Value) -> Value {
    let answer =
        send(harness, &json!({"jsonrpc": "2.0", "id": "one", "method": method, "params": params})).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("content-type")),
        (200, "application/json"),
        "{answer:?}"
    );
    let response = answer.json();
    assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!("one")));
    response
}

/// The structured result of a tool.
pub(super) async fn tool(harness: &Harness, name: &str, arguments: &Value) -> Value {
    let response = ask(harness, "tools/call", &json!({"name": name, "arguments": arguments})).await;
    let result = &response["result"];
    assert_eq!(result["isError"], false, "{response}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"], "the same as text");
    result["structuredContent"].clone()
}

/// The error of a tool, as its model reads it.
pub(super) async fn tool_error(harness: &Harness, name: &str, arguments: &Value) -> String {
    let response = ask(harness, "tools/call", &json!({"name": name, "arguments": arguments})).await;
    let result = &response["result"];
    assert_eq!(
        (&result["isError"], &result["structuredContent"]),
        (&json!(true), &Value::Null),
        "{response}"
    );
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

pub(super) async fn launch(harness: &Harness, prompt: &str) -> String {
    let launched = tool(harness, "launch_agent", &json!({"agent_type": "script", "prompt": prompt})).await;
    assert_eq!((&launched["last_seq"], &launched["launched_before"]), (&json!(0), &json!(false)));
    launched["agent_id"].as_str().unwrap().to_owned()
}

pub(super) async fn wait(harness: &Harness, id: &str, since: u64) -> Value {
    tool(harness, "wait_for_agent", &json!({"agent_id": id, "since": since})).await
}

fn said(result: &Value) -> String {
    let texts = result["entries"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "text");
    texts.map(|entry| entry["text"].as_str().unwrap()).collect()
}

#[actix_web::test]
async fn a_client_agrees_on_a_version_and_sees_the_tools() {
    let harness = Harness::new();
    for (wanted, agreed) in
        [("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("1999-01-01", "2025-11-25")]
    {
        let response =
            ask(&harness, "initialize", &json!({"protocolVersion": wanted, "capabilities": {}})).await;
        let result = &response["result"];
        assert_eq!(result["protocolVersion"], agreed);
        assert_eq!(
            result["capabilities"],
            json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}})
        );
        assert_eq!(result["serverInfo"]["name"], "tokenrail");
    }
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = send(&harness, &notice).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (202, ""));
    assert_eq!(ask(&harness, "ping", &json!({})).await["result"], json!({}));

    let listed = ask(&harness, "tools/list", &json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert!(!tool["description"].as_str().unwrap().is_empty(), "{name}");
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{name}");
        }
        let response =
            ask(&harness, "tools/call", &json!({"name": name, "arguments": {"agent_id": 1}})).await;
        assert!(response["result"]["content"].is_array(), "every tool of the list is there: {response}");
    }
    assert_eq!(tools.len(), 9);
    let types = tool(&harness, "list_agent_types", &json!({})).await;
    assert_eq!(
        types["agent_types"][0],
        json!({
            "name": "script", "default": false, "available": true, "asks_permission": false
        })
    );
}

#[actix_web::test]
async fn an_agent_is_launched_answers_and_goes_on() {
    let harness = Harness::new();
    let id = launch(&harness, "say a b 🦀").await;
    let done = wait(&harness, &id, 0).await;
    assert_eq!(
        (&done["reason"], &done["more"], said(&done).as_str()),
        (&json!("ended"), &json!(false), "ab🦀")
    );
    assert_eq!((&done["agent"]["status"], &done["open_requests"]), (&json!("completed"), &json!([])));
    let kinds: Vec<_> =
        done["entries"].as_array().unwrap().iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["prompt", "text", "turn_end"]);

    let arguments = json!({"agent_id": id, "content": "say c", "idempotency_key": "k"});
    let sent = tool(&harness, "send_message", &arguments).await;
    assert_eq!((&sent["turn"], &sent["last_seq"]), (&json!(2), &done["next_since"]));
    let since = sent["last_seq"].as_u64().unwrap();
    assert_eq!(said(&wait(&harness, &id, since).await), "c", "only what is new");
    let again = tool(&harness, "send_message", &arguments).await;
    assert_eq!((&again["turn"], &again["last_seq"]), (&sent["turn"], &sent["last_seq"]), "not sent twice");
    assert_eq!(said(&wait(&harness, &id, since).await), "c");
}

#[actix_web::test]
async fn reading_on_after_every_number_gives_exactly_the_rest() {
    let harness = Harness::new();
    let id = launch(&harness, "say a b c d 🦀 e").await;
    let last = wait(&harness, &id, 0).await["next_since"].as_u64().unwrap();
    let mut rests = Vec::new();
    for since in 0..=last {
        let read = tool(&harness, "read_agent", &json!({"agent_id": id, "since": since})).await;
        assert_eq!((&read["next_since"], &read["more"]), (&json!(last), &json!(false)));
        assert_eq!(said(&wait(&harness, &id, since).await), said(&read), "a wait returns the same");
        rests.push(said(&read));
    }
    rests.dedup();
    assert_eq!(rests, ["abcd🦀e", "bcd🦀e", "cd🦀e", "d🦀e", "🦀e", "e", ""]);
    let ahead = tool_error(&harness, "read_agent", &json!({"agent_id": id, "since": last + 1})).await;
    assert!(ahead.ends_with("(cursor_ahead)"), "{ahead}");
}

#[actix_web::test]
async fn a_page_ends_where_the_next_one_begins() {
    let harness = Harness::new();
    let word = "x".repeat(400);
    let id = launch(&harness, &format!("say {word} {word} {word} {word} end")).await;
    wait(&harness, &id, 0).await;
    let (mut since, mut pages, mut text) = (json!(0), 0, String::new());
    loop {
        let arguments = json!({"agent_id": id, "since": since, "max_bytes": 1});
        let read = tool(&harness, "read_agent", &arguments).await;
        text.push_str(&said(&read));
        (since, pages) = (read["next_since"].clone(), pages + 1);
        if read["more"] == false {
            break;
        }
    }
    assert_eq!(text, word.repeat(4) + "end");
    assert!(2 < pages, "{pages}");
    let first = json!({"agent_id": id, "max_bytes": 1});
    let first = tool(&harness, "wait_for_agent", &first).await;
    assert_eq!(
        (&first["reason"], &first["more"]),
        (&json!("page_full"), &json!(true)),
        "it reads no further"
    );
    let ahead = json!({"agent_id": id, "since": u64::MAX});
    assert!(tool_error(&harness, "wait_for_agent", &ahead).await.ends_with("(cursor_ahead)"));
}

#[actix_web::test]
async fn an_agent_that_asks_gets_its_answer() {
    let harness = Harness::new();
    let id = launch(&harness, "ask").await;
    let asked = wait(&harness, &id, 0).await;
    assert_eq!((&asked["reason"], &asked["agent"]["status"]), (&json!("needs_answer"), &json!("running")));
    let again = json!({"agent_id": id, "since": asked["next_since"], "timeout_ms": 0});
    let again = tool(&harness, "wait_for_agent", &again).await;
    assert_eq!(again["reason"], "timeout", "somebody else may answer a request that the client has seen");
    assert_eq!(again["open_requests"], asked["open_requests"], "it is listed all the same");
    let wrong = json!({"agent_id": id, "request_id": "1-1", "option_id": "perhaps"});
    let wrong = tool_error(&harness, "answer_permission", &wrong).await;
    assert!(wrong.starts_with("option_id: ") && wrong.contains("yes, no"), "{wrong}");
    let yes = json!({"agent_id": id, "request_id": "1-1", "option_id": "yes"});
    assert_eq!(tool(&harness, "answer_permission", &yes).await["state"], "settled");
    let done = wait(&harness, &id, 0).await;
    assert_eq!((&done["reason"], &done["open_requests"]), (&json!("ended"), &json!([])));
    let late = tool_error(&harness, "answer_permission", &yes).await;
    assert!(late.ends_with("(already_resolved)"), "{late}");
}

#[actix_web::test]
async fn a_wait_ends_in_time_and_a_cancel_ends_the_agent() {
    let harness = Harness::new();
    let id = launch(&harness, "hang").await;
    let waited = tool(&harness, "wait_for_agent", &json!({"agent_id": id, "timeout_ms": 0})).await;
    assert_eq!(waited["reason"], "timeout");
    tool(&harness, "cancel_agent", &json!({"agent_id": id})).await;
    let done = wait(&harness, &id, 0).await;
    assert_eq!((&done["reason"], &done["agent"]["status"]), (&json!("ended"), &json!("cancelled")));
    let mut since = json!(0);
    for _ in 0..2 {
        let arguments = json!({"agent_id": id, "timeout_ms": 0, "since": since});
        let again = tool(&harness, "wait_for_agent", &arguments).await;
        assert_eq!((&again["reason"], &again["next_since"]), (&json!("ended"), &done["next_since"]));
        since = again["next_since"].clone();
    }
    let listed = tool(&harness, "list_agents", &json!({"status": "cancelled", "limit": 1})).await;
    assert_eq!((&listed["agents"][0]["agent_id"], &listed["next_cursor"]), (&json!(id), &Value::Null));
    assert_eq!(tool(&harness, "list_agents", &json!({"status": "running"})).await["agents"], json!([]));
}

#[actix_web::test]
async fn a_client_that_asks_for_progress_gets_a_stream() {
    let harness = Harness::new();
    let id = launch(&harness, "say a b").await;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "wait_for_agent", "arguments": {"agent_id": id}, "_meta": {"progressToken": "p"}}});
    let request = TestRequest::post().uri(MCP).insert_header(("content-type", "application/json"));
    let request = request.insert_header(("accept", "application/json, text/event-stream"));
    let answer = harness.call(request.set_payload(call.to_string())).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "text/event-stream"));
    let data = answer.text.lines().filter_map(|line| line.strip_prefix("data: "));
    let messages: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
    let (last, progress) = messages.split_last().unwrap();
    assert_eq!((&last["id"], &last["result"]["structuredContent"]["reason"]), (&json!(7), &json!("ended")));
    assert_eq!(said(&last["result"]["structuredContent"]), "ab");
    assert!(!progress.is_empty());
    for notice in progress {
        assert_eq!(notice["method"], "notifications/progress");
        assert_eq!(notice["params"]["progressToken"], "p");
    }
    // A client that accepts no stream gets JSON all the same.
    assert_eq!(send(&harness, &call).await.json()["result"]["isError"], false);
}

#[actix_web::test]
async fn a_key_launches_one_agent() {
    let harness = Harness::new();
    let launch = json!({"agent_type": "script", "prompt": "say a", "idempotency_key": "k"});
    let first = tool(&harness, "launch_agent", &launch).await;
    let again = tool(&harness, "launch_agent", &launch).await;
    assert_eq!((&first["agent_id"], &again["launched_before"]), (&again["agent_id"], &json!(true)));
    let other = json!({"agent_type": "script", "prompt": "say b", "idempotency_key": "k"});
    let other = tool_error(&harness, "launch_agent", &other).await;
    assert!(other.ends_with("(idempotency_mismatch)"), "{other}");
}

#[actix_web::test]
async fn a_model_can_mend_a_wrong_call() {
    let harness = Harness::new();
    let unknown = "01900000-0000-7000-8000-000000000000";
    for (name, arguments, expected) in [
        ("launch_agent", json!({}), "prompt: must be present"),
        ("launch_agent", json!({"prompt": " ", "model": "-x"}), "prompt: must not be blank; model: "),
        (
            "launch_agent",
            json!({"prompt": "a", "agent_type": "b"}),
            "agent_type: unknown; must be one of: script",
        ),
        ("launch_agent", json!({"prompt": "a", "agent_type": "script", "cwd": "/forbidden"}), "cwd: "),
        ("send_message", json!({"agent_id": unknown, "content": "a"}), "no such agent"),
        ("wait_for_agent", json!({"agent_id": "x"}), "no such agent"),
        ("wait_for_agent", json!({"agent_id": unknown, "since": "1"}), "since: must be a whole number"),
        ("answer_permission", json!({"agent_id": unknown, "request_id": "1-1"}), "option_id: must be one of"),
        ("list_agents", json!({"status": "asleep"}), "status: must be a status"),
    ] {
        let error = tool_error(&harness, name, &arguments).await;
        assert!(error.starts_with(expected), "{name} {arguments}: {error}");
    }
}

#[actix_web::test]
async fn transcripts_are_resources() {
    let harness = Harness::new();
    let ids = [launch(&harness, "say a b").await, launch(&harness, "say c").await];
    for id in &ids {
        wait(&harness, id, 0).await;
    }
    let listed = ask(&harness, "resources/list", &json!({})).await;
    let resources = listed["result"]["resources"].as_array().unwrap();
    let uris: Vec<_> = resources.iter().map(|resource| resource["uri"].as_str().unwrap()).collect();
    let uri = |id: &str| format!("tokenrail://agents/{id}/transcript");
    assert_eq!(uris, [uri(&ids[1]), uri(&ids[0])], "newest first");
    assert_eq!(resources[1]["title"], "say a b");
    let templates = ask(&harness, "resources/templates/list", &json!({})).await;
    assert_eq!(
        templates["result"]["resourceTemplates"][0]["uriTemplate"],
        "tokenrail://agents/{agent_id}/transcript"
    );
    let read = ask(&harness, "resources/read", &json!({"uri": uris[1]})).await;
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("Prompt: say a b\n") && text.contains("Agent: ab\n"), "{text}");
    for wrong in ["tokenrail://agents/x/transcript", "file:///etc/passwd", "test://static-text"] {
        let error = ask(&harness, "resources/read", &json!({"uri": wrong})).await;
        assert_eq!(error["error"]["code"], -32002, "{wrong}: {error}");
    }
}

#[actix_web::test]
async fn what_is_no_request_is_refused_as_json_rpc_wants_it() {
    let harness = Harness::new();
    for (body, code) in [
        ("{\"jsonrpc\": \"2.0\", \"id\": 1}", -32600),
        ("{\"jsonrpc\": \"1.0\", \"id\": 1, \"method\": \"ping\"}", -32600),
        ("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": 2}", -32600),
        ("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\", \"params\": {\"a\": \"\\ud83e\"}}", -32600),
    ] {
        let answer = harness.post(MCP, body).await;
        let error = answer.json();
        assert_eq!((answer.status.as_u16(), &error["error"]["code"]), (400, &json!(code)), "{body}: {error}");
        assert_eq!(error["id"], 1, "its client waits for a response");
    }
    for (body, code) in [
        ("{", -32700),
        ("{\"jsonrpc\": \"2.0\", \"id\": 1, \"id\": 2}", -32700),
        ("[]", -32600),
        ("[1]", -32600),
        ("[{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}]", -32600),
        ("{\"jsonrpc\": \"2.0\", \"id\": null, \"method\": \"ping\"}", -32600),
        ("{\"jsonrpc\": \"2.0\", \"id\": 1.5, \"method\": \"ping\"}", -32600),
        ("{\"jsonrpc\": \"2.0\", \"id\": \"\\ud800\", \"method\": \"ping\"}", -32600),
    ] {
        let answer = harness.post(MCP, body).await;
        let error = answer.json();
        assert_eq!((answer.status.as_u16(), &error["error"]["code"]), (400, &json!(code)), "{body}: {error}");
        assert_eq!(error["id"], Value::Null);
    }
    for (method, params, code) in [
        ("logging/setLevel", json!({"level": "info"}), -32601),
        ("initialize", json!({}), -32602),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({"name": "rm"}), -32602),
        ("resources/read", json!({}), -32602),
        ("resources/list", json!({"cursor": "x"}), -32602),
    ] {
        let response = ask(&harness, method, &params).await;
        assert_eq!(response["error"]["code"], code, "{method}: {response}");
    }
    let reply = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    assert_eq!(send(&harness, &reply).await.status, 202, "the server asked nothing");
}

#[actix_web::test]
async fn the_guard_is_in_front() {
    let harness = Harness::new();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let post = || {
        let request = TestRequest::post().uri(MCP).insert_header(("content-type", "application/json"));
        request.set_payload(ping.clone())
    };
    let token = ("authorization", format!("Bearer {TOKEN}"));
    let cases = [
        (post().insert_header(("host", HOST)), 401, "unauthenticated"),
        (
            post().insert_header(("host", "evil.example")).insert_header(token.clone()),
            421,
            "host_not_allowed",
        ),
        (
            post().insert_header(("origin", "http://evil.example")).insert_header(("host", HOST)),
            403,
            "origin_not_allowed",
        ),
        (
            TestRequest::get().uri(MCP).insert_header(("host", HOST)).insert_header(token.clone()),
            405,
            "method_not_allowed",
        ),
        (
            TestRequest::delete().uri(MCP).insert_header(("host", HOST)).insert_header(token.clone()),
            405,
            "method_not_allowed",
        ),
        (
            post()
                .insert_header(("host", HOST))
                .insert_header(token.clone())
                .insert_header(("mcp-protocol-version", "2024-11-05")),
            400,
            "validation_failed",
        ),
    ];
    for (request, status, code) in cases {
        let answer = harness.call_raw(request).await;
        let error = answer.json();
        // The version is not checked before the message is read.
        let id = if status == 400 { json!(1) } else { Value::Null };
        let told = (answer.status.as_u16(), &error["error"]["data"]["code"], &error["id"]);
        assert_eq!(told, (status, &json!(code), &id), "{error}");
    }
}
