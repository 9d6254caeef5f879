//! Many readers, many agents, reconnect storms and slow clients. Every reader must see everything, and afterwards the
//! server must hold no more than before. The tests print how long it takes; the benchmark measures it.

use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use crate::client::{Client, finished};
use crate::deaf::Deaf;
use crate::follower::{Follower, Way};
use crate::footprint::Footprint;
use crate::harness::{PATIENCE, TestServer, fake_config, numbers, text_of};
use crate::judge;
use crate::memory::{forget_the_peak, peak_kib};

/// How long the agents speak.
const SECONDS: u64 = 8;
/// The buffer is small, so that one follower is sent several times what the kernel buffers for a client that never
/// reads.
const LIMITS: &str = "[limits]
launches_per_minute = 100000
running_agents = 100
send_timeout_s = 5
send_buffer_bytes = 16384
";

const FOLLOWERS: usize = 1000;
/// The followers that never read.
const STALLED: usize = 100;
const RATE: u64 = 20;
/// The most that the kernel buffers for one client: it doubles the requested size, and counts its own bookkeeping.
const OWED_BYTES_MAX: u64 = 2 * (16 << 10);

const AGENTS: usize = 100;
const AGENT_RATE: u64 = 16;

const STORM: usize = 1000;
/// How many events each client of the storm has missed.
const MISSED: usize = 500;

/// The most additional memory of the server: with followers, with agents, and in a storm.
const FOLLOWERS_KIB_MAX: u64 = 48 << 10;
const AGENTS_KIB_MAX: u64 = 64 << 10;
/// For each client that catches up, the web server has a buffer with a piece of 64 KiB, which grows by doubling.
const STORM_KIB_MAX: u64 = 160 << 10;

/// A server, after the limit of open files was raised for the clients of these tests.
fn start() -> TestServer {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    TestServer::start_with(&(fake_config() + LIMITS))
}

/// The text of a scripted agent with `count` deltas of `bytes` each.
pub(crate) fn long_numbers(count: u64, bytes: usize) -> String {
    let digits = |number: u64| format!("{number:0>width$}", width = bytes - 1);
    (0..count).flat_map(|number| [digits(number), " ".to_owned()]).collect()
}

/// Checks the peak of the memory since it was reset.
fn check_growth(server: &TestServer, before: &Footprint, most_kib: u64, what: &str) {
    let grown = peak_kib(server).saturating_sub(before.memory_kib);
    println!("{what}: at its highest {grown} KiB more than {}", before.memory_kib);
    assert!(grown < most_kib, "{what}: {grown} KiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_followers_of_whom_a_tenth_never_read() {
    let server = start();
    let before = Footprint::of_rest(&server).await;
    before.comes_back_again_and_again(&server, async |_| fan_out(&server, &before).await).await;
}

async fn fan_out(server: &TestServer, before: &Footprint) {
    let client = Client::of(server);
    forget_the_peak(server);
    let deltas = RATE * SECONDS;
    let id = server.launch(&json!({ "deltas": deltas, "pace_us": 1_000_000 / RATE })).await;
    let mut deaf = Vec::new();
    for index in 0..STALLED {
        deaf.push(Deaf::open(&client.place, &id, [Way::Sse, Way::WebSocket][index % 2]).await);
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
    all_stall(&deaf).await;
    server.wait_until(&id, |agent| agent["endedAt"].is_string()).await;
    let there = client.events(&id).await;
    let events = judge::parsed(&there);
    assert_eq!(text_of(&events), numbers(deltas));
    let there: Vec<&str> = there.iter().map(|event| event.get()).collect();
    for reader in readers {
        assert!(finished(reader).await.bytes() == there, "the same bytes for everybody");
    }
    check_growth(server, before, FOLLOWERS_KIB_MAX, &format!("{FOLLOWERS} followers, {deltas} deltas"));
    for deaf in deaf {
        is_cut_in_the_middle(deaf, &events).await;
    }
}

/// Waits until the kernel buffers of all of them are full. They must never exceed their limit.
async fn all_stall(deaf: &[Deaf]) {
    let started = tokio::time::Instant::now();
    let mut stalled = 0;
    while stalled < deaf.len() {
        let owed = Deaf::owed_bytes(deaf);
        let most = owed.iter().flatten().max().copied().unwrap_or_default();
        assert!(most <= OWED_BYTES_MAX, "{most} bytes lie in the kernel for one");
        // A client that has stalled for long enough is already disconnected.
        stalled = owed.iter().filter(|owed| owed.is_none_or(|bytes| OWED_BYTES_MAX / 4 < bytes)).count();
        assert!(started.elapsed() < PATIENCE, "only {stalled} have stalled: {owed:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn is_cut_in_the_middle(deaf: Deaf, there: &[Value]) {
    let got = deaf.what_it_still_gets().await;
    assert!(got.len() < there.len(), "it was not cut: it has got all {} events", got.len());
    assert!(got == there[..got.len()], "what it has got is the beginning");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_agents_at_once() {
    let mut server = start();
    let before = Footprint::of_rest(&server).await;
    before.comes_back_again_and_again(&server, async |time| many_agents(&server, &before, time).await).await;
    judge::no_process_is_left(&server, 1);
    assert!(server.stop().success());
    judge::database_is_sound(&server.data_dir(), "at the end");
}

async fn many_agents(server: &TestServer, before: &Footprint, time: u32) {
    let client = Client::of(server);
    forget_the_peak(server);
    let deltas = AGENT_RATE * SECONDS;
    let mut agents = Vec::new();
    for number in 0..AGENTS {
        let script = json!({ "deltas": deltas, "pace_us": 1_000_000 / AGENT_RATE });
        let id = client.launch(&script, &format!("{time}-{number}")).await;
        let history = server.folder.path().join(&id);
        agents.push((client.follow(&id, Way::WebSocket, 1, &history), history, id));
    }
    for (reader, history, id) in agents {
        let seen = finished(reader).await;
        let there = client.events(&id).await;
        judge::saw_what_is_there(&seen, &history, &there);
        judge::said_what_was_asked(&there, &[numbers(deltas)], judge::Asked::Whole);
    }
    check_growth(server, before, AGENTS_KIB_MAX, &format!("{AGENTS} agents, {deltas} deltas each"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_that_come_back_at_once_get_what_they_have_missed() {
    let server = start();
    let before = Footprint::of_rest(&server).await;
    before.comes_back_again_and_again(&server, async |time| storm(&server, &before, time).await).await;
}

async fn storm(server: &TestServer, before: &Footprint, time: u32) {
    let client = Client::of(server);
    forget_the_peak(server);
    let gate = server.folder.path().join(format!("gate-{time}"));
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
    check_growth(server, before, STORM_KIB_MAX, "a storm");
    std::fs::write(&gate, "").unwrap();
    server.wait_for_status(&id, "completed").await;
    tokio::time::timeout(Duration::from_secs(30), client.events(&id)).await.expect("it still answers");
}

/// The server is stopped by a signal, so that the result does not depend on its speed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_that_connect_while_the_server_has_no_time_are_all_answered() {
    let server = start();
    let before = Footprint::of_rest(&server).await;
    before.comes_back_again_and_again(&server, async |_| all_wait(&server).await).await;
}

async fn all_wait(server: &TestServer) {
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
