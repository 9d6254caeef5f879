//! A slow disk. Output that waits for it stays in the spool: the agent is not blocked, and the server's memory does not
//! grow.

use serde_json::json;

use super::strace::Stage;
use crate::client::{Client, finished};
use crate::follower::Way;
use crate::judge;
use crate::memory::{forget_the_peak, memory_kib, peak_kib};

/// How long each flush takes.
const FLUSH: &str = "delay_enter=250000";
const FLOOD_MIB: usize = 16;
/// More than in the torture tests, because of the followers: what they are sent is in memory, up to
/// `limits.tail_bytes`. It does not grow with the flood: 12 MiB and 48 MiB take the same.
const GROWTH_KIB_MAX: u64 = 48 << 10;
/// With fewer flushes, the flood would not have waited for the disk.
const FLUSHES_MIN: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_takes_its_time_costs_time_and_no_memory_by_strace() {
    let mut stage = Stage::new("a slow disk");
    let command = stage.traced("fsync", FLUSH);
    stage.server.start_by(command).unwrap();
    let (client, folder) = (Client::of(&stage.server), stage.server.folder.path().to_owned());
    // What the server allocates for its first agent is not growth.
    let first = client.launch(&json!({ "deltas": 2000 }), "first").await;
    finished(client.follow(&first, Way::Sse, 1, &folder.join("first"))).await;
    let before = memory_kib(&stage.server);
    forget_the_peak(&stage.server);
    let before_it = stage.faults();

    let printed = folder.join("printed");
    let script = json!({ "mode": "flood", "mib": FLOOD_MIB, "touch": printed });
    let id = client.launch(&script, "flood").await;
    let readers = [Way::Sse, Way::WebSocket].map(|way| {
        let history = folder.join(format!("{way:?}"));
        (client.follow(&id, way, 1, &history), history)
    });
    while !printed.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let told = stage.server.get(&format!("/api/agents/{id}")).await;
    assert_eq!(told["status"], "running", "the agent is done with it before the disk is: {told}");
    let mut views = Vec::new();
    for (reader, history) in readers {
        views.push((finished(reader).await, history));
    }
    let grown = peak_kib(&stage.server).saturating_sub(before);
    let flushes = stage.faults() - before_it;
    println!("{before} KiB before, {grown} KiB more at the highest; {flushes} slow flushes");
    assert!(grown <= GROWTH_KIB_MAX, "{grown} KiB more than {before} KiB");
    assert!(FLUSHES_MIN <= flushes, "only {flushes} flushes were slow");

    let there = client.events(&id).await;
    for (seen, history) in views {
        judge::saw_what_is_there(&seen, &history, &there);
    }
    assert_eq!(stage.server.get(&format!("/api/agents/{id}")).await["status"], "completed");
    assert!(stage.server.stop().success());
    judge::database_is_sound(&stage.server.data_dir(), "a slow disk");
}
