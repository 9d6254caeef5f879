//! `tokenrail move`: from SQLite to PostgreSQL, while agents run.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokenrail_test_postgres::{Database, database};

use super::config;
use super::crashes::{DELTAS, grown, readers, slow_agent};
use crate::harness::{TestServer, fake_config, no_process_is_left, numbers, text_of};

const SERVE: [&str; 3] = ["serve", "--log", "warn"];

/// The command that moves the data of this server.
fn mover(server: &TestServer, database: &Database, more: &[&str]) -> Command {
    let password_file = database.password_file().display().to_string();
    let url = database.url();
    let args = ["move", "--to", &url, "--password-file", &password_file];
    server.command(&[&args[..], more].concat())
}

/// The exit code, standard output and standard error.
fn ran(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn stop(server: &mut TestServer) {
    assert!(server.stop().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_run_on_while_their_data_moves_and_no_reader_notices() {
    let database = database();
    let mut server = TestServer::start();
    let done = server.launch_to_completion(&json!({ "deltas": 50 })).await;
    let before = (server.events(&done).await, server.get(&format!("/api/agents/{done}")).await);
    let id = slow_agent(&server).await;
    let queued = json!({ "content": json!({ "deltas": 3 }).to_string() });
    let (status, _) = server.post(&format!("/api/agents/{id}/messages"), &queued).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let following = readers(&server, &id);
    let head = grown(&server, &id, 0).await;
    stop(&mut server);

    let (code, shown, said) = ran(mover(&server, &database, &[]));
    assert_eq!(code, Some(0), "{said}");
    assert!(shown.contains("moved and verified: 2 agents (1 with an open turn), 3 turns, "), "{shown}");
    let settings: Vec<&str> = shown.lines().skip_while(|line| *line != "[storage]").take(3).collect();
    server.config = format!("{}{}\n", fake_config(), settings.join("\n"));
    server.start_again();

    let mut after = (server.events(&done).await, server.get(&format!("/api/agents/{done}")).await);
    assert!(after.1.as_object_mut().unwrap().remove("node").is_some(), "its server is a node now");
    assert_eq!(after, before);
    grown(&server, &id, head).await;
    std::fs::write(server.folder.path().join("hurry"), "").unwrap();
    server.wait_until(&id, |agent| agent["turn"] == 2 && agent["status"] == "completed").await;
    let events = server.events(&id).await;
    assert_eq!(text_of(&events), numbers(DELTAS) + &numbers(3));
    for reader in following {
        let seen = reader.await.unwrap();
        assert_eq!(seen.events(), events[..seen.events().len()]);
        assert!(usize::try_from(DELTAS).unwrap() < seen.events().len());
    }
    no_process_is_left(&id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_was_used_before_the_move_is_known_after_it() {
    let database = database();
    let mut server = TestServer::start();
    let body = json!({ "type": "fake", "prompt": "{\"deltas\":1}" });
    let launch = async |server: &TestServer| -> Value {
        let request = server.request(Method::POST, "/api/agents").header("idempotency-key", "k-1");
        request.json(&body).send().await.unwrap().json().await.unwrap()
    };
    let first = launch(&server).await["agentId"].clone();
    server.wait_for_status(first.as_str().unwrap(), "completed").await;
    stop(&mut server);
    let (code, shown, said) = ran(mover(&server, &database, &["--json"]));
    assert_eq!(code, Some(0), "{said}");
    let moved: Value = serde_json::from_str(&shown).unwrap();
    let counts =
        ["agents", "openAgents", "turns", "images", "idempotencyKeys", "purged"].map(|name| &moved[name]);
    assert_eq!(counts, [&json!(1), &json!(0), &json!(1), &json!(0), &json!(1), &json!(0)]);
    server.config = config(&database);
    server.start_again();
    assert_eq!(launch(&server).await["agentId"], first);
    assert_eq!(server.get("/api/agents").await.as_array().unwrap().len(), 1);
}

/// Kills the move as soon as it says this.
fn kill_at(server: &TestServer, database: &Database, step: &str) {
    let mut command = mover(server, database, &[]);
    let mut process = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let told = lines.by_ref().map(Result::unwrap).find(|line| line.starts_with(step));
    process.kill().unwrap();
    let status = process.wait().unwrap();
    assert!(told.is_some() && !status.success(), "it was not killed while {step}: {status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_is_killed_is_run_again() {
    let database = database();
    let mut server = TestServer::start();
    let mut agents = Vec::new();
    for _ in 0..4 {
        agents.push(server.launch_to_completion(&json!({ "deltas": 30_000 })).await);
    }
    let mut events = Vec::new();
    for id in &agents {
        events.push(server.events(id).await);
    }
    stop(&mut server);
    for _ in 0..2 {
        kill_at(&server, &database, "copying");
    }
    kill_at(&server, &database, "comparing");
    // The folder still has the data, and no server uses the copy.
    server.start_again();
    assert_eq!(server.events(&agents[0]).await, events[0]);
    stop(&mut server);
    let mut other = TestServer::start();
    stop(&mut other);
    let folder = tempfile::tempdir().unwrap();
    other.move_data_to(folder.path());
    other.config = config(&database);
    let (code, _, said) = ran(other.command(&SERVE));
    assert!(code == Some(1) && said.contains("is not finished; run it again"), "{said}");

    kill_at(&server, &database, "comparing");
    let (code, shown, said) = ran(mover(&server, &database, &[]));
    assert!(code == Some(0) && said.contains("copying again from the beginning"), "{said}");
    assert!(shown.contains("moved and verified: 4 agents, 4 turns, "), "{shown}");
    assert!(said.lines().all(|line| !line.contains('\r')), "plain lines in a pipe: {said}");
    server.config = config(&database);
    server.start_again();
    for (id, events) in agents.iter().zip(&events) {
        assert_eq!(&server.events(id).await, events);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_is_refused_says_what_to_do() {
    let (database, other) = (database(), database());
    let mut server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "deltas": 3 })).await;
    let (code, _, said) = ran(mover(&server, &database, &[]));
    assert!(code == Some(1) && said.contains("is in use by another server; stop it"), "{said}");
    stop(&mut server);
    let with_password = database.url().replacen('@', ":s3cret@", 1);
    let (code, _, said) = ran(server.command(&["move", "--to", &with_password]));
    assert!(code == Some(2) && said.contains("must not contain a password"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
    let (code, _, said) = ran(server.command(&["move", "--to", &database.url()]));
    assert!(code == Some(1) && said.contains("PGPASSWORD"), "{said}");

    // With the variable, and the url in the configuration already.
    write!(server.config, "[storage]\nurl = \"{}\"\n", database.url()).unwrap();
    let mut command = server.command(&["move", "--to", &database.url()]);
    command.env("PGPASSWORD", database.password());
    let (code, shown, said) = ran(command);
    assert!(code == Some(0) && shown.contains("storage.url is already set"), "{said}");
    server.config = config(&database);
    server.start_again();
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "completed");
    stop(&mut server);

    server.config = fake_config();
    for command in [server.command(&SERVE), mover(&server, &other, &[])] {
        let (code, _, said) = ran(command);
        assert!(code == Some(1) && said.contains("is in PostgreSQL; set storage.url"), "{said}");
    }
    // The way back to the state before the move.
    let (code, _, said) = ran(server.command(&["backup", "before"]));
    assert_eq!(code, Some(0), "{said}");
    let back = tempfile::tempdir().unwrap();
    std::fs::rename(server.folder.path().join("before"), back.path().join("data")).unwrap();
    server.move_data_to(back.path());
    server.start_again();
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "completed");
    let mut second = TestServer::start();
    stop(&mut second);
    let (code, _, said) = ran(mover(&second, &database, &[]));
    assert!(code == Some(1) && said.contains("already has agents; create an empty database"), "{said}");
    second.start_again();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corrupt_history_stops_the_move() {
    let database = database();
    let mut server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "deltas": 3 })).await;
    stop(&mut server);
    let file = server.data_dir().join("tokenrail.db");
    let damage = rusqlite::Connection::open(&file).unwrap();
    damage.execute("UPDATE journal SET checksum = 1 WHERE first_seq = 1", []).unwrap();
    drop(damage);
    let (code, _, said) = ran(mover(&server, &database, &[]));
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains(&format!("the stored data of agent {id} is corrupt")), "{said}");
    assert!(said.contains("tokenrail doctor") && said.contains("wrong checksum"), "{said}");
    assert_eq!(database.sql("SELECT count(*) FROM agents"), "0");
}
