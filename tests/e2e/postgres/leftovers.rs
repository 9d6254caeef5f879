//! Agents that are purged while their server is lost.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::json;
use tokenrail_test_postgres::database;

use super::nodes::node;
use crate::harness::{PATIENCE, TestServer};

async fn purge(server: &TestServer, id: &str) {
    let path = format!("/api/agents/{id}?purge=true");
    let answer = server.request(Method::DELETE, &path).send().await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
}

async fn cwd_of(server: &TestServer, id: &str) -> PathBuf {
    server.get(&format!("/api/agents/{id}")).await["cwd"].as_str().unwrap().into()
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < PATIENCE, "it never came to that: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_back_removes_the_folders_of_agents_that_were_purged_meanwhile() {
    let database = database();
    let (mut home, other) = (node(&database, "home"), node(&database, "other"));
    let purged = home.launch_to_completion(&json!({ "deltas": 3 })).await;
    let marked = home.launch(&json!({ "mode": "hang", "deltas": 3 })).await;
    let kept = home.launch_to_completion(&json!({ "deltas": 3 })).await;
    home.wait_until(&marked, |agent| 3 < agent["head"].as_u64().unwrap()).await;
    let (gone, left) =
        ([cwd_of(&home, &purged).await, cwd_of(&home, &marked).await], cwd_of(&home, &kept).await);
    home.kill_9();
    // Nobody knows yet that the home is dead. Another server finishes this when it does.
    purge(&other, &marked).await;
    until("lost", async || other.get("/api/nodes").await[0]["state"] == "lost").await;
    purge(&other, &purged).await;
    for id in [&purged, &marked] {
        until("purged", async || {
            let answer = other.request(Method::GET, &format!("/api/agents/{id}")).send().await.unwrap();
            answer.status() == StatusCode::NOT_FOUND
        })
        .await;
    }
    assert!(gone.iter().all(|folder| folder.exists()), "nobody else can remove them");
    home.start_again();
    until("removed", async || gone.iter().all(|folder| !folder.exists())).await;
    assert!(left.exists(), "its agent was not purged");
    until("forgotten", async || database.sql("SELECT count(*) FROM leftovers") == "0").await;
}
