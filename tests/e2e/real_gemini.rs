//! The real `gemini` program, `--output-format stream-json`.

use serde_json::json;

use crate::real_agents::{Agent, fetched, stories};
use crate::real_clients::{clients, node};

pub(crate) const GEMINI: Agent = Agent {
    kind: "gemini",
    settings: "",
    program: || vec![node(&clients()), fetched("gemini", &["@google/gemini-cli/bundle/gemini.js"])],
    files: |_| settings("run_shell_command"),
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
    tells_results: true,
    launched: false,
};

stories!(GEMINI);

/// The default configuration: a launcher that restarts itself.
mod launcher {
    use super::GEMINI;
    use crate::real_agents::{Agent, stories};

    const LAUNCHER: Agent = Agent {
        environment: |url| {
            let mut all = (GEMINI.environment)(url);
            all.retain(|(name, _)| *name != "GEMINI_CLI_NO_RELAUNCH");
            all
        },
        ..GEMINI
    };

    stories!(LAUNCHER, launched);
}

/// Its settings, which allow this tool without asking.
fn settings(allowed: &str) -> Vec<(&'static str, String)> {
    let settings = json!({
        "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
        "model": { "name": "gemini-2.5-flash" },
        "privacy": { "usageStatisticsEnabled": false },
        "security": { "auth": { "selectedType": "gemini-api-key" } },
        "tools": { "allowed": [allowed] },
    });
    vec![(".gemini/settings.json", settings.to_string())]
}

/// `--acp`, an interactive mode.
mod acp {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::{GEMINI, settings};
    use crate::harness::text_of;
    use crate::model_server::{ModelServer, Reply};
    use crate::real_agents::{Agent, SLOW, ended, stories};
    use crate::real_questions::questions;

    const GEMINI_ACP: Agent = Agent {
        kind: "gemini-acp",
        // Each turn has its own process, so that none is left after a turn.
        settings: "runner = \"acp\"\nargs = [\"--acp\"]\nfiles = false\nrest_s = 0",
        files: |_| settings("none"),
        tells_results: false,
        ..GEMINI
    };

    fn shell(command: &str) -> (&'static str, Value) {
        ("run_shell_command", json!({ "command": command, "description": "Try it" }))
    }

    stories! { GEMINI_ACP,
        shows_a_tool_call_with_its_result
        is_cancelled_in_mid_answer_and_leaves_no_process
        is_cancelled_while_its_tool_runs_and_leaves_no_process
        outlives_a_server_that_is_killed_in_mid_answer
    }

    questions! { GEMINI_ACP, shell,
        is_allowed_to_do_it
        is_refused_and_goes_on_without_it
        asks_a_server_that_is_killed_and_is_answered_by_the_next
        is_cancelled_while_it_waits_for_an_answer
    }

    /// The default configuration.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn goes_on_in_the_process_that_waits() {
        const RESTING: Agent =
            Agent { settings: "runner = \"acp\"\nargs = [\"--acp\"]\nfiles = false", ..GEMINI_ACP };
        RESTING.goes_on_in_the_process_that_waits().await;
    }

    /// It does not load a session without an answer.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn begins_anew_after_its_first_turn_was_cancelled_and_says_so() {
        let replies = [Reply::text(["One ", "two "]).then_silence(), Reply::text(["Second."])];
        let model = ModelServer::start(replies);
        let (server, _home) = GEMINI_ACP.start(&model);
        let id = server.launch_as(GEMINI_ACP.kind, "Count").await;
        tokio::time::timeout(SLOW, model.request(1)).await.expect("the model is asked");
        server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
        assert_eq!(ended(&server, &id).await["status"], "cancelled");
        server.post(&format!("/api/agents/{id}/messages"), &json!({ "content": "And now?" })).await;
        let done = |agent: &Value| agent["turn"] == 2 && agent["endedAt"].is_string();
        let agent = server.wait_within(SLOW, &id, done).await;
        assert_eq!(agent["status"], "completed", "{agent}");
        let events = server.events(&id).await;
        assert!(text_of(&events).ends_with("Second."));
        let lost = events.iter().find(|event| event["metadata"]["eventType"] == "session_lost");
        let text = lost.expect("the user is told")["metadata"]["data"]["text"].to_string();
        assert!(
            text.contains("without the earlier conversation: Internal error: No previous sessions"),
            "{text}"
        );
    }

    /// If it loads a session within the minute in which the session began, it overwrites its own record of it, because
    /// the file name contains that minute. So the test makes the first turn look old.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn loads_its_session_and_says_what_the_model_said_byte_for_byte() {
        GEMINI_ACP.resumes_its_session_after(make_sessions_old).await;
    }

    fn make_sessions_old(home: &Path) {
        let projects = home.join(".gemini/tmp").read_dir().unwrap().flatten();
        let chats = projects.map(|project| project.path().join("chats"));
        let sessions = chats.flat_map(|chats| chats.read_dir().into_iter().flatten().flatten());
        let mut made_old = 0;
        for session in sessions {
            // `session-2026-11-22T13-48-82991665.jsonl`
            let name = session.file_name().into_string().unwrap();
            let id = name.rsplit('-').next().unwrap();
            let old = session.path().with_file_name(format!("session-2020-01-01T00-00-{id}"));
            std::fs::rename(session.path(), old).unwrap();
            made_old += 1;
        }
        assert!(0 < made_old);
    }
}
