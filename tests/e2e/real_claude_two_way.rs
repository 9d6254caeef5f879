//! The real `claude` program in its two-way mode, which is spoken with.

use serde_json::{Value, json};

use crate::model_server::claude;
use crate::real_agents::{Agent, stories};
use crate::real_questions::{is_told_what_the_user_has_chosen, questions};

pub(crate) const TWO_WAY: Agent = Agent {
    kind: "claude-two-way",
    settings: "",
    program: || vec![claude::program()],
    files: |_| {
        let settings = json!({ "permissions": { "allow": ["Bash(echo:*)"] } });
        vec![(".claude/settings.json", settings.to_string())]
    },
    environment: |url| {
        vec![
            ("ANTHROPIC_BASE_URL", url.to_owned()),
            ("ANTHROPIC_API_KEY", "dummy".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_TELEMETRY", "1".to_owned()),
            ("DISABLE_ERROR_REPORTING", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ]
    },
    shell,
    in_pieces: true,
    tells_results: true,
    launched: false,
};

fn shell(command: &str) -> (&'static str, Value) {
    ("Bash", json!({ "command": command, "description": "Try it" }))
}

stories!(TWO_WAY);
questions!(TWO_WAY, shell);

fn databases(_: &str) -> (&'static str, Value) {
    let option = |label: &str| json!({ "label": label, "description": "for what is kept" });
    let question = json!({
        "question": "Which database?",
        "header": "Database",
        "options": [option("One file 🪶"), option("A server")],
        "multiSelect": false,
    });
    ("AskUserQuestion", json!({ "questions": [question] }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lets_the_user_choose() {
    is_told_what_the_user_has_chosen(&TWO_WAY, databases, "One file 🪶").await;
}

/// Started by a launcher.
mod launcher {
    use super::TWO_WAY;
    use crate::real_agents::{Agent, stories};

    const LAUNCHER: Agent = Agent { launched: true, ..TWO_WAY };

    stories!(LAUNCHER, launched);
}
