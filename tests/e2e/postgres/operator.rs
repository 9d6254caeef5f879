//! What an operator is told.

use std::process::Command;

use reqwest::{Method, StatusCode};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use tokenrail_test_postgres::{Database, Flush, Replication, Server, database};

use super::config;
use super::nodes::{node, node_with, pid_of};
use crate::harness::{TestServer, fake_config, numbers, program, text_of};

/// A server that has run once, and does not now.
pub(super) fn stopped(config: &str) -> TestServer {
    let mut server = TestServer::start_with(config);
    assert!(server.stop().success());
    server
}

/// The exit code and all output.
pub(super) fn ran(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

fn doctor(database: &Database) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokenrail.toml");
    std::fs::write(&file, format!("[server]\ndefault_agent = \"fake\"\n{}", config(database))).unwrap();
    let mut command = Command::new(program());
    command.args(["doctor", "--listen", "127.0.0.1:0", "--config"]).arg(&file);
    ran(command.arg("--data-dir").arg(folder.path().join("data")).env("HOME", folder.path()))
}

#[test]
fn a_backup_is_the_business_of_pg_dump() {
    let database = database();
    let server = stopped(&config(&database));
    let (code, said) = ran(&mut server.command(&["backup", "copy"]));
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains(&format!("pg_dump --format=custom --file=tokenrail.dump '{}'", database.url())),
        "{said}"
    );
    assert!(!server.folder.path().join("copy").exists());
}

#[tokio::test]
async fn stored_lines_can_be_parsed_again() {
    let database = database();
    let mut server = TestServer::start_with(&config(&database));
    server.launch_to_completion(&json!({ "deltas": 5 })).await;
    assert!(server.stop().success());
    let (code, said) = ran(&mut server.command(&["reparse", "--all"]));
    assert!(code == Some(0) && said.contains("1 agent: no changes"), "{said}");
}

#[test]
fn a_server_says_why_it_cannot_use_the_database() {
    let postgres = Server::start(Flush::Off);
    let database = postgres.database();
    let mut server = stopped(&config(&database));
    let serve = ["serve", "--log", "warn"];
    std::fs::write(database.password_file(), "wrong\n").unwrap();
    let (code, said) = ran(&mut server.command(&serve));
    assert!(code == Some(1) && said.contains("refuses the user \"tokenrail\""), "{said}");
    std::fs::remove_file(database.password_file()).unwrap();
    let (code, said) = ran(&mut server.command(&serve));
    assert!(code == Some(1) && said.contains("storage.password_file"), "{said}");
    std::fs::write(database.password_file(), database.password()).unwrap();
    server.start_again();
    assert!(server.stop().success());
    postgres.stop();
    let (code, said) = ran(&mut server.command(&serve));
    let port = postgres.address().rsplit_once(':').unwrap().1.to_owned();
    assert!(code == Some(1) && said.contains("127.0.0.1") && said.contains(&port), "{said}");
    assert!(!said.contains(database.password()), "{said}");
}

#[test]
fn a_data_folder_stays_with_its_kind_of_database() {
    let database = database();
    let mut server = stopped(&config(&database));
    let serve = ["serve", "--log", "warn"];
    server.config = fake_config();
    let (code, said) = ran(&mut server.command(&serve));
    assert!(code == Some(1) && said.contains("is in PostgreSQL; set storage.url"), "{said}");
    let mut server = stopped(&fake_config());
    server.config = config(&database);
    let (code, said) = ran(&mut server.command(&serve));
    assert!(
        code == Some(1) && said.contains("is in SQLite; remove storage.url from the configuration"),
        "{said}"
    );
}

