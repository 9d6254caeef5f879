//! Several servers on one database: a client may ask any of them.

use std::fmt::Write as _;
use std::fs::Permissions;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokenrail_test_postgres::{Database, Flush, Server, database};
use tokio::runtime::Handle;

use super::failovers::metric;
use super::{WAYS, config};
use crate::follower::{Follower, Place};
use crate::harness::{PATIENCE, TestServer, no_process_is_left, numbers, processes_of_agent, text_of};

/// The same on all nodes.
pub(crate) const TOKEN: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// How long a node may be silent here.
pub(crate) const LOST_AFTER_S: u64 = 5;

/// How much later than that the turns of a silent node may end. The others look every second, have to be sure that they
/// are in touch themselves, and end one turn after the other. `application` checks the bound in virtual time.
const ENDED_AFTER_S: u64 = 5;

/// How much longer all of this may take on a busy machine: it runs debug builds of servers and PostgreSQL at once.
const BUSY_S: u64 = 5;

/// A server on this database, with a short patience for silent ones.
pub(super) fn node(database: &Database, name: &str) -> TestServer {
    node_with(config(database), name)
}

/// The same with another configuration of the database.
pub(crate) fn node_with(config: String, name: &str) -> TestServer {
    TestServer::start_with_token(&named(config, name), TOKEN)
}

/// The configuration of a node, with what it says of `[cluster]` already.
pub(crate) fn named(mut config: String, name: &str) -> String {
    let section = if config.contains("[cluster]") { "" } else { "[cluster]\n" };
    write!(config, "{section}name = \"{name}\"\nbeat_s = 1\n").unwrap();
    if !config.contains("lost_after_s") {
        writeln!(config, "lost_after_s = {LOST_AFTER_S}").unwrap();
    }
    config
}

pub(super) fn pid_of(server: &TestServer) -> Pid {
    Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap()
}

/// The outcome and the error code of each turn.
pub(crate) fn results(events: &[Value]) -> Vec<(&str, &str)> {
    let results = events.iter().filter(|event| event["metadata"]["eventType"] == "result");
    results
        .map(|event| {
            let metadata = &event["metadata"];
            (metadata["outcome"].as_str().unwrap_or("-"), metadata["error"]["code"].as_str().unwrap_or("-"))
        })
        .collect()
}

