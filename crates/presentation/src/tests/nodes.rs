//! Several nodes on one store, as a client of one of them sees them.

use std::time::Duration;

use actix_web::test::TestRequest;
use serde_json::json;
use tokenrail_domain::{AgentId, NodeId};
use tokenrail_ports::testing::{MemoryBus, MemoryStore, PretendRepository};
use tokenrail_ports::{INodes, NodeState};
use tokio::time::{sleep, timeout};

use super::client::{Client, Heard, serve};
use super::harness::{Answer, Harness, TOKEN};
use super::mcp::{self, tool, wait};
use super::mcp_forms;
use super::socket_io::Io;

/// Two nodes of one store, started. They beat often, and nothing but a test declares one of them lost.
pub(super) async fn two_nodes() -> [Harness; 2] {
    let (first, bus) = (MemoryStore::shared(1), MemoryBus::new(1));
    let second = (first.as_node(NodeId(2)), bus.another());
    [start((first, bus)).await, start(second).await]
}

async fn start(outside: (MemoryStore, MemoryBus)) -> Harness {
    let repository = PretendRepository::default();
    let often = |_: &mut _, limits: &mut tokenrail_application::Limits| {
        limits.nodes.beat = Duration::from_millis(10);
        limits.nodes.lost_after = Duration::from_hours(1);
    };
    let harness = Harness::on(outside, often, None, repository, true);
    harness.service.recover().await.unwrap();
    harness
}

/// Declares the first node lost, and waits until the second one knows.
async fn lose_first([first, second]: &[Harness; 2], agent: AgentId) {
    loop {
        let pulse = second.store.nodes().await.unwrap()[0].pulse;
        if second.store.declare_lost(NodeId::ONLY, pulse).await.unwrap() {
            break;
        }
    }
    first.service.fenced().await;
    let agent = second.store.saved_agent(agent).unwrap();
    while second.service.home_of(&agent).is_none_or(|home| home.node.state != NodeState::Lost) {
        sleep(Duration::from_millis(1)).await;
    }
}

