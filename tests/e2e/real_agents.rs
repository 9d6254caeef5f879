//! What every agent must do with the real server, whatever its vendor: the stories. The programs are real ones with
//! known versions, and use a scripted model; `cargo xtask test` fetches them.
//!
//! Each program runs with the default arguments of its type, in its own home folder.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{TestServer, no_process_is_left, processes_of_agent, text_of, write_script};
use crate::model_server::{Gate, ModelServer, Reply};
use crate::real_clients::clients;

/// How long a program may take for one step. Some need most of a minute of processor time to start.
pub(crate) const SLOW: Duration = Duration::from_mins(5);

const HARD_TEXT: [&str; 5] =
    ["Grüße 👩‍👩‍👧‍👦, ", "世界! ", "a\ttab, ", "e\u{301} ", "🙂\n```rust\nfn main() {}\n```"];

/// One agent program.
pub(crate) struct Agent {
    /// Its agent type.
    pub(crate) kind: &'static str,
    /// The lines of its configuration block. Empty if the type alone is enough.
    pub(crate) settings: &'static str,
    /// The command.
    pub(crate) program: fn() -> Vec<PathBuf>,
    /// The files in its home that make it talk only to the model at this address.
    pub(crate) files: fn(url: &str) -> Vec<(&'static str, String)>,
    /// Its environment, besides home and path.
    pub(crate) environment: fn(url: &str) -> Vec<(&'static str, String)>,
    /// A call of its shell tool: the tool's name and the input.
    pub(crate) shell: fn(command: &str) -> (&'static str, Value),
    /// It prints deltas, and not only whole messages.
    pub(crate) in_pieces: bool,
    /// It prints the results of its tools.
    pub(crate) tells_results: bool,
    /// The started program is only a script that starts the agent and waits for it, as launchers of npm do.
    pub(crate) launched: bool,
}

/// The first of these files that exists in a fetched package.
pub(crate) fn fetched(folder: &str, candidates: &[&str]) -> PathBuf {
    let folder = clients().join(folder).join("node_modules");
    let mut files = candidates.iter().map(|candidate| folder.join(candidate));
    files.find(|file| file.exists()).expect("a program that runs on this machine")
}

impl Agent {
    pub(crate) fn start(&self, model: &ModelServer) -> (TestServer, tempfile::TempDir) {
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        (TestServer::start_with(&self.config(model, home.path())), home)
    }

    /// The configuration of its type, with its own files in `home`.
    pub(crate) fn config(&self, model: &ModelServer, home: &Path) -> String {
        for (file, text) in (self.files)(model.url()) {
            let file = home.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let settings = match self.settings {
            "" => format!("format = {:?}", self.kind),
            settings => settings.to_owned(),
        };
        let mut config = format!(
            "[agents.{0}]\n{settings}\nprogram = \"{1}\"\npass_env = [\"PATH\"]\n[agents.{0}.env]\nHOME = \"{2}\"\n",
            self.kind,
            self.start_script(home).display(),
            home.display(),
        );
        for (name, value) in (self.environment)(model.url()) {
            writeln!(config, "{name} = {value:?}").unwrap();
        }
        config
    }

    /// A script that runs the command: the configuration names one program, and the arguments must stay those of the
    /// type.
    fn start_script(&self, home: &Path) -> PathBuf {
        let words: Vec<String> =
            (self.program)().iter().map(|word| format!("{:?}", word.display())).collect();
        let script = home.join("start");
        let words = words.join(" ");
        let line =
            if self.launched { format!("{words} \"$@\"; exit $?") } else { format!("exec {words} \"$@\"") };
        write_script(&script, &format!("#!/bin/sh\n{line}\n"));
        script
    }

    pub(crate) async fn resumes_its_session_and_says_what_the_model_said_byte_for_byte(&self) {
        self.resumes_its_session_after(|_| {}).await;
    }

    /// The same, with a change in its home between the turns.
    pub(crate) async fn resumes_its_session_after(&self, meanwhile: impl FnOnce(&Path)) {
        let model = ModelServer::start([Reply::text(HARD_TEXT), Reply::text(["Second."])]);
        let (server, home) = self.start(&model);
        let id = server.launch_as(self.kind, "Say something hard: 世界 🙂").await;
        let agent = ended(&server, &id).await;
        assert_eq!(agent["status"], "completed", "{agent}");
        let events = server.events(&id).await;
        assert_eq!(text_of(&events), HARD_TEXT.concat());
        if self.in_pieces {
            assert_eq!(pieces(&events), HARD_TEXT);
        }
        meanwhile(home.path());
        let path = format!("/api/agents/{id}/messages");
        server.post(&path, &json!({ "content": "And now?" })).await;
        let done = |agent: &Value| agent["turn"] == 2 && agent["endedAt"].is_string();
        let agent = server.wait_within(SLOW, &id, done).await;
        assert_eq!(agent["status"], "completed", "{agent}");
        let asked = model.requests().last().unwrap().body().to_string();
        assert!(asked.contains("Say something hard: 世界 🙂"), "turn two knows turn one: {asked}");
        assert!(asked.contains("And now?"), "{asked}");
        assert_eq!(text_of(&server.events(&id).await), HARD_TEXT.concat() + "Second.");
    }

    /// With a process that idles between its turns.
    pub(crate) async fn goes_on_in_the_process_that_waits(&self) {
        let model = ModelServer::start([Reply::text(["First."]), Reply::text(["Second."])]);
        let (server, _home) = self.start(&model);
        let id = server.launch_as(self.kind, "Remember the word pelican").await;
        let agent = ended(&server, &id).await;
        assert_eq!(agent["status"], "completed", "{agent}");
        let processes = processes_of_agent(&id);
        assert!(3 <= processes.len(), "supervisor, whoever speaks with it, and itself: {processes:?}");
        server.post(&format!("/api/agents/{id}/messages"), &json!({ "content": "And now?" })).await;
        let done = |agent: &Value| agent["turn"] == 2 && agent["endedAt"].is_string();
        let agent = server.wait_within(SLOW, &id, done).await;
        assert_eq!(agent["status"], "completed", "{agent}");
        let after = processes_of_agent(&id);
        assert!(processes.iter().take(3).all(|process| after.contains(process)), "{processes:?} {after:?}");
        let asked = model.requests().last().unwrap().body().to_string();
        assert!(asked.contains("pelican") && asked.contains("And now?"), "{asked}");
        assert_eq!(text_of(&server.events(&id).await), "First.Second.");
        server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
        no_process_is_left(&id).await;
    }

    pub(crate) async fn shows_a_tool_call_with_its_result(&self) {
        let (tool, input) = (self.shell)("echo 'hällo 👋'");
        let call = Reply::tool_call(tool, input).saying(["Let me see."]);
        let model = ModelServer::start([call, Reply::text(["Done."])]);
        let (server, _home) = self.start(&model);
        let id = server.launch_as(self.kind, "Greet me").await;
        let agent = ended(&server, &id).await;
        assert_eq!(agent["status"], "completed", "{agent}");
        let events = server.events(&id).await;
        let of = |kind: &str| events.iter().find(|event| event["metadata"]["eventType"] == kind).unwrap();
        assert!(of("tool_use")["content"]["input"].to_string().contains("echo 'hällo 👋'"), "{events:?}");
        assert_eq!(of("tool_use")["metadata"]["toolCallId"], of("tool_result")["metadata"]["toolCallId"]);
        let told = of("tool_result")["content"].to_string().contains("hällo 👋");
        assert_eq!(told, self.tells_results, "{events:?}");
        assert_eq!(text_of(&events), "Let me see.Done.");
    }

    pub(crate) async fn is_cancelled_in_mid_answer_and_leaves_no_process(&self) {
        let model = ModelServer::start([Reply::text(["One ", "two "]).then_silence()]);
        let (server, _home) = self.start(&model);
        let id = server.launch_as(self.kind, "Count").await;
        tokio::time::timeout(SLOW, model.request(1)).await.expect("the model is asked");
        while self.in_pieces && pieces(&server.events(&id).await).len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
        assert_eq!(ended(&server, &id).await["status"], "cancelled");
        no_process_is_left(&id).await;
        let expected = if self.in_pieces { "One two " } else { "" };
        assert_eq!(text_of(&server.events(&id).await), expected);
    }

    pub(crate) async fn outlives_a_server_that_is_killed_in_mid_answer(&self) {
        let gate = Gate::new();
        let words: Vec<String> = (0..30).map(|number| format!("w{number} 🙂 世")).collect();
        let model = ModelServer::start([Reply::text(words.clone()).gated(&gate)]);
        let (mut server, _home) = self.start(&model);
        let id = server.launch_as(self.kind, "Go").await;
        tokio::time::timeout(SLOW, model.request(1)).await.expect("the model is asked");
        for _ in 0..2 {
            let head = server.get(&format!("/api/agents/{id}")).await["head"].as_u64().unwrap();
            gate.pass(10);
            if self.in_pieces {
                let more = |agent: &Value| head < agent["head"].as_u64().unwrap();
                server.wait_within(SLOW, &id, more).await;
            }
            server.kill_and_start_again();
            assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "running");
        }
        gate.open();
        let agent = ended(&server, &id).await;
        assert_eq!(agent["status"], "completed", "{agent}");
        assert_eq!(text_of(&server.events(&id).await), words.concat());
        assert_eq!(model.requests().len(), 1);
        no_process_is_left(&id).await;
    }
}

/// The deltas, one by one.
fn pieces(events: &[Value]) -> Vec<&str> {
    let deltas = events.iter().filter(|event| event["metadata"]["eventType"] == "content_delta");
    deltas.map(|event| event["content"].as_str().unwrap()).collect()
}

pub(crate) async fn ended(server: &TestServer, id: &str) -> Value {
    let ended = |agent: &Value| agent["endedAt"].is_string() && agent["status"] != "running";
    server.wait_within(SLOW, id, ended).await
}

/// The stories of one agent, a test each.
macro_rules! stories {
    ($agent:ident) => {
        $crate::real_agents::stories! { $agent,
            resumes_its_session_and_says_what_the_model_said_byte_for_byte
            shows_a_tool_call_with_its_result
            is_cancelled_in_mid_answer_and_leaves_no_process
            is_cancelled_while_its_tool_runs_and_leaves_no_process
            outlives_a_server_that_is_killed_in_mid_answer
        }
    };
    ($agent:ident, launched) => {
        $crate::real_agents::stories! { $agent,
            is_cancelled_while_its_tool_runs_and_leaves_no_process
            is_cancelled_by_the_next_server_and_leaves_no_process
            loses_its_launcher_and_leaves_no_process
        }
    };
    ($agent:ident, $($story:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                $agent.$story().await;
            }
        )*
    };
}
pub(crate) use stories;
