//! `codex-acp`, which speaks the Agent Client Protocol and runs `codex app-server`.
//!
//! If it does not know a model, it prints a warning as a message. So its output is never only what the model has said.

use serde_json::{Value, json};

use crate::harness::text_of;
use crate::model_server::{ModelServer, Reply};
use crate::real_agents::{Agent, SLOW, ended, fetched, stories};
use crate::real_clients::{clients, node};
use crate::real_codex::CODEX;
use crate::real_questions::questions;

const CODEX_ACP: Agent = Agent {
    kind: "codex-acp",
    // Each turn has its own process, so that none is left after a turn.
    settings: "runner = \"acp\"\nrest_s = 0",
    program: || {
        vec![node(&clients()), fetched("codex-acp", &["@agentclientprotocol/codex-acp/dist/index.js"])]
    },
    environment: |url| {
        let mut all = (CODEX.environment)(url);
        // By default, a model decides what needs permission.
        all.push(("INITIAL_AGENT_MODE", "workspace-write".to_owned()));
        all
    },
    in_pieces: true,
    ..CODEX
};

/// A command that needs permission.
fn forbidden(command: &str) -> (&'static str, Value) {
    let input =
        json!({ "cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I?" });
    ("exec_command", input)
}

stories! { CODEX_ACP,
    is_cancelled_while_its_tool_runs_and_leaves_no_process
}

questions! { CODEX_ACP, forbidden,
    is_allowed_to_do_it
}

/// It shows a terminal for each command, and sends its contents outside the standard protocol.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shows_what_its_commands_print_and_goes_on_in_the_process_that_waits() {
    const RESTING: Agent = Agent { settings: "runner = \"acp\"", ..CODEX_ACP };
    let call = |command: &str| {
        let (tool, input) = (CODEX_ACP.shell)(command);
        Reply::tool_call(tool, input)
    };
    let model = ModelServer::start([
        call("echo 'hällo 👋'"),
        Reply::text(["First."]),
        call("echo oops; exit 3"),
        Reply::text(["Second."]),
    ]);
    let (server, _home) = RESTING.start(&model);
    let id = server.launch_as(RESTING.kind, "Greet me").await;
    assert_eq!(ended(&server, &id).await["status"], "completed");
    server.post(&format!("/api/agents/{id}/messages"), &json!({ "content": "And now fail" })).await;
    let done = |agent: &Value| agent["turn"] == 2 && agent["endedAt"].is_string();
    assert_eq!(server.wait_within(SLOW, &id, done).await["status"], "completed");
    let events = server.events(&id).await;
    let results = events.iter().filter(|event| event["metadata"]["eventType"] == "tool_result");
    let results: Vec<_> = results.map(|event| (&event["content"], &event["metadata"]["isError"])).collect();
    let expected = [(json!("hällo 👋\n"), json!(false)), (json!("oops\n"), json!(true))];
    assert_eq!(results, expected.each_ref().map(|(content, is_error)| (content, is_error)));
    let said = text_of(&events);
    assert!(said.contains("First.") && said.ends_with("Second."), "{said}");
    let inits = events.iter().filter(|event| event["metadata"]["eventType"] == "init").count();
    assert_eq!(inits, 1, "one process for both turns");
}