/// Waits until the node of an agent has ended its processes.
pub(crate) async fn until_its_processes_end(id: &str) {
    let started = Instant::now();
    while !processes_of_agent(id).is_empty() {
        assert!(started.elapsed() < PATIENCE, "processes of {id} are left");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits for a server that starts anew.
pub(super) async fn until_it_serves(server: &TestServer) {
    let started = Instant::now();
    while server.request(Method::GET, "/healthz").send().await.is_err() {
        assert!(started.elapsed() < PATIENCE, "it does not serve");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn head_of(server: &TestServer, id: &str) -> u64 {
    server.get(&format!("/api/agents/{id}")).await["head"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_followed_and_goes_on_at_any_node() {
    let database = database();
    let (home, other) = (node(&database, "home"), node(&database, "other"));
    let id = home.launch(&json!({ "deltas": 500, "pace_us": 500 })).await;
    let mut readers = Vec::new();
    for server in [&home, &other] {
        for way in WAYS {
            let mut follower = Follower::new(Place::of(server), &id);
            readers.push(Handle::current().spawn(async move {
                follower.read_however_often_it_is_cut(way, usize::MAX >> 1).await;
                follower
            }));
        }
    }
    other.wait_for_status(&id, "completed").await;
    let events = home.events(&id).await;
    assert_eq!(text_of(&events), numbers(500));
    for reader in readers {
        assert_eq!(reader.await.unwrap().events(), events);
    }
    let body = json!({ "content": json!({ "deltas": 3 }).to_string() });
    let (status, _) = other.post(&format!("/api/agents/{id}/messages"), &body).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    other.wait_until(&id, |agent| agent["turn"] == 2 && agent["status"] == "completed").await;
    assert_eq!(other.events(&id).await, home.events(&id).await);
    no_process_is_left(&id).await;
    for (server, name) in [
        (&home, "tokenrail_database_writes_total"),
        (&home, "tokenrail_database_appends_total"),
        (&home, "tokenrail_hints_sent_total"),
        (&home, "tokenrail_errands_total"),
        (&other, "tokenrail_hints_heard_total"),
        (&other, "tokenrail_gathers_total"),
        (&other, "tokenrail_events_gathered_total"),
    ] {
        assert!(0 < metric(server, name).await, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_cancelled_and_purged_at_any_node() {
    let database = database();
    let (home, other) = (node(&database, "home"), node(&database, "other"));
    let id = home.launch(&json!({ "mode": "hang", "deltas": 3 })).await;
    other.wait_until(&id, |agent| 3 < agent["head"].as_u64().unwrap()).await;
    let (status, _) = other.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    other.wait_for_status(&id, "cancelled").await;
    no_process_is_left(&id).await;
    let agent = home.get(&format!("/api/agents/{id}")).await;
    let cwd = std::path::PathBuf::from(agent["cwd"].as_str().unwrap());
    assert!(cwd.exists());
    let path = format!("/api/agents/{id}?purge=true");
    let answer = other.request(Method::DELETE, &path).send().await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    for server in [&home, &other] {
        let answer = server.request(Method::GET, &format!("/api/agents/{id}")).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    }
    assert!(!cwd.exists(), "its home has removed its folder");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_killed_and_comes_back_loses_nothing() {
    let database = database();
    let (mut home, other) = (node(&database, "home"), node(&database, "other"));
    let hurry = home.folder.path().join("hurry");
    let script = json!({ "mode": "stream", "deltas": 20_000, "pace_us": 5000, "hurry": hurry });
    let id = home.launch(&script).await;
    let readers: Vec<_> = WAYS
        .into_iter()
        .map(|way| {
            let mut follower = Follower::new(Place::of(&other), &id);
            Handle::current().spawn(async move {
                while follower.results() == 0 {
                    follower.read(way, usize::MAX >> 1).await;
                }
                follower
            })
        })
        .collect();
    let mut head = 0;
    for _ in 0..3 {
        head = other.wait_until(&id, |agent| head + 20 < agent["head"].as_u64().unwrap()).await["head"]
            .as_u64()
            .unwrap();
        home.kill_and_start_again();
    }
    std::fs::write(&hurry, "").unwrap();
    other.wait_for_status(&id, "completed").await;
    let events = other.events(&id).await;
    assert_eq!((text_of(&events), results(&events)), (numbers(20_000), vec![("completed", "-")]));
    for reader in readers {
        let seen = tokio::time::timeout(PATIENCE, reader).await.expect("in time").unwrap();
        assert_eq!(seen.events(), events);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_turns_of_a_lost_node_end_and_its_processes_when_it_is_back() {
    let database = database();
    let (mut home, other) = (node(&database, "home"), node(&database, "other"));
    let id = home.launch(&json!({ "mode": "hang", "deltas": 3 })).await;
    let body = json!({ "content": json!({ "deltas": 3 }).to_string() });
    other.wait_until(&id, |agent| 3 < agent["head"].as_u64().unwrap()).await;
    home.post(&format!("/api/agents/{id}/messages"), &body).await;
    home.kill_9();
    let killed = Instant::now();
    other.wait_for_status(&id, "interrupted").await;
    other.wait_until(&id, |agent| agent["queued"] == 0).await;
    let bound = Duration::from_secs(LOST_AFTER_S + ENDED_AFTER_S + BUSY_S);
    assert!(killed.elapsed() < bound, "{:?}", killed.elapsed());
    let events = other.events(&id).await;
    assert_eq!(results(&events), [("interrupted", "node_lost"), ("interrupted", "node_lost")]);
    let (status, problem) = other.post(&format!("/api/agents/{id}/messages"), &body).await;
    assert_eq!((status.as_u16(), &problem["code"]), (503, &json!("node_unavailable")), "{problem}");
    assert!(!processes_of_agent(&id).is_empty(), "nobody could end them");

    home.start_again();
    until_its_processes_end(&id).await;
    assert_eq!(home.events(&id).await, events);
    let started = Instant::now();
    while other.post(&format!("/api/agents/{id}/messages"), &body).await.0 != StatusCode::ACCEPTED {
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    other.wait_until(&id, |agent| agent["turn"] == 3 && agent["status"] == "completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_stopped_for_too_long_saves_nothing_and_goes_on() {
    let database = database();
    let (home, other) = (node(&database, "home"), node(&database, "other"));
    let hurry = home.folder.path().join("hurry");
    let script = json!({ "mode": "stream", "deltas": 20_000, "pace_us": 5000, "hurry": hurry });
    let id = home.launch(&script).await;
    other.wait_until(&id, |agent| 20 < agent["head"].as_u64().unwrap()).await;
    kill_process(pid_of(&home), Signal::STOP).unwrap();
    other.wait_for_status(&id, "interrupted").await;
    let events = other.events(&id).await;
    kill_process(pid_of(&home), Signal::CONT).unwrap();
    until_its_processes_end(&id).await;
    assert_eq!(results(&events), [("interrupted", "node_lost")]);
    until_it_serves(&home).await;
    home.wait_for_status(&id, "interrupted").await;
    assert_eq!(other.events(&id).await, events, "what came late is not saved");
    assert_eq!(home.events(&id).await, events);
    let next = home.launch_to_completion(&json!({ "deltas": 3 })).await;
    assert_eq!(text_of(&other.events(&next).await), numbers(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_server_that_cannot_start_again_ends_its_processes_when_it_is_stopped() {
    let database = database();
    let folder = tempfile::tempdir().unwrap();
    let password_file = folder.path().join("password");
    std::fs::write(&password_file, database.password()).unwrap();
    std::fs::set_permissions(&password_file, Permissions::from_mode(0o600)).unwrap();
    let shared = database.password_file().display().to_string();
    let own = config(&database).replace(&shared, &password_file.display().to_string());
    let (mut home, other) = (node_with(own, "home"), node(&database, "other"));
    let id = home.launch(&json!({ "mode": "hang", "deltas": 3 })).await;
    other.wait_until(&id, |agent| 3 < agent["head"].as_u64().unwrap()).await;
    kill_process(pid_of(&home), Signal::STOP).unwrap();
    other.wait_for_status(&id, "interrupted").await;
    // The connections that are open show the server that it is lost. It cannot open new ones.
    std::fs::write(&password_file, "another password").unwrap();
    kill_process(pid_of(&home), Signal::CONT).unwrap();
    let started = Instant::now();
    while home.request(Method::GET, "/healthz").send().await.is_ok() {
        assert!(started.elapsed() < PATIENCE, "it still serves");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!processes_of_agent(&id).is_empty(), "a server that starts again ends them then");
    assert!(home.stop().success());
    until_its_processes_end(&id).await;
}

/// A server with the configuration of another one and an empty data folder. It does not run.
fn stopped_beside(first: &TestServer) -> (TestServer, TempDir) {
    let mut second = TestServer::start();
    assert!(second.stop().success());
    let folder = tempfile::tempdir().unwrap();
    second.move_data_to(folder.path());
    second.config.clone_from(&first.config);
    (second, folder)
}

/// The same with another one's token and identity.
pub(super) fn copy_of(first: &TestServer) -> (TestServer, TempDir) {
    let (second, folder) = stopped_beside(first);
    second.put_token(TOKEN);
    std::fs::copy(first.data_dir().join("node.id"), second.data_dir().join("node.id")).unwrap();
    (second, folder)
}

#[tokio::test]
async fn a_server_with_another_token_does_not_start_beside_others() {
    let database = database();
    let mut first = node(&database, "first");
    let (mut second, _folder) = stopped_beside(&first);
    let output = second.command(&["serve", "--log", "warn"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("copy the file `token`"), "{said}");
    assert!(first.stop().success());
    second.start_again();
    assert_eq!(second.get("/api/agents").await, json!([]), "nobody else is alive: its token counts now");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_waits_for_others_to_beat_can_be_stopped() {
    let database = database();
    let first = node_with(config(&database) + "[cluster]\nlost_after_s = 600\n", "first");
    let (second, _folder) = stopped_beside(&first);
    kill_process(pid_of(&first), Signal::STOP).unwrap();
    let mut waiting = second.command(&["serve", "--log", "warn"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(waiting.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("checking whether they are running")));
    kill_process(Pid::from_child(&waiting), Signal::TERM).unwrap();
    let stopped = Handle::current().spawn_blocking(move || waiting.wait());
    let status = tokio::time::timeout(PATIENCE, stopped).await.expect("in time").unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    kill_process(pid_of(&first), Signal::CONT).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_servers_with_one_identity_the_first_one_stops() {
    let database = database();
    let mut first = node(&database, "first");
    let (mut second, _folder) = copy_of(&first);
    second.start_again();
    assert_eq!(first.wait().code(), Some(1));
    let nodes = second.get("/api/agents").await;
    assert_eq!(nodes, json!([]));
}

/// Readers at another node go on without hints, and the listener is replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_at_another_node_miss_nothing_while_the_bell_breaks() {
    let postgres = Server::start(Flush::Off);
    let database = postgres.database();
    let (home, other) = (node(&database, "home"), node(&database, "other"));
    let hurry = home.folder.path().join("hurry");
    let script = json!({ "mode": "stream", "deltas": 5_000, "pace_us": 5000, "hurry": hurry });
    let id = home.launch(&script).await;
    let mut follower = Follower::new(Place::of(&other), &id);
    let reader = Handle::current().spawn(async move {
        while follower.results() == 0 {
            follower.read(crate::follower::Way::Sse, usize::MAX >> 1).await;
        }
        follower
    });
    for _ in 0..10 {
        let head = head_of(&home, &id).await;
        postgres.end_connections(&database);
        other.wait_until(&id, |agent| head + 20 < agent["head"].as_u64().unwrap()).await;
    }
    std::fs::write(&hurry, "").unwrap();
    other.wait_for_status(&id, "completed").await;
    let events = other.events(&id).await;
    assert_eq!(text_of(&events), numbers(5_000));
    assert_eq!(tokio::time::timeout(PATIENCE, reader).await.expect("in time").unwrap().events(), events);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_hints_is_ready_and_says_that_it_polls() {
    let database = database();
    let server = node(&database, "alone");
    let until_bell = async |state: &str| {
        let started = Instant::now();
        loop {
            let answer = server.request(Method::GET, "/readyz").send().await.unwrap();
            let is_ready = answer.status() == StatusCode::OK;
            let said = answer.json::<Value>().await.unwrap();
            if is_ready && said == json!({ "status": "ready", "bell": state }) {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "{said}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    until_bell("working").await;
    database.sql("REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC");
    until_bell("polling").await;
    database.sql("GRANT EXECUTE ON FUNCTION pg_notify(text, text) TO PUBLIC");
    until_bell("working").await;
}