#[actix_web::test]
async fn an_agent_of_a_lost_node_can_be_read_but_accepts_no_message() {
    let nodes = two_nodes().await;
    let [first, second] = &nodes;
    let id = first.launch_to_end("say a").await;
    let messages = format!("/api/agents/{id}/messages");
    let before = first.get(&messages).await.text;
    lose_first(&nodes, id.parse().unwrap()).await;
    let refused = second.post(&messages, r#"{"content":"b"}"#).await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (503, "node_unavailable"), "{refused:?}");
    assert_eq!(second.get(&messages).await.text, before);
}

/// What `wait_for_agent` returns, on a clock that does not wait. Clients give up on a tool that does not return.
async fn wait_in_time(node: &Harness, arguments: &serde_json::Value) -> serde_json::Value {
    tokio::time::pause();
    let waited = timeout(Duration::from_secs(30), tool(node, "wait_for_agent", arguments)).await;
    tokio::time::resume();
    waited.expect("it returns")
}

#[actix_web::test]
async fn a_wait_of_mcp_reads_what_there_is_and_not_for_ever() {
    let nodes = two_nodes().await;
    let [first, second] = &nodes;
    let id = first.launch_to_end("say a").await;
    let arguments = json!({"agent_id": id, "timeout_ms": 0});
    second.store.delay_reads(Duration::from_secs(1));
    let waited = wait_in_time(second, &arguments).await;
    assert_eq!((&waited["reason"], &waited["more"]), (&json!("ended"), &json!(false)), "{waited}");
    assert_ne!(waited["entries"], json!([]));
    second.store.delay_reads(Duration::from_secs(4));
    let waited = wait_in_time(second, &arguments).await;
    assert_eq!((&waited["reason"], &waited["more"]), (&json!("timeout"), &json!(true)), "{waited}");
    assert_eq!((&waited["next_since"], &waited["entries"]), (&json!(0), &json!([])), "{waited}");
}

/// With each further call, the beginning of the turn would take as long again.
#[actix_web::test]
async fn a_wait_of_mcp_goes_on_although_what_the_client_has_cannot_be_read_again_in_time() {
    let nodes = two_nodes().await;
    let [first, second] = &nodes;
    let id = first.launch_to_end("say a").await;
    let head = first.get(&format!("/api/agents/{id}")).await.json()["head"].clone();
    second.store.delay_reads(Duration::from_millis(1800));
    for (since, kinds) in [(json!(1), json!(["text", "turn_end"])), (head.clone(), json!([]))] {
        let arguments = json!({"agent_id": id, "timeout_ms": 0, "since": since});
        let waited = wait_in_time(second, &arguments).await;
        let told: Vec<_> = waited["entries"].as_array().unwrap().iter().map(|entry| &entry["kind"]).collect();
        assert_eq!((json!(told), &waited["next_since"]), (kinds, &head), "{waited}");
        assert_eq!((&waited["reason"], &waited["more"]), (&json!("ended"), &json!(false)), "{waited}");
    }
}

#[actix_web::test]
async fn a_wait_of_mcp_returns_although_the_agent_cannot_be_read_at_its_end() {
    let nodes = two_nodes().await;
    let [first, second] = &nodes;
    let id = first.launch("hang").await;
    let arguments = json!({"agent_id": id, "timeout_ms": 1000});
    let away = async {
        sleep(Duration::from_millis(500)).await;
        second.store.delay_reads(Duration::from_hours(1));
    };
    let (waited, ()) = tokio::join!(wait_in_time(second, &arguments), away);
    assert_eq!((&waited["reason"], &waited["agent"]["agent_id"]), (&json!("timeout"), &json!(id)));
}

#[actix_web::test]
async fn every_node_serves_the_stream_of_an_agent_and_its_end() {
    let nodes = two_nodes().await;
    let [first, second] = &nodes;
    let id = first.launch_to_end("say a").await;
    let path = |query: &str| format!("/v1/stream/agents/{id}/events{query}");
    let [one, other] = [first.get(&path("")).await, second.get(&path("")).await];
    assert_eq!((&one.text, one.header("etag")), (&other.text, other.header("etag")));
    let end = one.header("stream-next-offset").to_owned();
    let (poll, send) = (path(&format!("?offset={end}&live=long-poll")), format!("/api/agents/{id}/messages"));
    let (news, _) = tokio::join!(second.get(&poll), first.post(&send, r#"{"content":"say b"}"#));
    assert_eq!(news.json()[0]["sequenceNumber"], 5, "{news:?}");
    first.ended(&id).await;
    let (follow, agent) = (path(&format!("?offset={end}&live=sse")), format!("/api/agents/{id}"));
    let (streamed, deleted) =
        tokio::join!(second.get(&follow), first.call(TestRequest::delete().uri(&agent)));
    assert_eq!(deleted.status, 204);
    assert!(streamed.text.ends_with("0008\",\"upToDate\":true,\"streamClosed\":true}\n\n"), "{streamed:?}");
}

#[actix_web::test]
async fn clients_of_socket_io_get_news_of_all_agents_at_any_node() {
    let nodes = two_nodes().await;
    let [first, second] = &nodes;
    let served = serve(second);
    let mut io = Io::connect(&served, json!({ "token": TOKEN })).await;
    let (mut id, mut news) = (first.launch_to_end("say a").await, Vec::new());
    while news.last().is_none_or(|last: &String| !last.starts_with("agent:deleted")) {
        let packet = io.packet().await;
        let list: serde_json::Value = serde_json::from_str(packet.strip_prefix("42").unwrap()).unwrap();
        let (name, status) = (list[0].as_str().unwrap(), list[1]["status"].as_str().unwrap_or_default());
        if name == "error" {
            // The node has begun to listen to the other one only now, and may have missed something.
            (id, news) = (first.launch_to_end("say a").await, Vec::new());
            continue;
        }
        if packet.contains(&id) {
            news.push(format!("{name} {status}"));
            if status == "completed" {
                first.call(TestRequest::delete().uri(&format!("/api/agents/{id}"))).await;
            }
        }
    }
    assert!(news[0].starts_with("agent:created"), "{news:?}");
    assert!(news.iter().any(|news| news == "agent:updated completed"), "{news:?}");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn every_node_lists_all_nodes_and_says_which_one_it_is() {
    let nodes = two_nodes().await;
    let node = |id: u64, is_this: bool| {
        let name = format!("node-{id}");
        json!({ "id": id, "name": name, "state": "alive", "version": "0.0.0", "self": is_this })
    };
    for (harness, own) in nodes.iter().zip(1..) {
        let answer = harness.get("/api/nodes").await;
        assert_eq!(answer.json(), json!([node(1, own == 1), node(2, own == 2)]));
        assert_eq!(answer.header("tokenrail-node"), format!("node-{own}"));
        let refused = harness.get("/api/agents/x").await;
        assert_eq!(refused.header("tokenrail-node"), format!("node-{own}"), "errors have it too");
    }
}

#[actix_web::test]
async fn an_agent_says_where_it_is_and_whether_its_node_is_missing() {
    let nodes = two_nodes().await;
    let [first, second] = &nodes;
    let body = r#"{"type":"script","prompt":"say a"}"#;
    let launched = first.post("/api/agents", body).await.json();
    let id = launched["id"].as_str().unwrap();
    first.ended(id).await;
    let places = [format!("/api/agents/{id}"), "/api/agents".to_owned()];
    let shown = async |path: &String| {
        let agent = second.get(path).await.json();
        let agent = if agent.is_array() { agent[0].clone() } else { agent };
        (agent["node"].clone(), agent.get("nodeState").cloned())
    };
    assert_eq!((&launched["node"], launched.get("nodeState")), (&json!("node-1"), None));
    for path in &places {
        assert_eq!(shown(path).await, (json!("node-1"), None), "{path}");
    }
    lose_first(&nodes, id.parse().unwrap()).await;
    for path in &places {
        assert_eq!(shown(path).await, (json!("node-1"), Some(json!("lost"))), "{path}");
    }
}

#[actix_web::test]
async fn a_new_agent_is_told_to_clients_with_its_node() {
    let [first, _second] = &two_nodes().await;
    let served = serve(first);
    let (mut client, _) = Client::connect(&served, "").await;
    client.say("ping", json!({})).await;
    client.frame().await;
    first.launch("say a").await;
    loop {
        let Heard::Frame(frame) = client.hear().await else { panic!("no frame came") };
        if frame["type"] == "agent:created" {
            assert_eq!(frame["payload"]["agent"]["node"], "node-1");
            break;
        }
        if frame["type"] == "error" {
            // A node has joined, so the client may have missed something.
            first.launch("say a").await;
        }
    }
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn on_a_store_of_one_node_nothing_is_told_of_nodes() {
    let harness = Harness::new();
    harness.service.recover().await.unwrap();
    let id = harness.launch_to_end("say a").await;
    let answer = harness.get(&format!("/api/agents/{id}")).await;
    let agent = answer.json();
    assert_eq!((agent.get("node"), agent.get("nodeState")), (None, None));
    assert_eq!(answer.header("tokenrail-node"), "");
    let nodes = harness.get("/api/nodes").await.json();
    assert_eq!((nodes.as_array().unwrap().len(), &nodes[0]["self"]), (1, &json!(true)));
}

async fn forget(harness: &Harness, node: &str) -> Answer {
    harness.call(TestRequest::delete().uri(&format!("/api/nodes/{node}"))).await
}

#[actix_web::test]
async fn only_a_node_that_is_not_alive_can_be_removed() {
    let nodes = two_nodes().await;
    let [first, second] = &nodes;
    let id = first.launch_to_end("say a").await;
    let refused = forget(second, "1").await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (409, "node_alive"), "{refused:?}");
    for unknown in ["3", "0", "x", "-1", "99999999999999999999"] {
        assert_eq!(forget(second, unknown).await.problem(), "not_found", "{unknown}");
    }
    lose_first(&nodes, id.parse().unwrap()).await;
    for _ in 0..2 {
        assert_eq!(forget(second, "1").await.status, 204);
    }
    assert_eq!(second.get("/api/nodes").await.json()[0]["state"], "gone");
}

async fn launch(harness: &Harness, fields: &serde_json::Value) -> Answer {
    let mut body = json!({ "type": "script", "prompt": "say a" });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    harness.post("/api/agents", &body.to_string()).await
}

#[actix_web::test]
async fn a_launch_may_name_its_node() {
    let nodes = two_nodes().await;
    let [first, second] = &nodes;
    // Until its next beat, the first node does not know the second one.
    while launch(first, &json!({ "node": "node-2" })).await.status != 201 {
        sleep(Duration::from_millis(1)).await;
    }
    for node in ["node-2", "2"] {
        let launched = launch(first, &json!({ "node": node })).await;
        assert_eq!((launched.status.as_u16(), &launched.json()["node"]), (201, &json!("node-2")));
        let id = launched.json()["id"].as_str().unwrap().to_owned();
        second.ended(&id).await;
        assert_eq!(first.get(&format!("/api/agents/{id}")).await.json()["cwd"], "/work", "its node made it");
    }
    let unknown = launch(first, &json!({ "node": "node-3" })).await;
    assert_eq!((unknown.status.as_u16(), &*unknown.problem()), (422, "node_unknown"), "{unknown:?}");
    for both in [json!({ "node": "2", "cwd": "/work" }), json!({ "node": "2", "sessionId": "s" })] {
        let refused = launch(first, &both).await;
        assert_eq!(refused.problem(), "validation_failed", "{refused:?}");
        assert_eq!(refused.json()["errors"][0]["pointer"], "/node");
    }
    assert_eq!(launch(first, &json!({ "node": "1", "cwd": "/work" })).await.status, 201);
    for strange in [json!(""), json!(2), json!("x".repeat(201))] {
        let refused = launch(first, &json!({ "node": strange })).await;
        assert_eq!(refused.json()["errors"][0]["pointer"], "/node", "{refused:?}");
    }
    let id = first.launch_to_end("say a").await;
    lose_first(&nodes, id.parse().unwrap()).await;
    let refused = launch(second, &json!({ "node": "node-1" })).await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (503, "node_unavailable"), "{refused:?}");
}

#[actix_web::test]
async fn the_metrics_count_the_nodes_by_state() {
    let nodes = two_nodes().await;
    let [first, second] = &nodes;
    let id = first.launch_to_end("say a").await;
    lose_first(&nodes, id.parse().unwrap()).await;
    let metrics = second.get("/metrics").await.text;
    for line in ["nodes{state=\"alive\"} 1", "nodes{state=\"lost\"} 1", "nodes{state=\"gone\"} 0"] {
        assert!(metrics.contains(&format!("tokenrail_{line}\n")), "{line} in {metrics}");
    }
    assert!(metrics.contains("tokenrail_node_beat_age_seconds 0."), "{metrics}");
}

#[actix_web::test]
async fn any_node_answers_any_request_of_mcp() {
    let [first, second] = &two_nodes().await;
    let id = mcp::launch(first, "ask").await;
    let asked = wait(second, &id, 0).await;
    assert_eq!(asked["reason"], "needs_answer", "{asked}");
    let yes = json!({"agent_id": id, "request_id": "1-1", "option_id": "yes"});
    tool(second, "answer_permission", &yes).await;
    let since = asked["next_since"].as_u64().unwrap();
    let done = wait(second, &id, since).await;
    assert_eq!((&done["reason"], &done["agent"]["status"]), (&json!("ended"), &json!("completed")), "{done}");
    assert_eq!(wait(first, &id, since).await["entries"], done["entries"]);
}

#[actix_web::test]
async fn any_node_asks_the_person_at_an_mcp_client_and_any_node_takes_the_answer() {
    let [first, second] = &two_nodes().await;
    let id = mcp::launch(first, "ask and say hello").await;
    let forms = json!({"elicitation": {}});
    let asked = mcp_forms::wait(second, &id, &json!({}), &forms).await;
    let yes = json!({"action": "accept", "content": {"option_id": "yes"}});
    let done = mcp_forms::wait(first, &id, &mcp_forms::reply(&asked, &yes), &forms).await;
    assert_eq!(done["structuredContent"]["reason"], "ended", "{done}");
}
