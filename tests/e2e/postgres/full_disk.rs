//! The disk of the database is full. What agents print waits in their spools, and nothing is lost.

use reqwest::StatusCode;
use serde_json::json;
use tokenrail_test_postgres::{Flush, Server};

use super::config;
use crate::full_disk::{Mounted, fill, ready, until, write_retries};
use crate::harness::{TestServer, numbers, text_of};

/// Only the tables are on the small disk: if PostgreSQL cannot write its log, it stops.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_of_the_database_delays_and_loses_nothing_with_a_small_disk() {
    let mount = Mounted::tmpfs("size=48m,mode=1777");
    let (postgres, folder) = (Server::start(Flush::Off), mount.0.path().display());
    let database = postgres.database();
    postgres.sql(&format!("COPY (SELECT 1) TO PROGRAM 'mkdir {folder}/tables && cat > /dev/null'"));
    postgres.sql(&format!("CREATE TABLESPACE small LOCATION '{folder}/tables'"));
    postgres.sql(&format!("ALTER DATABASE {} SET TABLESPACE small", database.name()));

    let server = TestServer::start_with(&config(&database));
    let ballast = mount.0.path().join("ballast");
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 100_000, "gate": gate, "gate_after": 10 })).await;
    server.wait_until(&id, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    fill(&ballast);
    std::fs::write(&gate, "").unwrap();
    until(async || 0 < write_retries(&server).await).await;
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

/// PostgreSQL compresses long values.
fn incompressible(length: usize) -> String {
    let mut state = 1_u64;
    let digit = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (state >> 59) as u8 % 26)
    };
    (0..length).map(digit).collect()
}
