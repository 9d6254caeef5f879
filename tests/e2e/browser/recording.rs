//! A recorded session of any length, which an agent of type `long` prints as fast as possible.

use serde_json::{Value, json};

use crate::harness::{TestServer, fake_config};

const MODEL: &str = "claude-opus-5-5";

/// A server with one agent that has sent this many messages, some of them with a tool call. Returns the agent's id too.
/// Message `n` begins with `Message n`.
pub(super) async fn server_with(messages: usize) -> (TestServer, String) {
    let mut server = TestServer::start();
    add(&mut server, &with_messages(messages));
    let id = server.launch_as("long", "Say much").await;
    server.wait_for_status(&id, "completed").await;
    (server, id)
}

/// Adds the agent type `long` with this output to a server.
pub(super) fn add(server: &mut TestServer, said: &[Value]) {
    let file = server.folder.path().join("long.jsonl");
    let lines = [opening()].into_iter().chain(said.iter().cloned()).chain([result()]).enumerate();
    let lines: Vec<String> = lines.map(|(number, line)| with_ids(line, number).to_string()).collect();
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    server.stop();
    server.config = format!(
        "{}\n[agents.long]\nrunner = \"replay\"\nspeed = 0\ntranscript = \"{}\"\n",
        fake_config(),
        file.display()
    );
    server.start_again();
}

/// A tool call with this output.
pub(super) fn with_tool_output(output: &Value) -> Vec<Value> {
    call(0, "make", output).into()
}

/// An edit of a file that succeeds.
pub(super) fn with_edit(before: &str, after: &str) -> Vec<Value> {
    let input = json!({ "file_path": "src/retry.rs", "old_string": before, "new_string": after });
    call_of(0, "Edit", &input, &json!("The file was updated.")).into()
}

/// An edit in the middle of a long file, which the agent has not read. Its result says where.
pub(super) fn with_located_edit() -> Vec<Value> {
    let mut lines = with_edit("let wait = 1;\n", "let wait = 2;\nlet most = 5;\n");
    let hunk = json!({
        "oldStart": 41, "oldLines": 3, "newStart": 41, "newLines": 4,
        "lines": [" // Waits.", "-let wait = 1;", "+let wait = 2;", "+let most = 5;", " send();"],
    });
    let change = json!({ "filePath": "src/retry.rs", "structuredPatch": [hunk] });
    if let Some(result) = lines.last_mut() {
        result["tool_use_result"] = change;
    }
    lines
}

fn with_messages(count: usize) -> Vec<Value> {
    let mut lines = Vec::new();
    for number in 0..count {
        lines.push(message(number, &json!({ "type": "text", "text": words(number) })));
        if number % 5 == 4 {
            let file = format!("part-{number}.txt");
            lines.extend(call(number, &format!("wc -l {file}"), &json!(format!("{number} {file}"))));
        }
    }
    lines
}

fn opening() -> Value {
    json!({
        "type": "system", "subtype": "init", "cwd": "/workspace", "tools": ["Bash"], "mcp_servers": [],
        "model": MODEL, "permissionMode": "default", "slash_commands": [], "apiKeySource": "none",
        "claude_code_version": "2.1.330", "output_style": "default",
    })
}

fn result() -> Value {
    json!({
        "type": "result", "subtype": "success", "is_error": false, "duration_ms": 1000, "duration_api_ms": 900,
        "num_turns": 1, "result": "", "stop_reason": "end_turn", "total_cost_usd": 0.01,
        "usage": { "input_tokens": 12, "output_tokens": 1 }, "permission_denials": [],
    })
}

/// A command and its output.
fn call(number: usize, command: &str, output: &Value) -> [Value; 2] {
    call_of(number, "Bash", &json!({ "command": command }), output)
}

/// A tool call and its result.
fn call_of(number: usize, tool: &str, input: &Value, output: &Value) -> [Value; 2] {
    let id = format!("toolu_{number:020}");
    let result = json!({ "type": "tool_result", "tool_use_id": id, "content": output, "is_error": false });
    [
        message(number, &json!({ "type": "tool_use", "id": id, "name": tool, "input": input })),
        json!({ "type": "user", "message": { "role": "user", "content": [result] }, "parent_tool_use_id": null }),
    ]
}

fn message(number: usize, block: &Value) -> Value {
    json!({
        "type": "assistant", "parent_tool_use_id": null,
        "message": {
            "model": MODEL, "id": format!("msg_long{number:05}"), "type": "message", "role": "assistant",
            "content": [block], "stop_reason": null, "stop_sequence": null,
            "usage": { "input_tokens": 12, "output_tokens": 1 },
        },
    })
}

fn with_ids(mut line: Value, number: usize) -> Value {
    line["session_id"] = json!("5e551011-0000-4000-8000-000000000002");
    line["uuid"] = json!(format!("00000000-0000-4000-8000-{number:012}"));
    line
}

/// The text of message `number`: Markdown of each kind, and some code in some messages.
fn words(number: usize) -> String {
    let code = format!(
        "\n\n```rust\nfn part_{number}() -> usize {{\n    // The parts are counted from zero.\n    {number}\n}}\n```"
    );
    format!(
        "Message {number} is about **part {number}**: it has `{}` lines, and these points:\n\n- the first is short\n- the second is a little longer than the first one{}",
        number * 7,
        if number.is_multiple_of(3) { code.as_str() } else { "" },
    )
}
