//! Answers that are more than one option: a note with a rejection, several answers, and a text of the user's own. The
//! agent is a script that speaks the two-way protocol of Claude Code.

use std::process::Stdio;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{TestServer, text_of, write_script};
use crate::terminal::{self, OnTerminal};

/// Sends one permission request, and prints the text that it receives: the message of a denial, or the answer to the
/// question.
const AGENT: &str = r#"#!/bin/sh
read -r prompt
echo '{"type":"system","subtype":"init","session_id":"s-1"}'
printf '%s\n' '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"TOOL","input":INPUT,"tool_use_id":"t"}}'
read -r answer
said=$(printf '%s' "$answer" | sed -n 's/.*"\(message\|Which colours?\)":"\([^"]*\)".*/\2/p')
printf '%s\n' '{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"It was told: '"$said"'"}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":""}'
"#;

/// A server with an agent that wants to use this tool.
fn server_asking(tool: &str, input: &Value) -> TestServer {
    let script = tempfile::tempdir().unwrap().keep().join("agent");
    write_script(&script, &AGENT.replace("TOOL", tool).replace("INPUT", &input.to_string()));
    let program = script.display();
    TestServer::start_with(&format!(
        "[agents.asking]\nformat = \"claude-two-way\"\nrest_s = 0\nprogram = \"{program}\"\n"
    ))
}

/// An agent that asks for a permission which may be rejected with a note.
pub(crate) fn server_with_note() -> TestServer {
    server_asking("Write", &json!({ "file_path": "a.txt", "content": "x" }))
}

/// An agent that lets the user choose colours.
pub(crate) fn server_with_colours() -> TestServer {
    let option = |label: &str| json!({ "label": label, "description": "a colour" });
    let question = json!({
        "question": "Which colours?",
        "header": "Colours",
        "multiSelect": true,
        "options": [option("Red 🟥"), option("Blue")],
    });
    server_asking("AskUserQuestion", &json!({ "questions": [question] }))
}

async fn event(server: &TestServer, id: &str, kind: &str) -> Value {
    let events = server.events(id).await;
    let event = events.iter().find(|event| event["metadata"]["eventType"] == kind);
    event.unwrap_or_else(|| panic!("no {kind}: {events:?}"))["content"].clone()
}

