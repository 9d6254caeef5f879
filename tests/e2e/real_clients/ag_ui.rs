//! AG-UI's client and its validator, and a framework that uses an older client.

use std::path::{Path, PathBuf};

use crate::harness::{TestServer, fake_config};
use crate::real_clients::Driver;

/// The recordings of real agents, and their formats.
const RECORDINGS: [(&str, &str); 14] = [
    ("claude", "claude/1.0.30"),
    ("claude", "claude/2.0.55"),
    ("claude", "claude/2.1.197"),
    ("claude", "claude/2.1.330"),
    ("codex", "codex/0.169.0"),
    ("gemini", "gemini/0.61.0"),
    ("opencode", "opencode/1.18.33"),
    ("acp", "acp/claude-agent-acp-0.101.0"),
    ("acp", "acp/codex-acp-2.6.0"),
    ("acp", "acp/gemini-0.61.0"),
    ("acp", "acp/opencode-1.18.33"),
    ("anthropic", "anthropic/2023-06-01"),
    ("openai-chat", "openai-chat/v1"),
    ("openai-responses", "openai-responses/v1"),
];
/// How many sessions they are.
const SESSIONS: usize = 459;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn replay(name: &str, format: &str, file: &Path) -> String {
    format!(
        "[agents.{name}]\nrunner = \"replay\"\nformat = \"{format}\"\ntranscript = \"{}\"\nspeed = 0\n",
        file.display()
    )
}

/// A server whose agents are scripted, or replay the output of a real agent.
fn start() -> TestServer {
    let recorded = |name: &str, case: &str| {
        replay(name, "claude", &fixtures().join("claude/2.1.330").join(case).with_extension("jsonl"))
    };
    let same = ["bash_fail", "thinking_partial", "many_tools", "subagent_partial", "err_drop_once_slow"];
    // The example of the documentation names it.
    let recorded = same.map(|name| recorded(name, name)).concat() + &recorded("claude-code", "bash_fail");
    TestServer::start_with(&format!("[limits]\ncancel_grace_s = 1\n{}{recorded}", fake_config()))
}

fn client(server: &TestServer, story: &str) -> Driver {
    Driver::start("ag-ui", "ag_ui.mjs", server, &[story])
}

mod javascript {
    use super::{client, start};
    use crate::real_clients::{Example, example, flow, server_of_example, words};

    #[tokio::test]
    async fn the_example_of_the_page_runs() {
        let answer = "The command failed with exit code 3.";
        assert_eq!(example("ag-ui", ("ag-ui.md", 0), &start(), &[]).await, answer);
    }

    #[tokio::test]
    async fn the_example_that_resumes_outlives_its_server() {
        let mut server = server_of_example(&flow());
        let example = Example::start("ag-ui", ("ag-ui.md", 1), &server, &[]);
        assert_eq!(example.finish_over_kills(&mut server).await, words().concat());
    }

    #[tokio::test]
    async fn a_thread_shows_text_tools_and_reasoning_and_can_be_joined() {
        client(&start(), "talk").finish().await;
    }

    #[tokio::test]
    async fn an_agent_that_crashes_and_a_request_that_is_refused_show_as_errors() {
        client(&start(), "error").finish().await;
    }

    #[tokio::test]
    async fn a_cancel_ends_the_run() {
        client(&start(), "cancel").finish().await;
    }

    #[tokio::test]
    async fn a_permission_request_is_an_interrupt_and_a_run_answers_it() {
        client(&crate::questions::server(""), "question").finish().await;
    }

    #[tokio::test]
    async fn after_every_event_comes_exactly_the_rest() {
        client(&start(), "resume").finish().await;
    }

    #[tokio::test]
    async fn a_run_outlives_a_server_that_is_killed_while_it_comes() {
        let mut server = start();
        let driver = client(&server, "restart");
        driver.finish_over_kills(&mut server).await;
    }
}

mod copilotkit {
    use super::start;
    use crate::real_clients::Driver;

    #[tokio::test]
    async fn its_runtime_carries_a_conversation() {
        Driver::start("copilotkit", "copilotkit.mjs", &start(), &["talk"]).finish().await;
    }

    #[tokio::test]
    async fn its_runtime_carries_an_interrupt_and_the_answer() {
        let server = crate::questions::server("");
        Driver::start("copilotkit", "copilotkit.mjs", &server, &["question"]).finish().await;
    }

    #[tokio::test]
    async fn its_runtime_carries_a_run_that_is_cancelled() {
        Driver::start("copilotkit", "copilotkit.mjs", &start(), &["cancel"]).finish().await;
    }
}

mod validator {
    use std::fmt::Write as _;

    use super::{RECORDINGS, SESSIONS, fixtures, replay};
    use crate::harness::{TestServer, fake_config};
    use crate::questions;
    use crate::real_clients::Driver;

    #[tokio::test]
    async fn finds_nothing_in_any_session_live_and_again() {
        let mut config = "[limits]\nlaunches_per_minute = 100000\nstreams_per_peer = 1000\n".to_owned();
        let mut names = Vec::new();
        for (number, (format, folder)) in RECORDINGS.into_iter().enumerate() {
            let files = fixtures().join(folder).read_dir().unwrap().flatten().map(|entry| entry.path());
            let is_recording = |file: &std::path::PathBuf| file.extension().is_some_and(|end| end == "jsonl");
            for file in files.filter(is_recording) {
                let case = file.file_stem().unwrap().to_string_lossy().into_owned();
                let format = if case.starts_with("appserver") { "codex-app-server" } else { format };
                let name = format!("r{number}-{case}").replace(['_', '.'], "-");
                write!(config, "{}", replay(&name, format, &file)).unwrap();
                names.push(name);
            }
        }
        assert_eq!(names.len(), SESSIONS);
        let server = TestServer::start_with(&config);
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        Driver::start_python("ag-ui-py", "ag_ui.py", &server, &names).finish().await;
    }

    #[tokio::test]
    async fn finds_nothing_in_runs_that_are_answered_or_cancelled_or_that_fail() {
        let server = TestServer::start_with(&(fake_config() + &questions::block()));
        Driver::start_python("ag-ui-py", "ag_ui.py", &server, &["asking", "fake"]).finish().await;
    }
}
