//! The four modes of slowhttptest: hundreds of clients that send or read as slowly as possible. Its path is in
//! `TOKENRAIL_TEST_SLOWHTTPTEST`.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::Method;
use tokio::time::Instant;

use crate::harness::{PATIENCE, TestServer};

const CONNECTIONS: &str = "300";
/// The duration of each mode, in seconds.
const TIME_S: &str = "6";
/// How long an honest client may wait for its response meanwhile.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The minimum number of attacking connections. Otherwise nothing was tested.
const ATTACKED: usize = 100;
/// Descriptors that come and go: those of the database's readers, and of the request that reads the metrics.
const FDS_MORE: usize = 8;

fn descriptors(server: &TestServer) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count()
}

fn attack(server: &TestServer, mode: &[&str], path: &str) -> Child {
    let program = std::env::var_os("TOKENRAIL_TEST_SLOWHTTPTEST").expect("cargo xtask test sets it");
    let mut command = Command::new(program);
    command.args(mode).args(["-c", CONNECTIONS, "-r", CONNECTIONS, "-l", TIME_S, "-i", "1", "-p", "3"]);
    // The program writes this value unchanged, so the slow bodies are sent by an authenticated client.
    let accept = format!("*/*\r\nAuthorization: Bearer {}", server.token());
    command.args(["-f", "application/json", "-m", &accept]);
    command.arg("-u").arg(format!("http://{}{path}", server.authority()));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Attacks the server. Checks that other clients are served meanwhile, and that no descriptor is left soon after.
/// Returns the highest number of connections.
async fn served_while(server: &TestServer, mode: &[&str], path: &str) -> usize {
    let id = server.launch_to_completion(&serde_json::json!({ "text": "hello" })).await;
    let before = descriptors(server);
    let (mut attack, mut highest, mut answers) = (attack(server, mode, path), before, 0);
    while attack.try_wait().unwrap().is_none() {
        for path in ["/healthz".to_owned(), format!("/api/agents/{id}/events")] {
            let asked =
                server.request(Method::GET, &path).timeout(ANSWER_MAX).send().await.expect("answered");
            assert_eq!(asked.status(), 200, "{path}");
            answers += 1;
        }
        highest = highest.max(descriptors(server));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(4 < answers, "{answers} answers");
    let started = Instant::now();
    while before + FDS_MORE < descriptors(server) {
        assert!(started.elapsed() < PATIENCE, "{} descriptors, {before} before", descriptors(server));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    highest - before
}

#[tokio::test]
async fn slow_heads() {
    let server = TestServer::start();
    let had = served_while(&server, &["-H", "-t", "GET", "-x", "24"], "/healthz").await;
    assert!(ATTACKED < had, "{had}");
}

#[tokio::test]
async fn slow_bodies() {
    let server = TestServer::start();
    let slow = ["-B", "-t", "POST", "-s", "8192", "-x", "10"];
    let had = served_while(&server, &slow, "/api/agents").await;
    assert!(ATTACKED < had, "{had}");
}

#[tokio::test]
async fn slow_readers() {
    let server = TestServer::start();
    let slow = ["-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3"];
    let had = served_while(&server, &slow, "/").await;
    assert!(ATTACKED < had, "{had}");
}

/// The server answers these immediately, so the test counts the responses instead of the connections.
#[tokio::test]
async fn many_ranges() {
    let server = TestServer::start();
    served_while(&server, &["-R", "-t", "HEAD", "-a", "10", "-b", "3000"], "/").await;
    let metrics = server.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    let heads = metrics.lines().filter(|line| line.contains("method=\"HEAD\""));
    let answered: usize = heads.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum();
    assert!(ATTACKED < answered, "{metrics}");
}