async fn said(server: &TestServer, id: &str) -> String {
    server.wait_for_status(id, "completed").await;
    text_of(&server.events(id).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_note_of_a_rejection_reaches_the_agent_and_the_journal() {
    let server = server_with_note();
    let id = crate::questions::asking(&server).await;
    let accepts = json!({ "note": true });
    assert_eq!(event(&server, &id, "permission_request").await["accepts"], accepts);
    assert_eq!(server.get("/api/questions").await[0]["accepts"], accepts);
    let path = format!("/api/agents/{id}/permissions/1-1");
    let (status, refused) = server.post(&path, &json!({ "optionId": "allow", "note": "why" })).await;
    assert_eq!((status.as_u16(), &refused["errors"][0]["pointer"]), (422, &json!("/note")), "{refused}");
    let answer = json!({ "optionId": "reject", "note": "use the other file 🙂" });
    let (status, told) = server.post(&path, &answer).await;
    assert_eq!(status, 200, "{told}");
    assert_eq!((&told["state"], &told["note"]), (&json!("selected"), &answer["note"]));
    let expected = "It was told: The user rejected this action and says: use the other file 🙂";
    assert_eq!(said(&server, &id).await, expected);
    assert_eq!(
        event(&server, &id, "permission_resolved").await,
        json!({ "requestId": "1-1", "optionId": "reject", "by": "user", "note": answer["note"] })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_note_that_no_pipe_takes_in_one_piece_arrives_whole() {
    let server = server_with_note();
    let id = crate::questions::asking(&server).await;
    let path = format!("/api/agents/{id}/permissions/1-1");
    // A control character needs six bytes in JSON.
    let longest = "\u{1}".repeat(10 << 10);
    let (status, told) =
        server.post(&path, &json!({ "optionId": "reject", "note": longest.clone() + "x" })).await;
    assert_eq!((status.as_u16(), &told["errors"][0]["pointer"]), (422, &json!("/note")), "{told}");
    let (status, told) = server.post(&path, &json!({ "optionId": "reject", "note": longest })).await;
    assert_eq!(status, 200, "{told}");
    assert_eq!(event(&server, &id, "permission_resolved").await["note"], longest);
    assert!(said(&server, &id).await.ends_with(&longest), "the agent has all of it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_answers_and_a_text_reach_the_agent_and_the_journal() {
    let server = server_with_colours();
    for (answer, words, resolved) in [
        (
            json!({ "optionIds": ["answer_1", "answer_2"] }),
            "Red 🟥, Blue",
            json!({ "optionId": "answer_1", "optionIds": ["answer_1", "answer_2"] }),
        ),
        (
            json!({ "optionId": "answer_2", "text": "and a little green" }),
            "Blue, and a little green",
            json!({ "optionId": "answer_2", "text": "and a little green" }),
        ),
        (json!({ "text": "none" }), "none", json!({ "text": "none" })),
        (
            json!({ "optionId": "reject", "note": "ask later" }),
            "The user declined to answer and says: ask later",
            json!({ "optionId": "reject", "note": "ask later" }),
        ),
    ] {
        let id = crate::questions::asking(&server).await;
        let request = event(&server, &id, "permission_request").await;
        assert_eq!(request["accepts"], json!({ "note": true, "text": true, "several": true }));
        let (status, told) = server.post(&format!("/api/agents/{id}/permissions/1-1"), &answer).await;
        assert_eq!(status, 200, "{answer}: {told}");
        assert_eq!(said(&server, &id).await, format!("It was told: {words}"));
        let mut expected = json!({ "requestId": "1-1", "by": "user" });
        expected.as_object_mut().unwrap().extend(resolved.as_object().unwrap().clone());
        assert_eq!(event(&server, &id, "permission_resolved").await, expected);
    }
}

/// The result of a wait of an MCP client that can show forms, with what it sends besides the arguments.
async fn wait_with_forms(server: &TestServer, id: &str, mut params: Value) -> Value {
    params["name"] = json!("wait_for_agent");
    params["arguments"] = json!({ "agent_id": id });
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    let request =
        server.request(Method::POST, "/mcp").header("accept", "application/json, text/event-stream");
    let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let answer = request.header("mcp-name", "wait_for_agent").json(&call).send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_answers_and_a_text_of_a_form_reach_the_agent() {
    let server = server_with_colours();
    for (content, words) in [
        (json!({ "option_ids": ["answer_1", "answer_2"] }), "Red 🟥, Blue"),
        (json!({ "option_ids": ["answer_2"], "text": "and a little green" }), "Blue, and a little green"),
        (json!({ "option_ids": [], "text": "none" }), "none"),
        (
            json!({ "option_ids": ["reject"], "note": "ask later" }),
            "The user declined to answer and says: ask later",
        ),
    ] {
        let id = crate::questions::asking(&server).await;
        let asked = wait_with_forms(&server, &id, json!({})).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let form = &asked["inputRequests"]["1-1"]["params"]["requestedSchema"];
        let choices = form["properties"]["option_ids"]["items"]["anyOf"].as_array().unwrap();
        let ids: Vec<_> = choices.iter().map(|choice| &choice["const"]).collect();
        assert_eq!(ids, ["answer_1", "answer_2", "reject"], "{form}");
        assert_eq!(form["properties"]["option_ids"]["type"], "array");
        // A text alone is an answer too.
        assert_eq!(form["required"], Value::Null, "{form}");
        let responses = json!({ "1-1": { "action": "accept", "content": content } });
        let reply = json!({ "requestState": asked["requestState"], "inputResponses": responses });
        let done = wait_with_forms(&server, &id, reply).await;
        assert_eq!(done["structuredContent"]["reason"], "ended", "{content}: {done}");
        assert_eq!(said(&server, &id).await, format!("It was told: {words}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_answer_sends_notes_texts_and_several_options() {
    let (note, colours) = (server_with_note(), server_with_colours());
    for (server, args, shown, words) in [
        (
            &note,
            &["reject", "--note", "not there"][..],
            "answered 1-1: reject (not there)",
            "The user rejected this action and says: not there",
        ),
        (&colours, &["answer_2", "answer_1"], "answered 1-1: answer_2, answer_1", "Blue, Red 🟥"),
        (&colours, &["answer_2", "--text", "mine"], "answered 1-1: answer_2, mine", "Blue, mine"),
        (&colours, &["--text", "mine"], "answered 1-1: mine", "mine"),
    ] {
        let id = crate::questions::asking(server).await;
        let args: Vec<&str> = ["answer", &id, "1-1"].into_iter().chain(args.iter().copied()).collect();
        let output = server.command(&args).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), shown, "{output:?}");
        assert_eq!(said(server, &id).await, format!("It was told: {words}"));
    }
    let id = crate::questions::asking(&note).await;
    let refused = note.command(&["answer", &id, "1-1", "--text", "mine"]).output().unwrap();
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && error.contains("accepts no text; send one of its options"),
        "{error}"
    );
}

/// Follows an agent on a terminal.
fn run(server: &TestServer) -> OnTerminal {
    let mut command = server.command(&["run", "--type", "asking", "Go"]);
    command.env("TERM", "xterm").stderr(Stdio::null());
    terminal::start_for_typing(command, "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notes_texts_and_several_answers_can_be_typed() {
    let (note, colours) = (server_with_note(), server_with_colours());
    for (server, hint, typed, shown, words) in [
        (
            &note,
            "to reject with a reason: 2 and the reason, such as: 2 use the other file",
            "2 use the other file",
            "answered: reject (use the other file) (by user)",
            "The user rejected this action and says: use the other file",
        ),
        (
            &colours,
            "several answers: their numbers, such as 1,2",
            "2,1",
            "answered: answer_2, answer_1",
            "Blue, Red 🟥",
        ),
        (&colours, "another answer: your own words", "green!", "answered: green!", "green!"),
    ] {
        let mut run = run(server);
        let asked = run.read_until("): ");
        assert!(asked.contains(hint), "{asked}");
        run.type_line(typed);
        let (code, told) = run.finish();
        assert_eq!(code, 0, "{told}");
        assert!(told.contains(shown) && told.contains(&format!("It was told: {words}")), "{told}");
    }
}
