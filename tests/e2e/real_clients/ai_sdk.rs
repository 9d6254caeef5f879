//! The AI SDK: the newest and the oldest release of three versions.

use std::fmt::Write as _;
use std::path::Path;

use crate::harness::{TestServer, fake_config};
use crate::real_clients::Driver;

/// A server whose chats use the scripted agent.
fn start() -> TestServer {
    TestServer::start_with(&format!("[server]\ndefault_agent = \"fake\"\n{}", fake_config()))
}

async fn play(client: &str, story: &str) {
    let server = start();
    Driver::start(client, "ai_sdk.mjs", &server, &[story]).finish().await;
}

/// Plays a story with an agent that sends permission requests.
async fn play_question(client: &str) {
    let server = crate::questions::server("[server]\ndefault_agent = \"asking\"\n");
    let version = major(client);
    Driver::start(client, "ai_sdk.mjs", &server, &["question", version]).finish().await;
}

/// `ai-7-oldest` is version 7.
fn major(client: &str) -> &str {
    client.trim_start_matches("ai-").trim_end_matches("-oldest")
}

async fn play_over_a_restart(client: &str, story: &str) {
    let mut server = start();
    let driver = Driver::start(client, "ai_sdk.mjs", &server, &[story]);
    driver.finish_over_a_restart(&mut server).await;
}

/// The outputs of real agents, each as an agent type that replays it.
async fn play_recordings(client: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/claude/2.1.330");
    let mut names: Vec<String> = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    let mut config =
        String::from("[server]\ndefault_agent = \"fake\"\n[limits]\nlaunches_per_minute = 1000\n");
    config += &fake_config();
    for name in &names {
        let file = folder.join(format!("{name}.jsonl"));
        let _ = write!(
            config,
            "[agents.{name}]\nrunner = \"replay\"\nformat = \"claude\"\ntranscript = \"{}\"\nspeed = 0\n",
            file.display()
        );
    }
    let server = TestServer::start_with(&config);
    let mut agents = Vec::new();
    for name in &names {
        agents.push(format!("{name}={}", server.launch_as(name, "again").await));
    }
    // Read as a client that names no version, its major version, or its exact version.
    let own = match client {
        "ai-7" => "-v7.0.149",
        _ => "",
    };
    let versions = format!(",-v{},{own}", major(client));
    Driver::start(client, "ai_sdk.mjs", &server, &["recordings", &agents.join(","), &versions])
        .finish()
        .await;
}

macro_rules! with_every_version {
    ($($version:ident $client:literal;)*) => {
        $(mod $version {
            #[tokio::test]
            async fn a_chat_shows_text_and_tools_and_goes_on() {
                super::play($client, "talk").await;
            }

            #[tokio::test]
            async fn an_agent_that_crashes_shows_as_an_error() {
                super::play($client, "error").await;
            }

            #[tokio::test]
            async fn a_stop_ends_the_turn() {
                super::play($client, "stop").await;
            }

            #[tokio::test]
            async fn who_goes_and_comes_back_in_mid_turn_misses_nothing() {
                super::play($client, "resume").await;
            }

            #[tokio::test]
            async fn a_message_that_is_sent_again_is_answered_once() {
                super::play($client, "again").await;
            }

            #[tokio::test]
            async fn a_question_of_the_agent_is_shown_and_answered() {
                super::play_question($client).await;
            }

            #[tokio::test]
            async fn a_chat_outlives_a_server_that_is_killed() {
                super::play_over_a_restart($client, "restart").await;
            }

            #[tokio::test]
            async fn a_page_that_is_loaded_again_shows_each_token_once() {
                super::play_over_a_restart($client, "reload").await;
            }

            #[tokio::test]
            async fn recordings_of_real_agents_make_messages_without_a_loose_end() {
                super::play_recordings($client).await;
            }
        })*
    };
}

with_every_version! {
    ai_7 "ai-7";
    ai_6 "ai-6";
    ai_5 "ai-5";
    oldest_7 "ai-7-oldest";
    oldest_6 "ai-6-oldest";
    oldest_5 "ai-5-oldest";
}

/// Features that only version 7 has.
mod ai_7_transports {
    #[tokio::test]
    async fn a_workflow_goes_on_at_the_chunk_where_it_broke_off() {
        super::play("ai-7", "workflow").await;
    }

    #[tokio::test]
    async fn a_websocket_carries_many_chats() {
        super::play("ai-7", "socket").await;
    }
}
