//! The real `codex` program, `exec --json`.

use serde_json::json;

use crate::real_agents::{Agent, fetched, stories};

pub(crate) const CODEX: Agent = Agent {
    kind: "codex",
    settings: "",
    // The native program. The launcher next to it needs Node, and only starts it.
    program: || {
        let of = |cpu: &str, triple: &str| format!("@openai/codex-linux-{cpu}/vendor/{triple}/bin/codex");
        let programs = [of("x64", "x86_64-unknown-linux-musl"), of("arm64", "aarch64-unknown-linux-musl")];
        vec![fetched("codex", &programs.each_ref().map(String::as_str))]
    },
    files: |url| {
        let config = format!(
            "model = \"a-model\"\nmodel_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\
             [analytics]\nenabled = false\n\
             [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{url}/v1\"\n\
             env_key = \"SCRIPTED_KEY\"\nwire_api = \"responses\"\n"
        );
        vec![(".codex/config.toml", config)]
    },
    environment: |_| vec![("SCRIPTED_KEY", "dummy".to_owned())],
    shell: |command| ("exec_command", json!({ "cmd": command })),
    in_pieces: false,
    tells_results: true,
    launched: false,
};

stories!(CODEX);

/// The launcher of its package, which starts the native program.
mod launcher {
    use super::CODEX;
    use crate::real_agents::{Agent, fetched, stories};
    use crate::real_clients::{clients, node};

    const LAUNCHER: Agent = Agent {
        program: || vec![node(&clients()), fetched("codex", &["@openai/codex/bin/codex.js"])],
        ..CODEX
    };

    stories!(LAUNCHER, launched);
}

/// `app-server`, an interactive mode.
pub(crate) mod app_server {
    use serde_json::{Value, json};

    use super::CODEX;
    use crate::images::reach_the_model;
    use crate::real_agents::{Agent, stories};
    use crate::real_questions::questions;

    pub(crate) const APP_SERVER: Agent = Agent { kind: "codex-app-server", in_pieces: true, ..CODEX };

    /// A command that needs permission.
    fn forbidden(command: &str) -> (&'static str, Value) {
        let input = json!({
            "cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I?"
        });
        ("exec_command", input)
    }

    stories!(APP_SERVER);

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn shows_the_model_the_images_of_a_message() {
        reach_the_model(&APP_SERVER).await;
    }

    questions!(APP_SERVER, forbidden);
}
