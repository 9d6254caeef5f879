//! The real `gemini` program, `--output-format stream-json`.

use serde_json::json;

use crate::real_agents::{Agent, fetched, stories};
use crate::real_clients::{clients, node};

const GEMINI: Agent = Agent {
    kind: "gemini",
    program: || vec![node(&clients()), fetched("gemini", &["@google/gemini-cli/bundle/gemini.js"])],
    files: |_| {
        let settings = json!({
            "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
            "model": { "name": "gemini-2.5-flash" },
            "privacy": { "usageStatisticsEnabled": false },
            "security": { "auth": { "selectedType": "gemini-api-key" } },
            "tools": { "allowed": ["run_shell_command"] },
        });
        vec![(".gemini/settings.json", settings.to_string())]
    },
    environment: |url| {
        let set = |name, value: &str| (name, value.to_owned());
        vec![
            set("GEMINI_API_KEY", "dummy"),
            set("GEMINI_CLI_NO_RELAUNCH", "true"),
            set("GEMINI_CLI_TRUST_WORKSPACE", "true"),
            set("GEMINI_TELEMETRY_ENABLED", "false"),
            set("GOOGLE_GEMINI_BASE_URL", url),
        ]
    },
    shell: |command| ("run_shell_command", json!({ "command": command, "description": "Greet" })),
    in_pieces: true,
};

stories!(GEMINI);
