//! Clients are cut again and again while the long turn runs. What they have heard in the end is what a client hears
//! that was never cut.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokenrail_domain::{AgentId, AgentStatus};
use tokenrail_ports::IAgentRepository;
use tokio::time::{Duration, sleep, timeout};

use super::client::serve;
use super::cuts::{after_event, blocks, caught_up, data, joined, read};
use super::dialects::small_batches;
use super::harness::Harness;
use super::journals::{LONG, keep, written};
use super::mcp::tool;
use super::socket_io::Io;
use super::socket_io_cuts::{auth, by_polling, by_websocket, is_event, number};
use super::socket_io_polling::Poller;

/// An agent that plays the long turn. Time passes only while the client waits for the next event, so the client cuts
/// its streams while the turn runs.
async fn playing() -> (Harness, AgentId) {
    let (agent, appends) = written(LONG.1);
    let harness = small_batches();
    keep(&harness.store, &agent, appends).await;
    tokio::time::pause();
    let replay = harness.post(&format!("/api/agents/{}/replay", agent.id), r#"{"speed":1}"#).await.json();
    (harness, replay["agentId"].as_str().unwrap().parse().unwrap())
}

/// Cuts a stream after each block from which it can continue, while the turn runs. All that the client has heard is
/// what the stream contains later. Returns how many cuts there were before the turn had ended.
async fn cut_live(path: impl Fn(AgentId) -> String, after: impl Fn(&str) -> Option<String>) -> usize {
    let (harness, id) = playing().await;
    let path = path(id);
    let (mut heard, mut next, mut live, mut cuts) = (Vec::new(), Some(String::new()), 0, 0);
    while let Some(at) = next {
        let path = format!("{path}{at}");
        let blocks = harness.get_until(&path, |block| after(block).is_some());
        let blocks = timeout(Duration::from_hours(1), blocks).await.unwrap();
        next = blocks.last().and_then(|block| after(block));
        cuts += 1;
        away(cuts).await;
        heard.extend(blocks);
        live += usize::from(harness.store.get(id).await.unwrap().unwrap().status == AgentStatus::Running);
    }
    let whole = blocks(&harness.get(&path).await);
    let same = heard.iter().zip(&whole).take_while(|(one, other)| one == other).count();
    assert_eq!((heard.get(same), heard.len()), (whole.get(same), whole.len()), "{path}: block {same}");
    live
}

fn first_turn(id: AgentId) -> String {
    format!("{}00000001", id.to_string().replace('-', ""))
}

#[actix_web::test]
async fn a_response_continues_after_every_event_while_its_turn_runs() {
    let path = |id| format!("/openai/v1/responses/resp_{}?stream=true", first_turn(id));
    let live = cut_live(path, |block| Some(format!("&starting_after={}", data(block)["sequence_number"])));
    let live = live.await;
    assert!(600 < live, "{live} cuts");
}

#[actix_web::test]
async fn a_chat_completion_continues_after_every_chunk_while_its_turn_runs() {
    let path = |id| {
        format!("/openai/v1/chat/completions/chatcmpl-{}?stream=true&include_usage=true", first_turn(id))
    };
    let after = |block: &str| {
        let (number, _) = block.strip_prefix("id: ")?.split_once('\n')?;
        Some(format!("&starting_after={number}"))
    };
    let live = cut_live(path, after).await;
    assert!(100 < live, "{live} cuts");
}

#[actix_web::test]
async fn a_thread_continues_after_every_event_while_its_turn_runs() {
    let live = cut_live(|id| format!("/ag-ui/threads/{id}?"), |block| Some(after_event(block))).await;
    assert!(600 < live, "{live} cuts");
}

async fn runs(harness: &Harness, id: AgentId) -> bool {
    harness.store.get(id).await.unwrap().unwrap().status.is_active()
}

async fn head(harness: &Harness, id: AgentId) -> usize {
    harness.store.get(id).await.unwrap().unwrap().head.0 as usize
}

/// The client is away for a while now and then, and the turn goes on.
async fn away(cuts: usize) {
    if cuts.is_multiple_of(8) {
        sleep(Duration::from_millis(20)).await;
    }
}

/// The messages of one response, after an offset: by long polling, or the first ones of an event stream.
async fn messages(harness: &Harness, path: &str, polls: bool) -> Vec<String> {
    let lists = if polls {
        vec![harness.get(&format!("{path}long-poll")).await.text]
    } else {
        let is_last = |block: &str| block.starts_with("event: control");
        let blocks = harness.get_until(&format!("{path}sse"), is_last).await;
        let data = blocks.iter().filter_map(|block| block.strip_prefix("event: data\ndata: "));
        data.map(str::to_owned).collect()
    };
    let mut messages = Vec::new();
    // A poll that times out has no body.
    for list in lists.iter().filter(|list| !list.is_empty()) {
        let list: Vec<&RawValue> = serde_json::from_str(list).unwrap();
        messages.extend(list.into_iter().map(|message| message.get().to_owned()));
    }
    messages
}

#[actix_web::test]
async fn the_stream_of_a_journal_continues_after_every_page_while_its_turn_runs() {
    let (harness, id) = playing().await;
    let (mut heard, mut live, mut cuts) = (Vec::new(), 0, 0);
    while runs(&harness, id).await || heard.len() < head(&harness, id).await {
        let path = format!("/v1/stream/agents/{id}/events?offset={:020}&live=", heard.len());
        heard.extend(messages(&harness, &path, cuts % 2 == 0).await);
        cuts += 1;
        live += usize::from(runs(&harness, id).await);
        away(cuts).await;
    }
    assert_eq!(heard, caught_up(&harness, id, 0).await.0);
    assert!(100 < live, "{live} cuts");
}

/// Whether a packet tells something of the journal. Lifecycle events are not repeated after a cut.
fn is_of_journal(packet: &str) -> bool {
    let is_of_lifecycle = |name: &&str| packet.starts_with(&format!("42[\"agent:{name}\""));
    is_event(packet) && !["created", "updated", "deleted"].iter().any(is_of_lifecycle)
}

/// The agent prints the next event of the long turn when the client is gone.
#[actix_web::test]
async fn a_websocket_is_cut_after_every_event_while_the_turn_runs() {
    let harness = small_batches();
    let served = serve(&harness);
    let id = harness.launch("tell by hand").await.parse().unwrap();
    let (mut heard, mut since) = (Vec::new(), 0);
    while runs(&harness, id).await || since < head(&harness, id).await {
        let before = since;
        let mut io = Io::connect(&served, auth(id, since)).await;
        while since == before {
            let packet = io.packet().await;
            if is_of_journal(&packet) {
                since = number(&packet).unwrap_or(since);
                heard.push(packet);
            }
        }
        harness.permits.add_permits(1);
    }
    assert_eq!(heard, by_websocket(&served, auth(id, 0), since).await);
    assert!(300 < since, "{since} cuts");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_client_that_polls_is_cut_after_every_response_while_the_turn_runs() {
    let (harness, id) = playing().await;
    let (mut heard, mut since, mut live, mut cuts) = (Vec::new(), 0, 0, 0);
    while runs(&harness, id).await || since < head(&harness, id).await {
        let (poller, mut packets) = Poller::connect_with(&harness, auth(id, since)).await;
        while !packets.iter().any(|packet| is_of_journal(packet)) {
            packets = poller.poll().await;
        }
        poller.send("1").await;
        heard.extend(packets.into_iter().filter(|packet| is_of_journal(packet)));
        since = heard.last().and_then(|packet| number(packet)).unwrap();
        cuts += 1;
        live += usize::from(runs(&harness, id).await);
        away(cuts).await;
    }
    assert_eq!(heard, by_polling(&harness, auth(id, 0), since, usize::MAX).await.concat());
    assert!(100 < live, "{live} cuts");
}

#[actix_web::test]
async fn entries_continue_after_every_number_while_the_turn_runs() {
    let (harness, id) = playing().await;
    let (mut entries, mut since, mut live, mut calls) = (Vec::new(), json!(0), 0, 0);
    loop {
        // Between two waits, the client reads what is there.
        calls += 1;
        let (name, timeout_ms) =
            if calls % 2 == 0 { ("wait_for_agent", json!(1)) } else { ("read_agent", Value::Null) };
        let arguments = json!({"agent_id": id.to_string(), "since": since, "timeout_ms": timeout_ms});
        let page = tool(&harness, name, &arguments).await;
        entries.extend(page["entries"].as_array().unwrap().iter().cloned());
        since = page["next_since"].clone();
        if page["reason"] == "ended" {
            break;
        }
        live += usize::from(runs(&harness, id).await);
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(joined(entries), joined(read(&harness, id, 0, 200_000).await));
    assert!(100 < live, "{live} cuts");
}

/// The same request again resumes its run. The agent prints an event of the long turn each millisecond.
#[actix_web::test]
async fn a_run_continues_after_every_event_while_it_runs() {
    let harness = small_batches();
    tokio::time::pause();
    let message = json!({"id": "m", "role": "user", "content": "tell"});
    let body = json!({"threadId": "t", "runId": "run-1", "messages": [message]}).to_string();
    let (mut heard, mut at, mut live, mut cuts) = (Vec::new(), String::new(), 0, 0);
    loop {
        let path = format!("/ag-ui/script?{at}");
        let blocks = harness.post_until(&path, &body, |_| true).await;
        let Some(last) = blocks.last() else { break };
        at = after_event(last);
        heard.extend(blocks);
        cuts += 1;
        let agents = harness.get("/api/agents").await.json();
        live += usize::from(agents[0]["status"] == "running");
        away(cuts).await;
    }
    let whole = blocks(&harness.post("/ag-ui/script", &body).await);
    let same = heard.iter().zip(&whole).take_while(|(one, other)| one == other).count();
    assert_eq!((heard.get(same), heard.len()), (whole.get(same), whole.len()), "block {same}");
    assert!(200 < live, "{live} cuts");
}
