//! A real agent that only supports ACP: `claude-agent-acp`. Agents with other formats are tested together with those.

use serde_json::json;

use crate::real_agents::{Agent, fetched, stories};
use crate::real_claude_two_way::{TWO_WAY, shell};
use crate::real_clients::{clients, node};
use crate::real_questions::questions;

const CLAUDE_AGENT_ACP: Agent = Agent {
    kind: "claude-agent-acp",
    // Each turn has its own process, so that none is left after a turn.
    settings: "runner = \"acp\"\nrest_s = 0",
    program: || {
        vec![
            node(&clients()),
            fetched("claude-acp", &["@agentclientprotocol/claude-agent-acp/dist/index.js"]),
        ]
    },
    files: |_| {
        let permissions = json!({ "allow": ["Bash(echo:*)"], "defaultMode": "default" });
        vec![(".claude/settings.json", json!({ "permissions": permissions }).to_string())]
    },
    environment: |url| {
        let set = |name, value: &str| (name, value.to_owned());
        vec![
            set("ANTHROPIC_BASE_URL", url),
            set("ANTHROPIC_API_KEY", "dummy"),
            set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            set("DISABLE_AUTOUPDATER", "1"),
            set("DISABLE_ERROR_REPORTING", "1"),
            set("DISABLE_TELEMETRY", "1"),
            // Without it, the program refuses to run as the root user of a container.
            set("IS_SANDBOX", "1"),
        ]
    },
    // The rest is as in the program that it contains.
    ..TWO_WAY
};

stories!(CLAUDE_AGENT_ACP);
questions!(CLAUDE_AGENT_ACP, shell);

/// The default configuration.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn goes_on_in_the_process_that_waits() {
    const RESTING: Agent = Agent { settings: "runner = \"acp\"", ..CLAUDE_AGENT_ACP };
    RESTING.goes_on_in_the_process_that_waits().await;
}
