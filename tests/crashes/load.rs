//! Many readers, many agents, storms and slow clients, for as many seconds as `TOKENRAIL_TEST_LOAD_S` says. What is
//! judged is that everybody sees everything; how long it takes is printed, and measured by the bench.

use std::time::Duration;

use futures_util::SinkExt as _;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::runtime::Handle;
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, finished};
use crate::follower::{Follower, Place, Socket, Way, connect};
use crate::harness::{PATIENCE, TestServer, fake_config, numbers, text_of};
use crate::judge;

/// How long the agents speak, where the variable says nothing.
const SECONDS: u64 = 10;
const LIMITS: &str = "[limits]\nlaunches_per_minute = 100000\nsend_timeout_s = 5\n";

const FOLLOWERS: usize = 200;
/// Of them, those that never read.
const STALLED: usize = 20;
const RATE: u64 = 100;

const AGENTS: usize = 32;
const AGENT_RATE: u64 = 50;

const STORM: usize = 1000;
/// How many events each of the storm has missed.
const MISSED: usize = 500;

/// What the server may take more than before, with all that is going on.
const GROWTH_KIB_MAX: u64 = 96 << 10;

fn seconds() -> u64 {
    std::env::var("TOKENRAIL_TEST_LOAD_S").map_or(SECONDS, |seconds| seconds.parse().expect("a number"))
}

/// A server, once the limit on open files allows the clients of these tests.
fn start() -> TestServer {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    TestServer::start_with(&(fake_config() + LIMITS))
}

fn memory_kib(server: &TestServer) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn stalled(place: &Place, id: &str) -> Socket {
    let mut socket = connect(place).await.unwrap();
    let subscribe = json!({ "type": "subscribe", "payload": { "agentId": id, "since": 0 } });
    socket.send(Message::text(subscribe.to_string())).await.unwrap();
    socket
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_followers_of_whom_a_tenth_never_read() {
    let server = start();
    let (client, before) = (Client::of(&server), memory_kib(&server));
    let deltas = RATE * seconds();
    let id = server.launch(&json!({ "deltas": deltas, "pace_us": 1_000_000 / RATE })).await;
    let mut idle = Vec::new();
    for _ in 0..STALLED {
        idle.push(stalled(&client.place, &id).await);
    }
    let readers: Vec<_> = (STALLED..FOLLOWERS)
        .map(|index| {
            let mut follower = Follower::new(client.place.clone(), &id);
            Handle::current().spawn(async move {
                let way = [Way::Sse, Way::WebSocket][index % 2];
                assert!(follower.read(way, usize::MAX >> 1).await, "nobody who reads is cut");
                follower
            })
        })
        .collect();
    let there = {
        server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
        client.events(&id).await
    };
    assert_eq!(text_of(&judge::parsed(&there)), numbers(deltas));
    let there: Vec<&str> = there.iter().map(|event| event.get()).collect();
    for reader in readers {
        assert!(finished(reader).await.bytes() == there, "the same bytes for everybody");
    }
    let grown = memory_kib(&server).saturating_sub(before);
    println!("{FOLLOWERS} followers, {deltas} deltas: {grown} KiB more than {before}");
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB");
    drop(idle);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_agents_at_once() {
    let mut server = start();
    let (client, before) = (Client::of(&server), memory_kib(&server));
    let deltas = AGENT_RATE * seconds();
    let mut agents = Vec::new();
    for number in 0..AGENTS {
        let script = json!({ "deltas": deltas, "pace_us": 1_000_000 / AGENT_RATE });
        let id = client.launch(&script, &number.to_string()).await;
        let history = server.folder.path().join(&id);
        agents.push((client.follow(&id, Way::WebSocket, 1, &history), history, id));
    }
    for (reader, history, id) in agents {
        let seen = finished(reader).await;
        let there = client.events(&id).await;
        judge::saw_what_is_there(&seen, &history, &there);
        judge::said_what_was_asked(&there, &[numbers(deltas)], judge::Asked::ToTheEnd);
    }
    let grown = memory_kib(&server).saturating_sub(before);
    println!("{AGENTS} agents, {deltas} deltas each: {grown} KiB more than {before}");
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB");
    judge::no_process_is_left(&server, 1);
    assert!(server.stop().success());
    judge::database_is_sound(&server.data_dir(), "at the end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_that_come_back_at_once_get_what_they_have_missed() {
    let server = start();
    let client = Client::of(&server);
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 3_000, "gate": gate, "gate_after": 2_000 })).await;
    server.wait_until(&id, |agent| 2_000 < agent["head"].as_u64().unwrap()).await;
    let known = client.events(&id).await;
    let seen = known[..known.len() - MISSED].to_vec();
    for round in 0..seconds().div_ceil(SECONDS) {
        let started = tokio::time::Instant::now();
        let storm: Vec<_> = (0..STORM)
            .map(|index| {
                let mut follower = Follower::new(client.place.clone(), &id);
                follower.seen.clone_from(&seen);
                Handle::current().spawn(async move {
                    let way = [Way::WebSocket, Way::Sse][index % 2];
                    assert!(follower.read(way, MISSED).await, "nobody is turned away");
                    follower.seen.split_off(follower.seen.len() - MISSED)
                })
            })
            .collect();
        let expected: Vec<&str> = known[known.len() - MISSED..].iter().map(|event| event.get()).collect();
        for reader in storm {
            let got = tokio::time::timeout(4 * PATIENCE, reader).await.expect("in time").unwrap();
            assert!(got.iter().map(|event| event.get()).eq(expected.iter().copied()));
        }
        println!("storm {round}: {STORM} readers, {MISSED} events each, {:?}", started.elapsed());
    }
    std::fs::write(&gate, "").unwrap();
    server.wait_for_status(&id, "completed").await;
    tokio::time::timeout(Duration::from_secs(30), client.events(&id)).await.expect("it still answers");
}
