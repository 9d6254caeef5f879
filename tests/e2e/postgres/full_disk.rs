//! The disk of the database is full. What agents print waits in their spools, and nothing is lost.

use reqwest::StatusCode;
use serde_json::json;
use tokenrail_test_postgres::{Flush, Server};
use tokio::runtime::Handle;

use super::nodes::node;
use super::{WAYS, config};
use crate::follower::{Follower, Place};
use crate::full_disk::{Mounted, fill, ready, until, write_retries};
use crate::harness::{PATIENCE, TestServer, numbers, text_of};

/// Together, they take several times as long as an agent may wait for its own disk.
const RETRIES: u64 = 6;

/// Only the tables are on the small disk, so PostgreSQL can write its log and does not stop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_of_the_database_delays_and_loses_nothing_with_a_small_disk() {
    let mount = Mounted::tmpfs("size=48m,mode=1777");
    let (postgres, folder) = (Server::start(Flush::Off), mount.0.path().display());
    let database = postgres.database();
    postgres.sql(&format!("COPY (SELECT 1) TO PROGRAM 'mkdir {folder}/tables && cat > /dev/null'"));
    postgres.sql(&format!("CREATE TABLESPACE small LOCATION '{folder}/tables'"));
    postgres.sql(&format!("ALTER DATABASE {} SET TABLESPACE small", database.name()));

    // An agent of SQLite would be ended after that. This disk has no spool.
    let server = TestServer::start_with(&(config(&database) + "[limits]\nfull_disk_wait_s = 1\n"));
    let ballast = mount.0.path().join("ballast");
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 100_000, "gate": gate, "gate_after": 10 })).await;
    server.wait_until(&id, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    fill(&ballast);
    std::fs::write(&gate, "").unwrap();
    until(async || RETRIES < write_retries(&server).await).await;
    // A small one may still fit into pages that are there.
    let prompt = json!({ "say": [incompressible(200_000)] }).to_string();
    let (status, problem) = server.post("/api/agents", &json!({ "type": "fake", "prompt": prompt })).await;
    assert_eq!((status.as_u16(), &problem["code"]), (507, &json!("storage_full")), "{problem}");
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "running");

    std::fs::remove_file(&ballast).unwrap();
    server.wait_for_status(&id, "completed").await;
    assert_eq!(text_of(&server.events(&id).await), numbers(100_000));
    until(async || ready(&server).await == StatusCode::OK).await;
    server.launch_to_completion(&json!({ "deltas": 3 })).await;
}

/// Its log is on the full disk too, so PostgreSQL stops. As usual where something supervises it, it does not start
/// again by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_stops_because_its_disk_is_full_loses_nothing_with_a_small_disk() {
    let mount = Mounted::tmpfs("size=192m,mode=1777");
    let settings = ["restart_after_crash=off", "wal_keep_size=0", "min_wal_size=32MB", "max_wal_size=64MB"];
    let postgres = Server::start_on(mount.0.path(), &settings);
    let database = postgres.database();
    let nodes = [node(&database, "home"), node(&database, "other")];
    let (mut ids, mut readers) = (Vec::new(), Vec::new());
    for home in &nodes {
        let hurry = home.folder.path().join("hurry");
        let id = home.launch(&json!({ "deltas": 20_000, "pace_us": 5000, "hurry": hurry })).await;
        for server in &nodes {
            for way in WAYS {
                let mut follower = Follower::new(Place::of(server), &id);
                readers.push(Handle::current().spawn(async move {
                    while follower.results() == 0 {
                        follower.read(way, usize::MAX >> 1).await;
                    }
                    follower
                }));
            }
            server.wait_until(&id, |agent| 50 < agent["head"].as_u64().unwrap()).await;
        }
        ids.push(id);
    }

    let ballast = mount.0.path().join("ballast");
    fill(&ballast);
    postgres.write_until_it_stops();
    for server in &nodes {
        until(async || ready(server).await == StatusCode::SERVICE_UNAVAILABLE).await;
        let (status, problem) = server.post("/api/agents", &json!({ "type": "fake", "prompt": "{}" })).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{problem}");
    }
    std::fs::remove_file(&ballast).unwrap();
    postgres.start_again();

    for server in &nodes {
        std::fs::write(server.folder.path().join("hurry"), "").unwrap();
    }
    let mut readers = readers.into_iter();
    for id in &ids {
        let mut journals = Vec::new();
        for server in &nodes {
            until(async || ready(server).await == StatusCode::OK).await;
            server.wait_for_status(id, "completed").await;
            journals.push(server.events(id).await);
        }
        assert_eq!(journals[0], journals[1]);
        assert_eq!(text_of(&journals[0]), numbers(20_000));
        for reader in readers.by_ref().take(nodes.len() * WAYS.len()) {
            let seen = tokio::time::timeout(PATIENCE, reader).await.expect("in time").unwrap();
            assert_eq!(seen.events(), journals[0]);
        }
    }
    for server in &nodes {
        server.launch_to_completion(&json!({ "deltas": 3 })).await;
    }
}

/// PostgreSQL compresses long values.
fn incompressible(length: usize) -> String {
    let mut state = 1_u64;
    let digit = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (state >> 59) as u8 % 26)
    };
    (0..length).map(digit).collect()
}
