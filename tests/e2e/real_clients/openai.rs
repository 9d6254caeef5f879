//! OpenAI's two clients with the Responses API and with Chat Completions, and the programs that are built on them.

use std::path::Path;

use crate::harness::{TestServer, fake_config};
use crate::real_clients::{Driver, Example, example, flow, server_of_example, words};

/// The page whose examples run here.
const PAGE: &str = "openai.md";

/// A server whose agents are scripted, or replay the output of a real agent.
fn start() -> TestServer {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/claude/2.1.330");
    let recorded = |name: &str, fixture: &str| {
        let file = fixtures.join(format!("{fixture}.jsonl"));
        format!(
            "[agents.{name}]\nrunner = \"replay\"\nformat = \"claude\"\ntranscript = \"{}\"\nspeed = 0\n",
            file.display()
        )
    };
    let same = ["bash_fail", "thinking_partial", "many_tools", "subagent_partial", "err_drop_once_slow"];
    let config = format!(
        "[server]\ndefault_agent = \"fake\"\n[limits]\ncancel_grace_s = 1\n{}{}{}",
        fake_config(),
        same.map(|name| recorded(name, name)).concat(),
        // The examples of the documentation name it.
        recorded("claude-code", "bash_fail")
    );
    TestServer::start_with(&config)
}

#[tokio::test]
async fn typescript_the_examples_of_the_page_run() {
    let server = start();
    let answer = "The command failed with exit code 3.";
    // The first one prints a line and a stream, the last one a line.
    assert_eq!(example("openai", (PAGE, 0), &server, &[]).await, format!("{answer}\n{answer}"));
    assert_eq!(example("openai", (PAGE, 2), &server, &[]).await, format!("{answer}\n"));
}

#[tokio::test]
async fn typescript_the_example_that_resumes_outlives_its_server() {
    let mut server = server_of_example(&flow());
    let example = Example::start("openai", (PAGE, 1), &server, &[]);
    assert_eq!(example.finish_over_kills(&mut server).await, words().concat());
}

/// Starts a driver that plays a story with one of the clients.
type Start = fn(&TestServer, &str) -> Driver;

async fn play(start_driver: Start, story: &str) {
    let server = start();
    start_driver(&server, story).finish().await;
}

async fn play_over_kills(start_driver: Start, story: &str) {
    let mut server = start();
    let driver = start_driver(&server, story);
    driver.finish_over_kills(&mut server).await;
}

macro_rules! with_each_client {
    ($($client:ident $start:expr;)*) => {
        $(mod $client {
            use crate::real_clients::Driver;

            #[tokio::test]
            async fn a_conversation_of_several_turns_shows_text_tools_and_reasoning() {
                super::play($start, "talk").await;
            }

            #[tokio::test]
            async fn an_agent_that_crashes_and_a_request_that_is_refused_show_as_errors() {
                super::play($start, "error").await;
            }

            #[tokio::test]
            async fn a_cancel_ends_the_response() {
                super::play($start, "cancel").await;
            }

            #[tokio::test]
            async fn who_goes_and_comes_back_in_mid_turn_gets_exactly_the_rest() {
                super::play($start, "resume").await;
            }

            #[tokio::test]
            async fn a_response_outlives_a_server_that_is_killed_while_it_comes() {
                super::play_over_kills($start, "restart").await;
            }

            #[tokio::test]
            async fn chat_completions_show_text_tools_and_errors() {
                super::play($start, "completions").await;
            }

            #[tokio::test]
            async fn who_goes_and_comes_back_gets_exactly_the_rest_of_a_chat_completion() {
                super::play($start, "cut_completions").await;
            }

            #[tokio::test]
            async fn a_chat_completion_outlives_a_server_that_is_killed_while_it_comes() {
                super::play_over_kills($start, "restart_completions").await;
            }
        })*
    };
}

with_each_client! {
    typescript |server, story| Driver::start("openai", "openai.mjs", server, &[story]);
    python |server, story| Driver::start_python("openai-py", "openai.py", server, &[story]);
}

/// Programs that are built on OpenAI's clients.
mod built_on_them {
    use super::start;
    use crate::real_clients::Driver;

    #[tokio::test]
    async fn agents_javascript() {
        Driver::start("openai-agents", "openai_agents.mjs", &start(), &[]).finish().await;
    }

    #[tokio::test]
    async fn agents_python() {
        Driver::start_python("openai-agents-py", "openai_agents.py", &start(), &[]).finish().await;
    }

    #[tokio::test]
    async fn litellm() {
        Driver::start_python("litellm", "litellm.py", &start(), &[]).finish().await;
    }
}
