//! Everything at once, over and over, with light faults, for `TOKENRAIL_TEST_SOAK_S` seconds: readers that vanish or
//! never read, cancels, purges, a database that is locked by somebody else. What is judged is what the short tests
//! judge, and that nothing grows with time.

use std::fs;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::client::{Client, finished};
use crate::follower::{Follower, Way};
use crate::footprint::{Footprint, memory_kib};
use crate::harness::{TestServer, fake_config, numbers};
use crate::judge;
use crate::load::stalled;

/// How long it goes on, in seconds, where the variable says nothing.
const SECONDS: u64 = 12;
const LIMITS: &str = "[limits]
launches_per_minute = 1000000
send_timeout_s = 5
wal_bytes = 4194304
tails_bytes = 16777216
";
/// What the log may have: the limit, and what comes while it is cut.
const WAL_BYTES_MAX: u64 = 4 * (4 << 20);
const AGENTS: usize = 9;
const DELTAS: u64 = 200;
/// One round in so many has a locked database.
const LOCKED_EVERY: usize = 4;
/// What memory may grow from the first half of the time to the second, in KiB.
const SLOPE_KIB_MAX: u64 = 16 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_grows_with_time() {
    let seconds =
        std::env::var("TOKENRAIL_TEST_SOAK_S").map_or(SECONDS, |text| text.parse().expect("a number"));
    let mut server = TestServer::start_with(&(fake_config() + LIMITS));
    let before = Footprint::of_rest(&server).await;
    let (started, time, mut memory) = (Instant::now(), Duration::from_secs(seconds), Vec::new());
    while started.elapsed() < time {
        round(&server, memory.len()).await;
        let log = fs::metadata(server.data_dir().join("tokenrail.db-wal")).map_or(0, |file| file.len());
        assert!(log <= WAL_BYTES_MAX, "round {}: the log has {log} bytes", memory.len());
        memory.push(memory_kib(&server));
    }
    let highest = |rounds: &[u64]| rounds.iter().copied().max().unwrap_or_default();
    let (first, second) = memory.split_at(memory.len() / 2);
    println!("{} rounds in {:?}: {} KiB, then {} KiB", memory.len(), time, highest(first), highest(second));
    assert!(2 <= memory.len(), "there is something to compare");
    assert!(highest(second) <= highest(first) + SLOPE_KIB_MAX, "it grows: {memory:?}");
    before.comes_back(&server).await;
    judge::no_process_is_left(&server, 1);
    assert!(server.stop().success());
    judge::database_is_sound(&server.data_dir(), "at the end");
}

/// Some agents speak to readers of every kind; of three, one is cancelled, and two of three are forgotten at the end.
async fn round(server: &TestServer, number: usize) {
    let client = Client::of(server);
    let mut agents = Vec::new();
    for index in 0..AGENTS {
        let key = format!("{number}-{index}");
        let id = client.launch(&json!({ "deltas": DELTAS, "pace_us": 3000 }), &key).await;
        let way = [Way::Sse, Way::WebSocket, Way::Rest][index % 3];
        let history = server.folder.path().join(&id);
        agents.push((client.follow(&id, way, 1, &history), history, id));
    }
    let deaf = stalled(&client.place, &agents[0].2).await;
    let mut fleeting = Follower::new(client.place.clone(), &agents[1].2);
    let fleeting = Handle::current().spawn(async move { fleeting.read(Way::WebSocket, 20).await });
    if number % LOCKED_EVERY == 1 {
        lock_for_a_while(server).await;
    }
    for (_, _, id) in agents.iter().skip(2).step_by(3) {
        client.cancel(id).await;
    }
    for (index, (reader, history, id)) in agents.into_iter().enumerate() {
        let seen = finished(reader).await;
        let there = client.events(&id).await;
        judge::saw_what_is_there(&seen, &history, &there);
        let asked = if index % 3 == 2 { judge::Asked::AndCancelled } else { judge::Asked::ToTheEnd };
        judge::said_what_was_asked(&there, &[numbers(DELTAS)], asked);
        fs::remove_file(&history).unwrap();
        if index % 3 != 0 {
            client.purge(&id).await;
        }
    }
    assert!(fleeting.await.unwrap(), "it has seen what it came for");
    drop(deaf);
}

/// Somebody else writes to the database, and takes their time.
async fn lock_for_a_while(server: &TestServer) {
    let database = Connection::open(server.data_dir().join("tokenrail.db")).unwrap();
    database.busy_timeout(Duration::from_secs(5)).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    database.execute_batch("ROLLBACK").unwrap();
}
