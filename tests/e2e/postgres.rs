//! The data in PostgreSQL instead of SQLite: the same stories, and the death of either side in the middle of a stream.

mod asked_meanwhile;
mod crashes;
mod credentials;
mod failovers;
mod full_disk;
mod hints;
mod homes;
mod launches;
mod leftovers;
mod moving;
pub(crate) mod nodes;
mod one_identity;
mod operator;
mod reading;
mod refusals;
mod slow_database;
mod socket_io;
mod split;
pub(crate) mod storm;
mod takeovers;
mod upgrades;
mod vocabularies;

use std::fmt::Write as _;

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokenrail_test_postgres::{Database, database};
use tokio::runtime::Handle;

use crate::follower::{Follower, Place, Way};
use crate::harness::{TestServer, fake_config, no_process_is_left, numbers, text_of};

const WAYS: [Way; 4] = [Way::Rest, Way::Sse, Way::WebSocket, Way::SocketIo];

/// The scripted agent, and the data in this database.
pub(crate) fn config(database: &Database) -> String {
    let mut config = fake_config();
    write!(
        config,
        "[storage]\nurl = \"{}\"\npassword_file = \"{}\"\n",
        database.url(),
        database.password_file().display()
    )
    .unwrap();
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_launched_and_followed_and_goes_on() {
    let database = database();
    let server = TestServer::start_with(&config(&database));
    let id = server.launch(&json!({ "deltas": 500, "pace_us": 500 })).await;
    let place = Place::of(&server);
    let readers = WAYS.map(|way| {
        let mut follower = Follower::new(place.clone(), &id);
        Handle::current().spawn(async move {
            follower.read_however_often_it_is_cut(way, usize::MAX >> 1).await;
            follower
        })
    });
    server.wait_for_status(&id, "completed").await;
    let events = server.events(&id).await;
    assert_eq!(text_of(&events), numbers(500));
    for reader in readers {
        assert_eq!(reader.await.unwrap().events(), events);
    }

    let body = json!({ "content": json!({ "deltas": 3 }).to_string() });
    let (status, accepted) = server.post(&format!("/api/agents/{id}/messages"), &body).await;
    assert_eq!((status, &accepted["turn"]), (StatusCode::ACCEPTED, &json!(2)));
    server.wait_until(&id, |agent| agent["turn"] == 2 && agent["status"] == "completed").await;
    let later = server.events(&id).await;
    assert_eq!(later[..events.len()], events);
    assert_eq!(text_of(&later[events.len()..]), numbers(3));
    let listed = server.get("/api/agents").await;
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["agentId"]), (1, &json!(id)));
    no_process_is_left(&id).await;
    assert!(!server.data_dir().join("tokenrail.db").exists(), "all of it is in PostgreSQL");
}

#[tokio::test]
async fn everything_is_still_there_after_a_restart() {
    let database = database();
    let mut server = TestServer::start_with(&config(&database));
    let done = server.launch_to_completion(&json!({ "deltas": 20 })).await;
    let cancelled = server.launch(&json!({ "mode": "hang", "deltas": 3 })).await;
    server.wait_until(&cancelled, |agent| 3 < agent["head"].as_u64().unwrap()).await;
    let (status, _) = server.post(&format!("/api/agents/{cancelled}/cancel"), &json!({})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    server.wait_for_status(&cancelled, "cancelled").await;
    let before =
        (server.get("/api/agents").await, server.events(&done).await, server.events(&cancelled).await);
    assert!(server.stop().success());
    server.start_again();
    let after =
        (server.get("/api/agents").await, server.events(&done).await, server.events(&cancelled).await);
    assert_eq!(before, after);
}

#[tokio::test]
async fn the_demo_runs() {
    let database = database();
    let mut server = TestServer::start_with(&config(&database));
    assert!(server.stop().success());
    let output = server.command(&["demo", "--once", "--speed", "0"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    server.start_again();
    let listed = server.get("/api/agents").await;
    let listed: Vec<&Value> = listed.as_array().unwrap().iter().map(|agent| &agent["type"]).collect();
    assert_eq!(listed, ["demo"], "it is saved in the same database");
}

#[tokio::test]
async fn the_password_may_be_in_the_environment_and_agents_do_not_get_it() {
    let database = database();
    let mut server = TestServer::start();
    assert!(server.stop().success());
    let folder = tempfile::tempdir().unwrap();
    server.move_data_to(folder.path());
    server.config = format!("{}[storage]\nurl = \"{}\"\n", fake_config(), database.url());
    let mut command = server.command(&["serve", "--log", "warn"]);
    command.env("PGPASSWORD", database.password());
    server.start_by(command).unwrap();
    let id = server.launch(&json!({ "mode": "hang", "deltas": 3 })).await;
    server.wait_until(&id, |agent| 3 < agent["head"].as_u64().unwrap()).await;
    for pid in crate::harness::processes_of_agent(&id) {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&environment).contains("PGPASSWORD"), "process {pid}");
    }
    server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    server.wait_for_status(&id, "cancelled").await;
}