#[test]
fn doctor_says_what_the_database_survives() {
    let postgres = Server::start(Flush::On);
    let database = postgres.database();
    drop(stopped(&config(&database)));
    let (code, said) = doctor(&database);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("ok      database: PostgreSQL 1"), "{said}");
    assert!(said.contains("does not survive the loss of a machine"), "{said}");
    let standby = postgres.standby(Replication::Synchronous);
    let (code, said) = doctor(&database);
    assert!(code == Some(0) && said.contains("survives the loss of one machine"), "{said}");
    drop(standby);
    postgres.stop();
    let (code, said) = doctor(&database);
    assert!(code == Some(1) && said.contains("error   database: "), "{said}");
    assert!(!said.contains(database.password()), "{said}");
}

#[test]
fn doctor_warns_of_a_database_that_loses_commits() {
    let database = database();
    let (code, said) = doctor(&database);
    assert!(code == Some(1) && said.contains("fsync is off"), "{said}");
}

#[test]
fn doctor_names_agent_types_that_only_some_nodes_have() {
    let database = database();
    let more = format!("{}[agents.mine]\nprogram = \"/bin/cat\"\n", config(&database));
    let (_all, _few) = (node_with(more, "all"), node(&database, "few"));
    let (_, said) = doctor(&database);
    assert!(
        said.contains("warning agent types: nodes have different agent types (few lacks mine)"),
        "{said}"
    );
}

#[test]
fn doctor_says_how_the_database_and_its_nodes_are_doing() {
    let postgres = Server::start(Flush::On);
    let database = postgres.database();
    let (running, mut stopped) = (node(&database, "runs"), node(&database, "stopped"));
    assert!(stopped.stop().success());
    let (code, said) = doctor(&database);
    assert_eq!(code, Some(0), "{said}");
    for expected in [
        ", timeline 1; agents: 0, events: 0",
        "ok      database latency: round trip ",
        " ms, hint between nodes ",
        "ok      oldest snapshot: ",
        "ok      oldest transaction id: 0 million transactions old; PostgreSQL accepts up to about 2,100 million",
        "ok      node runs: alive, version 0.1.0, beat seen",
        "ok      node stopped: away, version 0.1.0",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(!said.contains("replication slots") && !said.contains("agent types"), "{said}");

    kill_process(pid_of(&running), Signal::STOP).unwrap();
    database.sql("REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC");
    postgres.sql("SELECT pg_create_physical_replication_slot('forgotten', true)");
    let (code, said) = doctor(&database);
    kill_process(pid_of(&running), Signal::CONT).unwrap();
    assert_eq!(code, Some(0), "{said}");
    for expected in [
        "warning node runs: alive, version 0.1.0, but no beat while this command ran",
        "a hint (NOTIFY) did not arrive, so clients of other nodes receive events up to 1.5 s late",
        "warning replication slots: 1, unused: 1",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

/// `primary` does not wait for a standby that is away. `auto` does, and acknowledges nothing meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_server_that_wants_no_standby_works_while_it_is_away() {
    let postgres = Server::start(Flush::On);
    let database = postgres.database();
    let standby = postgres.standby(Replication::Synchronous);
    let waits = node(&database, "waits");
    let goes_on = node_with(format!("{}durability = \"primary\"\n", config(&database)), "goes-on");
    standby.stop();
    let launched = goes_on.launch_to_completion(&json!({ "deltas": 3 })).await;
    let launch = json!({ "type": "fake", "prompt": json!({ "deltas": 3 }).to_string() });
    let (status, problem) = waits.post("/api/agents", &launch).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{problem}");
    let answer = goes_on.request(Method::GET, "/readyz").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let output = goes_on.command(&["doctor"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains(
            "warning durability: does not survive the loss of a machine: with storage.durability = \"primary\", commits \
             do not wait for a standby"
        ),
        "{said}"
    );
    standby.start_again();
    let later = waits.launch_to_completion(&json!({ "deltas": 3 })).await;
    for id in [launched, later] {
        assert_eq!(text_of(&goes_on.events(&id).await), numbers(3));
        assert_eq!(waits.events(&id).await, goes_on.events(&id).await);
    }
}
