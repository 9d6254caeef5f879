//! The real `opencode` program, `run --format json`.

use serde_json::json;

use crate::real_agents::{Agent, fetched, stories};

const OPENCODE: Agent = Agent {
    kind: "opencode",
    program: || vec![fetched("opencode", &["opencode-linux-x64/bin/opencode"])],
    files: |url| {
        let provider = json!({
            "npm": "@ai-sdk/anthropic",
            "options": { "baseURL": format!("{url}/v1"), "apiKey": "dummy" },
            "models": { "a-model": {} },
        });
        let config = json!({
            "autoupdate": false, "share": "disabled", "model": "scripted/a-model",
            "small_model": "scripted/a-model", "provider": { "scripted": provider },
        });
        vec![(".config/opencode/opencode.json", config.to_string())]
    },
    environment: |_| {
        vec![
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".to_owned()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
        ]
    },
    shell: |command| ("bash", json!({ "command": command, "description": "Greet" })),
    in_pieces: false,
};

stories!(OPENCODE);
