//! Many readers, many agents, storms and slow clients. What is judged is that everybody sees everything, and that the
//! server holds no more afterwards than before; how long it takes is printed, and measured by the bench.

use std::time::Duration;

use futures_util::SinkExt as _;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, finished};
use crate::follower::{Follower, Place, Socket, Way, connect};
use crate::footprint::{Footprint, memory_kib};
use crate::harness::{PATIENCE, TestServer, fake_config, numbers, text_of};
use crate::judge;

/// How long the agents speak.
const SECONDS: u64 = 8;
const LIMITS: &str = "[limits]\nlaunches_per_minute = 100000\nrunning_agents = 100\nsend_timeout_s = 5\n";

const FOLLOWERS: usize = 1000;
/// Of them, those that never read.
const STALLED: usize = 100;
const RATE: u64 = 20;

const AGENTS: usize = 100;
const AGENT_RATE: u64 = 16;

const STORM: usize = 1000;
/// How many events each of the storm has missed.
const MISSED: usize = 500;

/// What the server may take more than before, with all that is going on.
const GROWTH_KIB_MAX: u64 = 96 << 10;

/// A server, once the limit on open files allows the clients of these tests.
fn start() -> TestServer {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    TestServer::start_with(&(fake_config() + LIMITS))
}

pub(crate) async fn stalled(place: &Place, id: &str) -> Socket {
    let mut socket = connect(place).await.unwrap();
    let subscribe = json!({ "type": "subscribe", "payload": { "agentId": id, "since": 0 } });
    socket.send(Message::text(subscribe.to_string())).await.unwrap();
    socket
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_followers_of_whom_a_tenth_never_read() {
    let server = start();
    let (client, before) = (Client::of(&server), Footprint::of_rest(&server).await);
    let deltas = RATE * SECONDS;
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
    let grown = memory_kib(&server).saturating_sub(before.memory_kib);
    println!("{FOLLOWERS} followers, {deltas} deltas: {grown} KiB more than {}", before.memory_kib);
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB");
    drop(idle);
    before.comes_back(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_agents_at_once() {
    let mut server = start();
    let (client, before) = (Client::of(&server), Footprint::of_rest(&server).await);
    let deltas = AGENT_RATE * SECONDS;
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
    let grown = memory_kib(&server).saturating_sub(before.memory_kib);
    println!("{AGENTS} agents, {deltas} deltas each: {grown} KiB more than {}", before.memory_kib);
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB");
    before.comes_back(&server).await;
    judge::no_process_is_left(&server, 1);
    assert!(server.stop().success());
    judge::database_is_sound(&server.data_dir(), "at the end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_that_come_back_at_once_get_what_they_have_missed() {
    let server = start();
    let (client, before) = (Client::of(&server), Footprint::of_rest(&server).await);
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 3_000, "gate": gate, "gate_after": 2_000 })).await;
    server.wait_until(&id, |agent| 2_000 < agent["head"].as_u64().unwrap()).await;
    let known = client.events(&id).await;
    let seen = known[..known.len() - MISSED].to_vec();
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
    println!("a storm of {STORM} readers, {MISSED} events each, {:?}", started.elapsed());
    std::fs::write(&gate, "").unwrap();
    server.wait_for_status(&id, "completed").await;
    tokio::time::timeout(Duration::from_secs(30), client.events(&id)).await.expect("it still answers");
    before.comes_back(&server).await;
}

/// A server that has no time: it is stopped, so that what is seen does not depend on how fast it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_that_connect_while_the_server_has_no_time_are_all_answered() {
    let server = start();
    let pid = Pid::from_raw(server.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let sockets: Vec<_> = (0..STORM)
        .map(|_| {
            let connecting = TcpStream::connect(server.authority());
            Handle::current().spawn(tokio::time::timeout(PATIENCE, connecting))
        })
        .collect();
    let mut connected = Vec::new();
    for socket in sockets {
        connected.push(socket.await.unwrap().expect("the kernel lets it wait").unwrap());
    }
    kill_process(pid, Signal::CONT).unwrap();
    let request =
        format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.authority());
    for socket in &mut connected {
        socket.write_all(request.as_bytes()).await.unwrap();
    }
    for mut socket in connected {
        let mut answer = String::new();
        tokio::time::timeout(PATIENCE, socket.read_to_string(&mut answer)).await.expect("in time").unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}
