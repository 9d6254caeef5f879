//! The client of Durable Streams with the journals of agents.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{TestServer, fake_config, numbers};
use crate::real_clients::{Driver, example, flow, kill_again_and_again, made};

/// The page whose example runs here.
const PAGE: &str = "durable-streams.md";

/// A server whose pages are small, and an agent.
async fn start(script: &Value) -> (TestServer, String) {
    let server = TestServer::start_with(&format!("[limits]\npage_events = 8\n{}", fake_config()));
    let id = server.launch(script).await;
    (server, id)
}

fn drive(server: &TestServer, story: &str, id: &str) -> Driver {
    Driver::start("durable-streams", "durable_streams.mjs", server, &[story, id])
}

#[tokio::test]
async fn a_history_is_read_from_every_offset_and_kept() {
    let (server, id) = start(&json!({ "deltas": 30 })).await;
    server.wait_for_status(&id, "completed").await;
    drive(&server, "history", &id).finish().await;
}

/// Sessions of a real agent: with tools, with a sub-agent, with an answer that was begun again, and with emoji.
#[tokio::test]
async fn a_recorded_history_is_read_from_every_offset() {
    let names = ["many_tools", "subagent_partial", "err_drop_once_slow", "thinking_partial"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/claude/2.1.330");
    let types = names.map(|name| {
        let file = folder.join(name).with_extension("jsonl");
        let runner = "runner = \"replay\"\nformat = \"claude\"\nspeed = 0";
        format!("[agents.{name}]\n{runner}\ntranscript = \"{}\"\n", file.display())
    });
    let server = TestServer::start_with(&format!("[limits]\npage_events = 8\n{}", types.concat()));
    for name in names {
        let id = server.launch_as(name, "go").await;
        server.wait_for_status(&id, "completed").await;
        drive(&server, "history", &id).finish().await;
    }
}

#[tokio::test]
async fn who_comes_at_any_offset_follows_live_and_gets_exactly_the_rest() {
    let gate = tempfile::tempdir().unwrap();
    let gate = gate.path().join("gate");
    let (server, id) = start(&json!({ "deltas": 40, "gate": gate, "gate_after": 20 })).await;
    let driver = drive(&server, "live", &id);
    made(&server.folder.path().join("gate")).await;
    std::fs::write(&gate, "").unwrap();
    driver.finish().await;
}

#[tokio::test]
async fn a_stream_outlives_a_server_that_is_killed_while_it_comes() {
    let (mut server, id) = start(&flow()).await;
    let driver = drive(&server, "restart", &id);
    kill_again_and_again(&mut server).await;
    std::fs::write(server.folder.path().join("restarted"), "").unwrap();
    driver.finish().await;
}

/// Runs the example of the page as it stands there. It must print the text of an agent.
#[tokio::test]
async fn the_example_of_the_page_runs() {
    let (server, id) = start(&json!({ "deltas": 50, "pace_us": 1000 })).await;
    assert_eq!(example("durable-streams", (PAGE, 0), &server, &[&id]).await, numbers(50));
}
