//! `codex-acp`, which speaks the Agent Client Protocol and has `codex app-server` behind it.

use serde_json::{Value, json};

use crate::real_agents::{Agent, fetched, stories};
use crate::real_clients::{clients, node};
use crate::real_codex::CODEX;
use crate::real_questions::questions;

const CODEX_ACP: Agent = Agent {
    kind: "codex-acp",
    settings: "runner = \"acp\"\nrest_s = 0",
    program: || {
        vec![node(&clients()), fetched("codex-acp", &["@agentclientprotocol/codex-acp/dist/index.js"])]
    },
    files: |url| {
        let mut files = (CODEX.files)(url);
        // Of a model that it does not know it warns, as a message.
        for (_, text) in &mut files {
            *text = text.replace("a-model", "gpt-6.1-sol");
        }
        files
    },
    environment: |url| {
        let mut all = (CODEX.environment)(url);
        // As it is otherwise, a model decides what is asked.
        all.push(("INITIAL_AGENT_MODE", "workspace-write".to_owned()));
        all
    },
    in_pieces: true,
    ..CODEX
};

/// A command that goes beyond what it may do by itself.
fn forbidden(command: &str) -> (&'static str, Value) {
    let input =
        json!({ "cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I?" });
    ("exec_command", input)
}

stories!(CODEX_ACP);
questions!(CODEX_ACP, forbidden);

/// As it is run where nothing is said of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn goes_on_in_the_process_that_waits() {
    const RESTING: Agent = Agent { settings: "runner = \"acp\"", ..CODEX_ACP };
    RESTING.goes_on_in_the_process_that_waits().await;
}
