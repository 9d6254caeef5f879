//! Kills in the middle of a stream. No reader loses an event, and none gets one twice.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokenrail_test_postgres::{Flush, Replication, Server};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::{WAYS, config};
use crate::follower::{Follower, Place};
use crate::harness::{PATIENCE, TestServer, no_process_is_left, numbers, text_of};

pub(super) const DELTAS: u64 = 20_000;
const KILLS: usize = 5;

/// An agent that says [`DELTAS`] numbers, until the file `hurry` exists slowly enough that it outlives all kills.
pub(super) async fn slow_agent(server: &TestServer) -> String {
    let hurry = server.folder.path().join("hurry");
    server.launch(&json!({ "mode": "stream", "deltas": DELTAS, "pace_us": 5000, "hurry": hurry })).await
}

/// One reader for each way, which reconnects until it has seen the end of the turn.
pub(super) fn readers(server: &TestServer, id: &str) -> Vec<JoinHandle<Follower>> {
    let place = Place::of(server);
    let read = |way| {
        let mut follower = Follower::new(place.clone(), id);
        Handle::current().spawn(async move {
            while follower.results() == 0 {
                if !follower.read(way, usize::MAX >> 1).await {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            follower
        })
    };
    WAYS.into_iter().map(read).collect()
}

/// Waits until new events have been saved, so that a kill hits an active stream. Returns the newest number. A request
/// may fail while the database is away.
pub(super) async fn grown(server: &TestServer, id: &str, before: u64) -> u64 {
    let started = Instant::now();
    loop {
        let answer = server.request(Method::GET, &format!("/api/agents/{id}")).send().await.unwrap();
        if answer.status() == StatusCode::OK {
            let agent: Value = answer.json().await.unwrap();
            let head = agent["head"].as_u64().unwrap();
            if before + 20 < head {
                return head;
            }
        }
        assert!(started.elapsed() < PATIENCE, "nothing is saved after {before}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Lets the agent finish, and compares all that the readers saw with what is saved.
async fn nothing_is_lost_or_doubled(server: &TestServer, id: &str, readers: Vec<JoinHandle<Follower>>) {
    std::fs::write(server.folder.path().join("hurry"), "").unwrap();
    server.wait_for_status(id, "completed").await;
    let events = server.events(id).await;
    assert_eq!(text_of(&events), numbers(DELTAS));
    for reader in readers {
        let seen = tokio::time::timeout(PATIENCE, reader).await.expect("in time").unwrap();
        assert_eq!(seen.events(), events);
    }
    no_process_is_left(id).await;
}

async fn wait_for_readiness(server: &TestServer, expected: StatusCode) {
    let started = Instant::now();
    loop {
        let answer = server.request(Method::GET, "/readyz").send().await.unwrap();
        let health = server.request(Method::GET, "/healthz").send().await.unwrap();
        assert_eq!(health.status(), StatusCode::OK, "it asks no database");
        if answer.status() == expected {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "/readyz stays {}", answer.status());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_outlives_the_server() {
    let database = tokenrail_test_postgres::database();
    let mut server = TestServer::start_with(&config(&database));
    let id = slow_agent(&server).await;
    let readers = readers(&server, &id);
    let mut head = 0;
    for kill in 0..KILLS {
        head = grown(&server, &id, head).await;
        server.kill_and_start_again();
        assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "running", "after kill {kill}");
    }
    nothing_is_lost_or_doubled(&server, &id, readers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_outlives_its_database() {
    let postgres = Server::start(Flush::On);
    let database = postgres.database();
    let server = TestServer::start_with(&config(&database));
    wait_for_readiness(&server, StatusCode::OK).await;
    let id = slow_agent(&server).await;
    let readers = readers(&server, &id);
    let mut head = 0;
    let ends: [fn(&Server); KILLS] =
        [Server::kill_9, Server::stop_immediately, Server::kill_9, Server::stop, Server::kill_9];
    for end in ends {
        head = grown(&server, &id, head).await;
        end(&postgres);
        wait_for_readiness(&server, StatusCode::SERVICE_UNAVAILABLE).await;
        postgres.start_again();
        wait_for_readiness(&server, StatusCode::OK).await;
    }
    nothing_is_lost_or_doubled(&server, &id, readers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_ended_by_an_administrator_lose_nothing() {
    let postgres = Server::start(Flush::Off);
    let database = postgres.database();
    let server = TestServer::start_with(&config(&database));
    let id = slow_agent(&server).await;
    let readers = readers(&server, &id);
    let mut head = 0;
    for _ in 0..KILLS {
        head = grown(&server, &id, head).await;
        assert_ne!(postgres.end_connections(&database), 0);
    }
    wait_for_readiness(&server, StatusCode::OK).await;
    nothing_is_lost_or_doubled(&server, &id, readers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_outlives_server_and_database_together() {
    let postgres = Server::start(Flush::On);
    let database = postgres.database();
    let mut server = TestServer::start_with(&config(&database));
    let id = slow_agent(&server).await;
    let readers = readers(&server, &id);
    let mut head = 0;
    for _ in 0..3 {
        head = grown(&server, &id, head).await;
        postgres.kill_9();
        server.kill_9();
        postgres.start_again();
        server.start_again();
    }
    nothing_is_lost_or_doubled(&server, &id, readers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_synchronous_failover_loses_nothing() {
    let primary = Server::start(Flush::Off);
    let database = primary.database();
    let standby = primary.standby(Replication::Synchronous);
    let both = format!("{},{}", primary.address(), standby.address());
    let config = config(&database).replace(&primary.address(), &both);
    let config =
        config.replace(database.name(), &format!("{}?target_session_attrs=read-write", database.name()));
    let server = TestServer::start_with(&config);
    let id = slow_agent(&server).await;
    let readers = readers(&server, &id);
    let head = grown(&server, &id, 0).await;
    primary.kill_9();
    standby.promote();
    grown(&server, &id, head).await;
    nothing_is_lost_or_doubled(&server, &id, readers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_requires_a_standby_is_ready_only_with_one() {
    let postgres = Server::start(Flush::Off);
    let database = postgres.database();
    let server = TestServer::start_with(&format!("{}durability = \"replicated\"\n", config(&database)));
    wait_for_readiness(&server, StatusCode::SERVICE_UNAVAILABLE).await;
    let standby = postgres.standby(Replication::Synchronous);
    wait_for_readiness(&server, StatusCode::OK).await;
    server.launch_to_completion(&json!({ "deltas": 3 })).await;
    drop(standby);
    wait_for_readiness(&server, StatusCode::SERVICE_UNAVAILABLE).await;
    // Nobody waits for a standby then, but none is there.
    postgres.set_synchronous("");
    wait_for_readiness(&server, StatusCode::SERVICE_UNAVAILABLE).await;
}
