//! Letta's two clients, and Kelpie's stream beside them.

use std::path::Path;

use crate::harness::{TestServer, fake_config};
use crate::real_clients::Driver;

/// A server whose agents are scripted, or replay the output of a real agent.
fn start() -> TestServer {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/claude/2.1.330");
    let recorded = |name: &str| {
        let file = fixtures.join(format!("{name}.jsonl"));
        format!(
            "[agents.{name}]\nrunner = \"replay\"\nformat = \"claude\"\ntranscript = \"{}\"\nspeed = 0\n",
            file.display()
        )
    };
    let config = format!(
        "[server]\ndefault_agent = \"fake\"\n[limits]\ncancel_grace_s = 1\n{}{}{}",
        fake_config(),
        recorded("bash_fail"),
        recorded("thinking_partial")
    );
    TestServer::start_with(&config)
}

/// Starts a driver that plays a story with one of the clients.
type Start = fn(&TestServer, &str) -> Driver;

async fn play(start_driver: Start, story: &str) {
    let server = start();
    start_driver(&server, story).finish().await;
}

/// Plays a story with an agent that sends permission requests.
async fn play_question(start_driver: Start) {
    let server = crate::questions::server("");
    start_driver(&server, "question").finish().await;
}

async fn play_over_a_restart(start_driver: Start) {
    let mut server = start();
    let driver = start_driver(&server, "restart");
    driver.finish_over_a_restart(&mut server).await;
}

macro_rules! with_each_client {
    ($($client:ident $start:expr;)*) => {
        $(mod $client {
            use crate::real_clients::Driver;

            #[tokio::test]
            async fn an_agent_is_made_and_shows_text_tools_and_reasoning_in_pieces_and_whole() {
                super::play($start, "talk").await;
            }

            #[tokio::test]
            async fn an_agent_that_crashes_shows_as_an_error() {
                super::play($start, "error").await;
            }

            #[tokio::test]
            async fn a_message_that_is_tried_again_is_said_once() {
                super::play($start, "retry").await;
            }

            #[tokio::test]
            async fn a_cancel_ends_the_run() {
                super::play($start, "cancel").await;
            }

            #[tokio::test]
            async fn who_goes_and_comes_back_in_mid_turn_gets_exactly_the_rest() {
                super::play($start, "resume").await;
            }

            #[tokio::test]
            async fn a_question_of_the_agent_is_shown_and_answered() {
                super::play_question($start).await;
            }

            #[tokio::test]
            async fn a_run_outlives_a_server_that_is_killed() {
                super::play_over_a_restart($start).await;
            }
        })*
    };
}

with_each_client! {
    typescript |server, story| Driver::start("letta", "letta.mjs", server, &[story]);
    python |server, story| Driver::start_python("letta-py", "letta.py", server, &[story]);
}
