//! A database whose commits take seconds. What agents print waits in their spools, and the memory of the servers does
//! not grow.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use tokenrail_test_postgres::{Flush, Replication, Server};
use tokio::runtime::Handle;

use super::config;
use super::nodes::node_with;
use crate::follower::{Follower, Place, Way};
use crate::harness::PATIENCE;
use crate::memory::{forget_the_peak, memory_kib, peak_kib};

/// How long each commit waits.
const COMMIT: Duration = Duration::from_secs(2);

/// How many commits wait while the output of the agent is there.
const COMMITS: u32 = 5;

const FLOOD_MIB: usize = 48;

/// Each server keeps so much of what it has saved, for a failover: here less than usual, because it is not what is
/// measured.
const KEPT_BYTES: usize = 1 << 20;

/// As with a slow disk: what readers are sent is in memory. It does not grow with the flood.
const GROWTH_KIB_MAX: u64 = 48 << 10;

/// Commits wait for the standby, and this process sends it what it has to confirm.
const SENDER: &str = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walsender'";

/// Never ends.
async fn be_slow(postgres: &Server, commits: &AtomicU32) {
    loop {
        let stopped = postgres.freeze(SENDER);
        tokio::time::sleep(COMMIT).await;
        drop(stopped);
        commits.fetch_add(1, Ordering::Relaxed);
        // The commits that have waited end.
        tokio::time::sleep(COMMIT / 20).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_takes_seconds_to_commit_costs_time_and_no_memory() {
    let postgres = Server::start(Flush::Off);
    let database = postgres.database();
    let _standby = postgres.standby(Replication::Synchronous);
    let config = format!("{}[cluster]\nfailover_keep_bytes = {KEPT_BYTES}\n", config(&database));
    let servers = ["home", "other"].map(|name| node_with(config.clone(), name));
    let [home, other] = &servers;
    // What a server allocates for its first agent is not growth.
    let first = home.launch(&json!({ "deltas": 2000 })).await;
    for way in [Way::Sse, Way::WebSocket] {
        let mut follower = Follower::new(Place::of(other), &first);
        while follower.results() == 0 {
            follower.read(way, usize::MAX >> 1).await;
        }
    }
    let before = servers.each_ref().map(memory_kib);
    servers.iter().for_each(forget_the_peak);

    let (printed, commits) = (home.folder.path().join("printed"), AtomicU32::new(0));
    let story = async {
        let id = home.launch(&json!({ "mode": "flood", "mib": FLOOD_MIB, "touch": printed })).await;
        let readers = [(home, Way::Sse), (home, Way::WebSocket), (other, Way::Sse)].map(|(server, way)| {
            let mut follower = Follower::new(Place::of(server), &id);
            Handle::current().spawn(async move {
                while follower.results() == 0 {
                    follower.read(way, usize::MAX >> 1).await;
                }
                follower
            })
        });
        while !printed.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let until = commits.load(Ordering::Relaxed) + COMMITS;
        while commits.load(Ordering::Relaxed) < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        (id, readers)
    };
    let (id, readers) = tokio::select! {
        told = story => told,
        () = be_slow(&postgres, &commits) => unreachable!("it never ends"),
    };
    let told = home.get(&format!("/api/agents/{id}")).await;
    assert_eq!(told["status"], "running", "the agent is done before the database is: {told}");
    for (server, before) in servers.iter().zip(before) {
        let grown = peak_kib(server).saturating_sub(before);
        assert!(grown <= GROWTH_KIB_MAX, "{grown} KiB more than {before} KiB");
    }

    let patience = 4 * PATIENCE;
    let ended = home.wait_within(patience, &id, |agent| agent["status"] == "completed").await;
    let head = usize::try_from(ended["head"].as_u64().unwrap()).unwrap();
    let mut all = Vec::new();
    for reader in readers {
        let seen = tokio::time::timeout(patience, reader).await.expect("in time").unwrap();
        assert_eq!(seen.bytes().len(), head, "each event once");
        all.push(seen);
    }
    assert!(all.iter().all(|seen| seen.bytes() == all[0].bytes()), "the same at both servers");
}
