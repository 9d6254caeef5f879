//! Other processes at the database: one that holds the write lock, and one that reads for a long time.

use std::process::Command;
use std::time::Duration;

use reqwest::Method;
use rusqlite::Connection;
use serde_json::json;

use crate::client::{Client, finished};
use crate::follower::Way;
use crate::harness::{PATIENCE, TestServer, fake_config, numbers, text_of};
use crate::judge;

fn outsider(server: &TestServer) -> Connection {
    Connection::open(server.data_dir().join("tokenrail.db")).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_writes_from_outside_delays_and_nothing_is_shown_meanwhile() {
    let server = TestServer::start();
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 2_000, "gate": gate, "gate_after": 10 })).await;
    let history = server.folder.path().join("seen");
    let client = Client::of(&server);
    let reader = client.follow(&id, Way::WebSocket, 1, &history);
    server.wait_until(&id, |agent| 10 < agent["head"].as_u64().unwrap()).await;
    let outsider = outsider(&server);
    // The lock is held longer than a statement waits for it.
    outsider.execute_batch("BEGIN IMMEDIATE").unwrap();
    let head = server.get(&format!("/api/agents/{id}")).await["head"].clone();
    std::fs::write(&gate, "").unwrap();
    let since = tokio::time::Instant::now();
    while since.elapsed() < Duration::from_secs(7) {
        assert_eq!(server.get(&format!("/api/agents/{id}")).await["head"], head, "reading goes on");
        let lines = std::fs::read_to_string(&history).unwrap().lines().count();
        assert!(lines as u64 <= head.as_u64().unwrap(), "what is not saved is not shown");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    outsider.execute_batch("ROLLBACK").unwrap();
    let seen = finished(reader).await;
    let there = client.events(&id).await;
    judge::saw_what_is_there(&seen, &history, &there);
    assert_eq!(text_of(&judge::parsed(&there)), numbers(2_000));
    judge::database_is_sound(&server.data_dir(), "after all");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reads_for_a_long_time_delays_nobody_and_the_log_is_cut_afterwards() {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nwal_bytes = 1048576\n"));
    let outsider = outsider(&server);
    outsider.execute_batch("BEGIN; SELECT count(*) FROM agents").unwrap();
    let id = server.launch_to_completion(&json!({ "deltas": 30_000 })).await;
    let log = server.data_dir().join("tokenrail.db-wal");
    let log_bytes = || std::fs::metadata(&log).map_or(0, |log| log.len());
    assert!(1 << 20 < log_bytes(), "the old reader keeps the log");
    outsider.execute_batch("COMMIT").unwrap();
    let started = tokio::time::Instant::now();
    while 1 << 20 < log_bytes() {
        assert!(started.elapsed() < PATIENCE, "the log is never cut: {}", log_bytes());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(text_of(&server.events(&id).await), numbers(30_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_on_the_size_of_files_delays_and_kills_nobody() {
    let mut server = TestServer::start();
    server.stop();
    let plain = server.command(&["serve", "--log", "warn"]);
    // In blocks of 512 bytes, so 2 MiB.
    let mut limited = Command::new("/bin/sh");
    limited
        .args(["-c", "ulimit -f 4096; exec \"$0\" \"$@\""])
        .arg(plain.get_program())
        .args(plain.get_args());
    server.start_by(limited).unwrap();
    let outsider = outsider(&server);
    outsider.execute_batch("BEGIN; SELECT count(*) FROM agents").unwrap();
    let id = server.launch(&json!({ "deltas": 2_000, "pace_us": 1000 })).await;
    let log = server.data_dir().join("tokenrail.db-wal");
    let started = tokio::time::Instant::now();
    while std::fs::metadata(&log).map_or(0, |log| log.len()) < (2 << 20) - (64 << 10) {
        assert!(started.elapsed() < PATIENCE, "the log never reaches the limit");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    while retries(&server).await == 0 {
        assert!(started.elapsed() < PATIENCE, "no write ever fails");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(server.get(&format!("/api/agents/{id}")).await["status"], "running", "reading goes on");
    outsider.execute_batch("COMMIT").unwrap();
    server.wait_for_status(&id, "completed").await;
    assert_eq!(text_of(&server.events(&id).await), numbers(2_000));
    judge::database_is_sound(&server.data_dir(), "after all");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_made_under_load_is_a_beginning_of_every_journal_and_can_be_served() {
    let server = TestServer::start();
    let gate = server.folder.path().join("gate");
    let script = json!({ "deltas": 40_000, "pace_us": 100, "gate": gate, "gate_after": 39_000 });
    let id = server.launch(&script).await;
    for number in 1..=3 {
        server.wait_until(&id, |agent| number * 3_000 < agent["head"].as_u64().unwrap()).await;
        let mut copy = TestServer::start();
        copy.stop();
        std::fs::remove_dir_all(copy.data_dir()).unwrap();
        let done = server.command(&["backup"]).arg(copy.data_dir()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        judge::database_is_sound(&copy.data_dir(), "of a copy");
        copy.start_again();
        copy.wait_for_status(&id, "interrupted").await;
        let (copied, there) = (Client::of(&copy).events(&id).await, Client::of(&server).events(&id).await);
        let same =
            copied.iter().zip(&there).take_while(|(copied, there)| copied.get() == there.get()).count();
        assert!(number * 3_000 <= same as u64, "{same}");
        // The copy has at most two more events, which its restart added: the end of the open message, and the result.
        assert!(copied.len() - same <= 2, "{same} of {}", copied.len());
    }
    std::fs::write(&gate, "").unwrap();
    server.wait_for_status(&id, "completed").await;
    assert_eq!(text_of(&server.events(&id).await), numbers(40_000));

    let again = server.command(&["backup"]).arg(server.data_dir()).output().unwrap();
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    assert!(String::from_utf8_lossy(&again.stderr).contains("is not empty"), "{again:?}");
}

async fn retries(server: &TestServer) -> u64 {
    let metrics = server.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    let line = metrics.lines().find(|line| line.starts_with("tokenrail_write_retries_total ")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_server_that_was_killed_leaves_its_folder_to_the_next_and_two_never_share_it() {
    let mut server = TestServer::start();
    for _ in 0..3 {
        let second = server.command(&["serve"]).output().unwrap();
        assert_eq!(second.status.code(), Some(1), "{second:?}");
        assert!(String::from_utf8_lossy(&second.stderr).contains("in use by another server"));
        server.kill_and_start_again();
    }
    judge::database_is_sound(&server.data_dir(), "after all");
}
