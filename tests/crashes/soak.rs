//! Everything at once, repeatedly, with light faults, for `TOKENRAIL_TEST_SOAK_S` seconds: readers that vanish or never
//! read, cancels, purges, and a database that another process locks. The checks are those of the short tests, and that
//! nothing grows with time.

use std::fs;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::client::{Client, finished};
use crate::deaf::Deaf;
use crate::follower::{Follower, Way};
use crate::footprint::Footprint;
use crate::harness::{TestServer, fake_config, numbers};
use crate::judge;
use crate::load::long_numbers;
use crate::memory::memory_kib;

/// The duration in seconds, unless the variable is set.
const SECONDS: u64 = 12;
/// The server keeps the data of a client that never reads for `send_timeout_s`. So memory rises for that long, and is
/// compared only afterwards.
const RISE: Duration = Duration::from_secs(6);
const LIMITS: &str = "[limits]
launches_per_minute = 1000000
send_timeout_s = 5
wal_bytes = 4194304
tails_bytes = 16777216
";
/// The size of the log: its limit, and what is written while it is checkpointed.
const WAL_BYTES_MAX: u64 = 4 * (4 << 20);
const AGENTS: usize = 9;
const DELTAS: u64 = 200;
/// The size of each delta of the agent with a client that never reads.
const DELTA_BYTES: usize = 2048;
/// One of this many rounds has a locked database.
const LOCKED_EVERY: usize = 4;
/// How much memory may grow from one half of the time to the next, in KiB.
const SLOPE_KIB_MAX: u64 = 16 << 10;
/// How many halves in a row may grow by more. The allocator may take another pool at any time, but a leak continues.
const TIMES: u32 = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_grows_with_time() {
    let seconds =
        std::env::var("TOKENRAIL_TEST_SOAK_S").map_or(SECONDS, |text| text.parse().expect("a number"));
    let mut server = TestServer::start_with(&(fake_config() + LIMITS));
    let before = Footprint::of_rest(&server).await;
    // One-time allocations happen in the first round.
    let mut deaf = vec![round(&server, 0).await];
    let before = before.comes_back(&server).await;
    rounds_for(RISE, &server, &mut deaf).await;
    let half = Duration::from_secs(seconds) / 2;
    let mut first = rounds_for(half, &server, &mut deaf).await;
    let mut times = 0;
    loop {
        let second = rounds_for(half, &server, &mut deaf).await;
        println!("up to {} KiB, then {} KiB", highest(&first), highest(&second));
        if highest(&second) <= highest(&first) + SLOPE_KIB_MAX {
            break;
        }
        times += 1;
        assert!(times < TIMES, "it grows each time, at last from {first:?} to {second:?}");
        first = second;
    }
    // The clients that never read still exist, but the server has closed their connections.
    before.comes_back_again(&server).await;
    let rounds = deaf.len();
    for deaf in deaf {
        let got = deaf.what_it_still_gets().await.len() as u64;
        assert!(got < DELTAS, "of {rounds} who took nothing, one was not cut: it has {got} events");
    }
    judge::no_process_is_left(&server, 1);
    assert!(server.stop().success());
    judge::database_is_sound(&server.data_dir(), "at the end");
}

fn highest(memory_kib: &[u64]) -> u64 {
    memory_kib.iter().copied().max().expect("a round")
}

/// Runs rounds for `time`, at least one. Returns the memory after each, in KiB.
async fn rounds_for(time: Duration, server: &TestServer, deaf: &mut Vec<Deaf>) -> Vec<u64> {
    let (started, mut memory) = (Instant::now(), Vec::new());
    while memory.is_empty() || started.elapsed() < time {
        deaf.push(round(server, deaf.len()).await);
        let log = fs::metadata(server.data_dir().join("tokenrail.db-wal")).map_or(0, |file| file.len());
        assert!(log <= WAL_BYTES_MAX, "round {}: the log has {log} bytes", deaf.len());
        memory.push(memory_kib(server));
    }
    memory
}

/// Some agents speak to readers of every kind. One of three is cancelled, and two of three are purged at the end.
/// Returns a client that never reads.
async fn round(server: &TestServer, number: usize) -> Deaf {
    let client = Client::of(server);
    let mut agents = Vec::new();
    let never = server.folder.path().join("never");
    for index in 0..AGENTS {
        let key = format!("{number}-{index}");
        let mut script = json!({ "deltas": DELTAS, "pace_us": 3000 });
        if index == 0 {
            // More than the kernel buffers for a client that never reads.
            script["delta_bytes"] = json!(DELTA_BYTES);
        }
        if is_cancelled(index) {
            // It cannot end by itself: only the cancel ends it.
            (script["gate"], script["gate_after"]) = (json!(never), json!(DELTAS / 2));
        }
        let id = client.launch(&script, &key).await;
        let way = [Way::Sse, Way::WebSocket, Way::Rest][index % 3];
        let history = server.folder.path().join(&id);
        agents.push((client.follow(&id, way, 1, &history), history, id));
    }
    let way = [Way::Sse, Way::WebSocket][number % 2];
    let deaf = Deaf::open(&client.place, &agents[0].2, way).await;
    let mut fleeting = Follower::new(client.place.clone(), &agents[1].2);
    let fleeting = Handle::current().spawn(async move { fleeting.read(Way::WebSocket, 20).await });
    if number % LOCKED_EVERY == 1 {
        lock_for_a_while(server).await;
    }
    for (_, (_, _, id)) in agents.iter().enumerate().filter(|(index, _)| is_cancelled(*index)) {
        assert_eq!(client.cancel_in_time(id).await, judge::Asked::CancelledInTime);
    }
    for (index, (reader, history, id)) in agents.into_iter().enumerate() {
        let seen = finished(reader).await;
        let there = client.events(&id).await;
        judge::saw_what_is_there(&seen, &history, &there);
        let text = if index == 0 { long_numbers(DELTAS, DELTA_BYTES) } else { numbers(DELTAS) };
        let asked = if is_cancelled(index) { judge::Asked::CancelledInTime } else { judge::Asked::Whole };
        judge::said_what_was_asked(&there, &[text], asked);
        fs::remove_file(&history).unwrap();
        if index % 3 != 0 {
            client.purge(&id).await;
        }
    }
    assert!(fleeting.await.unwrap(), "it has seen what it came for");
    deaf
}

fn is_cancelled(index: usize) -> bool {
    index % 3 == 2
}

/// Another process writes to the database and holds its lock for a while.
async fn lock_for_a_while(server: &TestServer) {
    let database = Connection::open(server.data_dir().join("tokenrail.db")).unwrap();
    database.busy_timeout(Duration::from_secs(5)).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    database.execute_batch("ROLLBACK").unwrap();
}
