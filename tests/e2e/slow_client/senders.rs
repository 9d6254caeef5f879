//! Clients that send something, get a stream for it, and stop reading.

use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::stalled::post;
use super::{AGENT_BYTES, LONG, OWED_DELTAS, STALLED, STALLED_BYTES, has_begun, held_more, resident_bytes};
use crate::follower::Place;
use crate::harness::{TestServer, fake_config};

/// What is sent. Whoever sends the same again gets the stream of the same turn.
#[derive(Debug, Clone, Copy)]
enum Request {
    /// A run of AG-UI.
    Run,
    /// A response of OpenAI that is streamed while it is created.
    Response,
    /// A chat completion of OpenAI.
    ChatCompletion,
    /// A subscription of MCP to the transcript of an agent, which is launched for it.
    Subscription,
}

impl Request {
    async fn send(self, place: &Place, name: &str, prompt: &str) -> TcpStream {
        match self {
            Self::Run => {
                let said = json!([{ "id": "m", "role": "user", "content": prompt }]);
                let body = json!({ "threadId": name, "runId": name, "messages": said });
                post(place, "/ag-ui/fake", "", &body).await
            }
            Self::Response => {
                let body = json!({ "model": "fake", "input": prompt, "stream": true });
                let key = format!("idempotency-key: {name}\r\n");
                post(place, "/openai/v1/responses", &key, &body).await
            }
            Self::ChatCompletion => {
                let said = json!([{ "role": "user", "content": prompt }]);
                let body = json!({ "model": "fake", "messages": said, "stream": true });
                let key = format!("idempotency-key: {name}\r\n");
                post(place, "/openai/v1/chat/completions", &key, &body).await
            }
            Self::Subscription => {
                let transcript = format!(
                    "tokenrail://agents/{}/transcript",
                    newest(place).await["agentId"].as_str().unwrap()
                );
                let about = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
                let wish = json!({ "resourceSubscriptions": [transcript] });
                let params = json!({ "notifications": wish, "_meta": about });
                let body =
                    json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params });
                let head = "mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n";
                post(place, "/mcp", head, &body).await
            }
        }
    }
}

/// The agent that was launched last.
async fn newest(place: &Place) -> Value {
    let url = format!("http://{}/api/agents?limit=1", place.authority);
    let listed = place.http.get(url).bearer_auth(&place.token).send().await.unwrap();
    let mut listed: Vec<Value> = serde_json::from_str(&listed.text().await.unwrap()).unwrap();
    listed.remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_have_sent_something_and_stop_reading_hold_only_a_page() {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nsend_timeout_s = 3600\n"));
    let place = Place::of(&server);
    for request in [Request::Run, Request::Response, Request::ChatCompletion, Request::Subscription] {
        // The first client pays what such a stream costs once.
        let _first = owed(&server, &place, request, 1).await;
        let before = resident_bytes(server.pid());
        let _stalled = owed(&server, &place, request, STALLED).await;
        let most = AGENT_BYTES + STALLED as u64 * STALLED_BYTES;
        let grown = held_more(server.pid(), before, most).await;
        println!("{request:?}: {} KiB more", grown / 1024);
        assert!(grown < most, "{request:?}: {grown} bytes more, and {most} are allowed");
    }
}

/// Clients that have sent the same, and do not read what the agent says to its end.
async fn owed(server: &TestServer, place: &Place, request: Request, count: usize) -> Vec<TcpStream> {
    let name = format!("{request:?}-{count}");
    let gate = server.folder.path().join(format!("gate-{name}"));
    let script = json!({ "deltas": OWED_DELTAS, "gate": gate, "gate_after": 10 });
    if let Request::Subscription = request {
        server.launch(&script).await;
    }
    let mut stalled = Vec::new();
    for _ in 0..count {
        stalled.push(has_begun(request.send(place, &name, &script.to_string()).await).await);
    }
    let id = newest(place).await["agentId"].as_str().unwrap().to_owned();
    std::fs::write(&gate, "").unwrap();
    let agent = server.wait_within(LONG, &id, |agent| agent["status"] == "completed").await;
    assert!(agent["turn"] == 1 && OWED_DELTAS < agent["head"].as_u64().unwrap(), "one turn for all: {agent}");
    stalled
}
