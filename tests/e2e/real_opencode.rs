//! The real `opencode` program, `run --format json`.

use serde_json::{Value, json};

use crate::real_agents::{Agent, fetched, stories};

pub(crate) const OPENCODE: Agent = Agent {
    kind: "opencode",
    settings: "",
    program: || vec![fetched("opencode", &["opencode-linux-x64/bin/opencode"])],
    files: |url| config(url, &json!({})),
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
    tells_results: true,
    launched: false,
};

stories!(OPENCODE);

fn config(url: &str, permission: &Value) -> Vec<(&'static str, String)> {
    let provider = json!({
        "npm": "@ai-sdk/anthropic",
        "options": { "baseURL": format!("{url}/v1"), "apiKey": "dummy" },
        "models": { "a-model": {} },
    });
    let config = json!({
        "autoupdate": false, "share": "disabled", "model": "scripted/a-model", "permission": permission,
        "small_model": "scripted/a-model", "provider": { "scripted": provider },
    });
    vec![(".config/opencode/opencode.json", config.to_string())]
}

/// Started by a launcher.
mod launcher {
    use super::OPENCODE;
    use crate::real_agents::{Agent, stories};

    const LAUNCHER: Agent = Agent { launched: true, ..OPENCODE };

    stories!(LAUNCHER, launched);
}

/// `opencode acp`, an interactive mode.
mod acp {
    use serde_json::{Value, json};

    use super::{OPENCODE, config};
    use crate::real_agents::{Agent, stories};
    use crate::real_questions::questions;

    const OPENCODE_ACP: Agent = Agent {
        kind: "opencode-acp",
        // Each turn has its own process, so that none is left after a turn.
        settings: "runner = \"acp\"\nargs = [\"acp\"]\nrest_s = 0",
        files: |url| {
            config(url, &json!({ "bash": { "*": "ask", "echo *": "allow" }, "external_directory": "allow" }))
        },
        in_pieces: true,
        ..OPENCODE
    };

    fn shell(command: &str) -> (&'static str, Value) {
        ("bash", json!({ "command": command, "description": "Try it" }))
    }

    stories!(OPENCODE_ACP);
    questions! { OPENCODE_ACP, shell,
        is_allowed_to_do_it
        is_refused_and_ends_its_turn
        asks_a_server_that_is_killed_and_is_answered_by_the_next
        is_cancelled_while_it_waits_for_an_answer
    }

    /// The default configuration.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn goes_on_in_the_process_that_waits() {
        const RESTING: Agent = Agent { settings: "runner = \"acp\"\nargs = [\"acp\"]", ..OPENCODE_ACP };
        RESTING.goes_on_in_the_process_that_waits().await;
    }
}
