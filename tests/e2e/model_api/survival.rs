//! Cancels, silence, and a server that is killed in the middle.

use serde_json::json;

use super::upstream::{STREAM, Upstream, delta};
use super::{APIS, PIECES, deltas, ended, of_type, server_for, start_with_key};
use crate::harness::{no_process_is_left, outline, text_of};
use crate::model_server::{Gate, ModelServer, Reply};

/// The beginning of an API's response, with this text.
fn begun(api: &str, text: &str) -> Vec<u8> {
    format!("{STREAM}data: {}\n\n", delta(api, text)).into_bytes()
}

#[tokio::test]
async fn a_cancel_closes_the_connection_at_once() {
    for api in APIS {
        let mut upstream = Upstream::start(begun(api, "Half 🙂"), Vec::new(), true).await;
        let server = server_for(&upstream.url, "");
        let id = server.launch_as(api, "Tell me more").await;
        server.wait_until(&id, |agent| 1 < agent["head"].as_u64().unwrap()).await;
        server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
        upstream.until_left().await;
        server.wait_for_status(&id, "cancelled").await;
        assert_eq!(text_of(&server.events(&id).await), "Half 🙂", "{api}");
        no_process_is_left(&id).await;
    }
}

#[tokio::test]
async fn a_cancel_before_the_answer_has_begun_closes_the_connection_too() {
    for api in APIS {
        let mut upstream = Upstream::start(Vec::new(), Vec::new(), true).await;
        let server = server_for(&upstream.url, "");
        let id = server.launch_as(api, "Hi").await;
        upstream.until_asked().await;
        server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
        upstream.until_left().await;
        server.wait_for_status(&id, "cancelled").await;
        no_process_is_left(&id).await;
    }
}

/// The upstream sends `first`, and then nothing more.
async fn silence_ends_the_turn(api: &str, first: Vec<u8>, said: &str) {
    let mut upstream = Upstream::start(first, Vec::new(), true).await;
    let server = server_for(&upstream.url, "[limits]\nidle_timeout_s = 1\n");
    let id = server.launch_as(api, "Hi").await;
    upstream.until_left().await;
    let (agent, events) = ended(&server, &id).await;
    let error = &agent["error"];
    assert_eq!((&agent["status"], &error["class"]), (&json!("failed"), &json!("timeout")), "{api}: {agent}");
    assert_eq!(text_of(&events), said, "{api}");
}

#[tokio::test]
async fn silence_ends_a_turn_after_the_configured_time() {
    for api in APIS {
        silence_ends_the_turn(api, Vec::new(), "").await;
        silence_ends_the_turn(api, STREAM.into(), "").await;
        silence_ends_the_turn(api, begun(api, "Half 🙂"), "Half 🙂").await;
    }
}

#[tokio::test]
async fn an_answer_goes_on_while_the_server_is_killed_and_started_again() {
    for api in APIS {
        let gate = Gate::new();
        let model = ModelServer::start_without_tools([Reply::text(PIECES).gated(&gate)]);
        let mut server = server_for(model.url(), "");
        let id = server.launch_as(api, "Say it all").await;
        for piece in 0..PIECES.len() {
            if piece == 3 {
                // This piece comes while no server runs.
                server.kill_9();
                gate.pass(1);
                start_with_key(&mut server);
            } else {
                gate.pass(1);
            }
            server.wait_until(&id, |agent| piece as u64 + 2 < agent["head"].as_u64().unwrap()).await;
            assert_eq!(deltas(&server.events(&id).await), PIECES[..=piece].concat(), "{api}");
            if piece % 2 == 0 {
                server.kill_9();
                start_with_key(&mut server);
            }
        }
        gate.open();
        let (agent, events) = ended(&server, &id).await;
        assert_eq!(agent["status"], "completed", "{api}: {agent}");
        assert_eq!((text_of(&events), deltas(&events)), (PIECES.concat(), PIECES.concat()), "{api}");
        let expected = ["user_message", "init", "content_delta", "message", "message_delta", "result"];
        assert_eq!(outline(&events), expected, "{api}");
        assert_eq!((of_type(&events, "init").len(), model.requests().len()), (1, 1), "{api}: asked once");
    }
}
