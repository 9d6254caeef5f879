//! Socket.IO's clients are cut after every packet, and resume as the page tells them: after the last number that a
//! packet had.

use serde_json::{Value, json};
use tokenrail_domain::AgentId;

use super::client::{Served, serve};
use super::dialects::small_batches;
use super::harness::{Harness, TOKEN};
use super::journals::{LONG, STORIES, keep, written_in_turns};
use super::socket_io::Io;
use super::socket_io_polling::Poller;

/// An agent with a turn for each story. The last of them still runs, so the long turn is in its place.
async fn told() -> (Harness, AgentId, usize) {
    let mut stories = STORIES.map(|(_, story)| story);
    stories[STORIES.len() - 1] = LONG.1;
    let (agent, appends) = written_in_turns(1, &stories);
    let head = appends.iter().map(|append| append.events.len()).sum();
    let harness = small_batches();
    keep(&harness.store, &agent, appends).await;
    (harness, agent.id, head)
}

/// What a client sends to get everything after a number.
pub(super) fn auth(id: AgentId, since: usize) -> Value {
    json!({ "token": TOKEN, "since": { id.to_string(): since } })
}

/// Whether a packet tells something of an agent.
pub(super) fn is_event(packet: &str) -> bool {
    packet.starts_with("42[\"agent:")
}

/// The number that a packet has, if it has one.
pub(super) fn number(packet: &str) -> Option<usize> {
    let event: Value = serde_json::from_str(&packet[2..]).unwrap();
    event[1]["sequence"].as_u64().map(|number| number as usize)
}

/// The packets of a WebSocket after a number, up to the last one of the journal.
pub(super) async fn by_websocket(served: &Served, auth: Value, head: usize) -> Vec<String> {
    let mut io = Io::connect(served, auth).await;
    let mut packets: Vec<String> = Vec::new();
    while packets.last().is_none_or(|packet| number(packet) != Some(head)) {
        packets.push(io.packet().await);
        let _ = packets.pop_if(|packet| !is_event(packet));
    }
    packets
}

/// The same by polling: the packets of each response, but of at most so many responses.
pub(super) async fn by_polling(harness: &Harness, auth: Value, head: usize, most: usize) -> Vec<Vec<String>> {
    let (poller, mut packets) = Poller::connect_with(harness, auth).await;
    let mut responses: Vec<Vec<String>> = Vec::new();
    loop {
        let events: Vec<String> = packets.into_iter().filter(|packet| is_event(packet)).collect();
        let is_last = events.last().is_some_and(|packet| number(packet) == Some(head));
        responses.extend((!events.is_empty()).then_some(events));
        if is_last || responses.len() == most {
            break;
        }
        packets = poller.poll().await;
    }
    poller.send("1").await;
    responses
}

/// Checks that each event has its number once, in order, and that what only follows from an event has none.
fn check(whole: &[String], head: usize) {
    let (numbered, others): (Vec<_>, Vec<_>) = whole.iter().partition(|packet| number(packet).is_some());
    let numbers: Vec<_> = numbered.iter().filter_map(|packet| number(packet)).collect();
    assert_eq!(numbers, (1..=head).collect::<Vec<_>>());
    assert!(numbered.iter().all(|packet| packet.contains("\"agent:message\"")));
    for name in ["\"agent:status\"", "\"agent:error\"", "\"agent:complete\""] {
        assert!(others.iter().any(|packet| packet.contains(name)), "{name}");
    }
}

/// Where a client is that was cut after some packets: its last number, and how many of its packets that comes with.
fn last_number(packets: &[String]) -> (usize, usize) {
    let with_number = |(at, packet): (usize, &String)| Some((number(packet)?, at + 1));
    packets.iter().enumerate().rev().find_map(with_number).unwrap_or_default()
}

/// A client that was cut gets everything after the last number again. So it misses no packet, and no event comes twice.
#[actix_web::test]
async fn a_websocket_that_is_cut_after_any_packet_loses_nothing() {
    let (harness, id, head) = told().await;
    let served = serve(&harness);
    let whole = by_websocket(&served, auth(id, 0), head).await;
    check(&whole, head);
    let mut resumed = None;
    for cut in 1..whole.len() {
        let (since, begin) = last_number(&whole[..cut]);
        // Packets without a number change nothing.
        if resumed.replace(since) != Some(since) {
            let rest = by_websocket(&served, auth(id, since), head).await;
            assert_eq!(rest, whole[begin..], "after {since}");
        }
    }
    served.handle.stop(false).await;
}

/// A client gets a response whole or not at all. So no packet comes twice either.
#[actix_web::test]
async fn a_client_that_polls_and_is_cut_after_any_packet_loses_nothing() {
    let (harness, id, head) = told().await;
    let responses = by_polling(&harness, auth(id, 0), head, usize::MAX).await;
    for response in &responses {
        let last = response.last().unwrap();
        assert!(number(last).is_some(), "the number of an event is in the response: {last}");
    }
    let whole = responses.concat();
    check(&whole, head);
    let mut resumed = None;
    for cut in 1..whole.len() {
        let (since, begin) = last_number(&whole[..cut]);
        if resumed.replace(since) != Some(since) {
            // What follows the first responses does not depend on the cut, so it is read for some cuts only.
            let responses = if since % 8 == 0 { usize::MAX } else { 2 };
            let rest = by_polling(&harness, auth(id, since), head, responses).await.concat();
            let end = if responses == 2 { begin + rest.len() } else { whole.len() };
            assert_eq!(rest, whole[begin..end], "after {since}");
        }
    }
}
