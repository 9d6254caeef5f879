//! Servers of one database are upgraded one after the other. There is no older release to upgrade from, so the newer
//! program is this one with one more step of the schema: `TOKENRAIL_TEST_NEXT_SCHEMA`. The older program is this one
//! without it. The storm's clients use servers that are upgraded in `storm/upgrade.rs`.

use std::process::Command;
use std::time::Instant;

use reqwest::StatusCode;
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use tokenrail_test_postgres::{Database, database};
use tokio::runtime::Handle;

use super::WAYS;
use super::nodes::{node, pid_of, until_its_processes_end};
use crate::follower::{Follower, Place};
use crate::harness::{PATIENCE, TestServer, numbers, text_of};

pub(super) fn serve(server: &TestServer, is_newer: bool) -> Command {
    let mut command = server.command(&["serve", "--log", "warn"]);
    if is_newer {
        command.env("TOKENRAIL_TEST_NEXT_SCHEMA", "true");
    }
    command
}

/// Stops it, and starts the newer program on the same folder.
fn upgrade(server: &mut TestServer) {
    assert!(server.stop().success());
    let newer = serve(server, true);
    server.start_by(newer).unwrap();
}

/// Whether what only the older program needs is there.
pub(super) fn has_older(database: &Database) -> bool {
    database.sql("SELECT to_regclass('public.idempotency') IS NOT NULL") == "t"
}

async fn launched(server: &TestServer) -> String {
    let hurry = server.folder.path().join("hurry");
    server.launch(&json!({ "mode": "stream", "deltas": 20_000, "pace_us": 5000, "hurry": hurry })).await
}

/// Until the servers have removed what only the older version needed.
async fn until_removed(database: &Database) {
    let started = Instant::now();
    while has_older(database) {
        assert!(started.elapsed() < PATIENCE, "nobody needs it any more");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_upgraded_one_after_the_other_under_load() {
    let database = database();
    let (mut first, mut second) = (node(&database, "first"), node(&database, "second"));
    let ids = [launched(&first).await, launched(&second).await];
    let mut readers = Vec::new();
    for id in &ids {
        for (at, way) in WAYS.into_iter().enumerate() {
            let mut servers = [&first, &second].map(Place::of).into_iter().cycle().skip(at);
            let mut follower = Follower::new(servers.next().unwrap(), id);
            readers.push(Handle::current().spawn(async move {
                while follower.results() < 2 {
                    if !follower.read(way, usize::MAX >> 1).await {
                        follower.move_to(servers.next().unwrap());
                    }
                }
                follower
            }));
        }
    }
    let grown = async |server: &TestServer| {
        for id in &ids {
            let head = server.get(&format!("/api/agents/{id}")).await["head"].as_u64().unwrap();
            server.wait_until(id, |agent| head + 20 < agent["head"].as_u64().unwrap()).await;
        }
    };
    grown(&first).await;
    upgrade(&mut first);
    assert!(has_older(&database), "the older server needs it");
    grown(&second).await;
    grown(&first).await;
    for (server, id) in [(&first, &ids[1]), (&second, &ids[0])] {
        let body = json!({ "content": json!({ "deltas": 3 }).to_string() });
        let (status, _) = server.post(&format!("/api/agents/{id}/messages"), &body).await;
        assert_eq!(status, StatusCode::ACCEPTED);
    }
    assert!(second.stop().success());
    assert!(has_older(&database), "it may come back as it was");
    let newer = serve(&second, true);
    second.start_by(newer).unwrap();
    until_removed(&database).await;
    grown(&first).await;
    for server in [&first, &second] {
        std::fs::write(server.folder.path().join("hurry"), "").unwrap();
    }
    let ended = |agent: &Value| agent["turn"] == 2 && agent["status"] == "completed";
    for (at, id) in ids.iter().enumerate() {
        first.wait_until(id, ended).await;
        let events = second.events(id).await;
        assert_eq!(text_of(&events), format!("{}{}", numbers(20_000), numbers(3)));
        for reader in readers.drain(..WAYS.len()) {
            let seen = tokio::time::timeout(PATIENCE, reader).await.expect("in time").unwrap();
            assert_eq!(seen.events(), events, "agent {at}");
        }
    }

    assert!(first.stop().success());
    let output = serve(&first, false).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(3) && said.contains("install the newer version"), "{said}");
}

/// It was silent while the others were upgraded, so they did not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_too_old_stops_and_leaves_its_agents_running() {
    let database = database();
    let (mut first, mut second) = (node(&database, "first"), node(&database, "second"));
    let id = second.launch(&json!({ "mode": "hang", "deltas": 3 })).await;
    first.wait_until(&id, |agent| 3 < agent["head"].as_u64().unwrap()).await;
    kill_process(pid_of(&second), Signal::STOP).unwrap();
    first.wait_for_status(&id, "interrupted").await;
    upgrade(&mut first);
    let started = Instant::now();
    while has_older(&database) {
        assert!(started.elapsed() < PATIENCE, "nobody that is there needs it");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    kill_process(pid_of(&second), Signal::CONT).unwrap();
    assert_eq!(second.wait().code(), Some(3));
    assert!(!crate::harness::processes_of_agent(&id).is_empty(), "nobody has ended them");
    let newer = serve(&second, true);
    second.start_by(newer).unwrap();
    until_its_processes_end(&id).await;
    second.launch_to_completion(&json!({ "deltas": 3 })).await;
}
