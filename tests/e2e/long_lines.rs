//! Lines of more than five megabytes, from every kind of agent: the stored text is exactly the printed text.
//!
//! Lines are read in pieces whose lengths are powers of two, and the repeated text has 21 bytes. So its emoji are cut
//! at every possible position. Model APIs have such a test in `model_api`.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{TestServer, no_process_is_left, text_of, write_script};

/// More than five megabytes.
pub(crate) fn long_text() -> String {
    "0123456789abcdeé🙂".repeat(5 << 16)
}

/// An agent that prints one long text.
struct Talker {
    kind: &'static str,
    settings: &'static str,
    /// Shell commands that answer the requests before a turn.
    opening: &'static str,
    lines: fn(&str) -> Vec<Value>,
    /// It also prints the text as a delta.
    in_pieces: bool,
}

const ACP: &str = r#"read -r initialize; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read -r new; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
read -r prompt"#;

const APP_SERVER: &str = r#"read -r initialize; echo '{"id":1,"result":{}}'
read -r initialized; read -r start; echo '{"id":2,"result":{"thread":{"id":"t"}}}'
read -r turn; echo '{"id":3,"result":{"turn":{"id":"u"}}}'"#;

const TALKERS: [Talker; 7] = [
    Talker {
        kind: "claude",
        settings: "format = \"claude\"",
        opening: "cat >/dev/null",
        lines: claude,
        in_pieces: true,
    },
    Talker {
        kind: "claude-two-way",
        settings: "format = \"claude-two-way\"\nrest_s = 0",
        opening: "read -r prompt",
        lines: claude,
        in_pieces: true,
    },
    Talker {
        kind: "acp",
        settings: "runner = \"acp\"\nrest_s = 0",
        opening: ACP,
        lines: |text| {
            let content = json!({ "type": "text", "text": text });
            let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
            let params = json!({ "sessionId": "s", "update": update });
            vec![
                json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }),
                json!({ "jsonrpc": "2.0", "id": 3, "result": { "stopReason": "end_turn" } }),
            ]
        },
        in_pieces: true,
    },
    Talker {
        kind: "codex-app-server",
        settings: "format = \"codex-app-server\"",
        opening: APP_SERVER,
        lines: |text| {
            let item = json!({ "id": "m", "type": "agentMessage", "text": text });
            let of = |method: &str, mut params: Value| {
                (params["threadId"], params["turnId"]) = ("t".into(), "u".into());
                json!({ "method": method, "params": params })
            };
            vec![
                of("turn/started", json!({ "turn": { "id": "u" } })),
                of("item/agentMessage/delta", json!({ "itemId": "m", "delta": text })),
                of("item/completed", json!({ "item": item })),
                of("turn/completed", json!({ "turn": { "id": "u", "status": "completed" } })),
            ]
        },
        in_pieces: true,
    },
    Talker {
        kind: "codex",
        settings: "format = \"codex\"",
        opening: "cat >/dev/null",
        lines: |text| {
            let item = json!({ "id": "m", "type": "agent_message", "text": text });
            vec![
                json!({ "type": "turn.started" }),
                json!({ "type": "item.completed", "item": item }),
                json!({ "type": "turn.completed", "usage": {} }),
            ]
        },
        in_pieces: false,
    },
    Talker {
        kind: "gemini",
        settings: "format = \"gemini\"",
        opening: "cat >/dev/null",
        lines: |text| {
            vec![
                json!({ "type": "init", "session_id": "s", "model": "m" }),
                json!({ "type": "message", "role": "assistant", "content": text, "delta": true }),
                json!({ "type": "result", "status": "success", "stats": {} }),
            ]
        },
        in_pieces: true,
    },
    Talker {
        kind: "opencode",
        settings: "format = \"opencode\"",
        opening: "cat >/dev/null",
        lines: |text| {
            let of = |kind: &str, part: Value| json!({ "type": kind, "sessionID": "s", "part": part });
            vec![
                of("step_start", json!({ "type": "step-start" })),
                of("text", json!({ "type": "text", "text": text })),
                of("step_finish", json!({ "type": "step-finish", "reason": "stop" })),
            ]
        },
        in_pieces: false,
    },
];

/// The text in a delta, in the whole message, and in the result.
fn claude(text: &str) -> Vec<Value> {
    let event = |event: Value| json!({ "type": "stream_event", "event": event, "session_id": "s" });
    let delta = json!({ "type": "text_delta", "text": text });
    let block = json!({ "type": "text", "text": text });
    vec![
        json!({ "type": "system", "subtype": "init", "session_id": "s" }),
        event(json!({ "type": "message_start", "message": { "id": "m", "role": "assistant" } })),
        event(
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        ),
        event(json!({ "type": "content_block_delta", "index": 0, "delta": delta })),
        json!({ "type": "assistant", "message": { "id": "m", "role": "assistant", "content": [block] } }),
        event(json!({ "type": "content_block_stop", "index": 0 })),
        event(json!({ "type": "message_stop" })),
        json!({ "type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": "s" }),
    ]
}

impl Talker {
    /// Creates the program. Returns the configuration block of its type.
    fn block(&self, folder: &Path, text: &str) -> String {
        let file = |name: &str| folder.join(format!("{}.{name}", self.kind));
        let lines = (self.lines)(text);
        let lines = lines.iter().fold(String::new(), |mut all, line| {
            writeln!(all, "{line}").unwrap();
            all
        });
        std::fs::write(file("lines"), lines).unwrap();
        let program = file("program");
        // An interactive program ends when its input ends.
        let script =
            format!("#!/bin/sh\n{}\ncat '{}'\ncat >/dev/null\n", self.opening, file("lines").display());
        write_script(&program, &script);
        format!("[agents.{}]\n{}\nprogram = \"{}\"\n", self.kind, self.settings, program.display())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_of_more_than_five_megabytes_is_kept_to_the_last_byte() {
    let (folder, text) = (tempfile::tempdir().unwrap(), long_text());
    assert!(5 << 20 < text.len());
    let config: String = TALKERS.iter().map(|talker| talker.block(folder.path(), &text)).collect();
    let server = TestServer::start_with(&config);
    for talker in &TALKERS {
        let id = server.launch_as(talker.kind, "Talk").await;
        let ended = |agent: &Value| agent["endedAt"].is_string() && agent["status"] != "running";
        let agent = server.wait_until(&id, ended).await;
        assert_eq!(agent["status"], "completed", "{}: {agent}", talker.kind);
        let events = server.events(&id).await;
        // Do not print such long texts.
        assert!(text_of(&events) == text, "{}: the message is another", talker.kind);
        assert_eq!(deltas(&events).is_empty(), !talker.in_pieces, "{}", talker.kind);
        assert!(!talker.in_pieces || deltas(&events) == text, "{}: the deltas are others", talker.kind);
        no_process_is_left(&id).await;
    }
}

fn deltas(events: &[Value]) -> String {
    let deltas = events.iter().filter(|event| event["metadata"]["eventType"] == "content_delta");
    deltas.map(|event| event["content"].as_str().unwrap()).collect()
}
