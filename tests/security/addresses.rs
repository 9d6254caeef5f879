//! S01, S02: which addresses a server listens on, and when it refuses to start.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use crate::harness::{TestServer, program};
use crate::raw;
use crate::started::Started;

/// The addresses that a process listens on, as `/proc/net/tcp` and `tcp6` write them: in hexadecimal, with the port.
fn listening(pid: u32) -> BTreeSet<String> {
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let targets = links.filter_map(|link| std::fs::read_link(link.unwrap().path()).ok());
    let sockets: BTreeSet<String> = targets
        .filter_map(|target| Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut found = BTreeSet::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        for line in std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default().lines().skip(1)
        {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // 0A means "listen". A datagram socket has no such state, so it counts if it is open.
            if sockets.contains(fields[9]) && (fields[3] == "0A" || table.starts_with("udp")) {
                found.insert(format!("{table} {}", fields[1]));
            }
        }
    }
    found
}

#[tokio::test]
async fn s01_a_server_listens_on_the_loopback_address_alone() {
    let server = TestServer::start();
    let port: u16 = server.authority().rsplit(':').next().unwrap().parse().unwrap();
    assert_eq!(listening(server.pid()), BTreeSet::from([format!("tcp 0100007F:{port:04X}")]));
}

fn run(folder: &std::path::Path, words: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program());
    command.args(words).envs(env.iter().copied()).current_dir(folder).stdin(Stdio::null());
    command.env("HOME", folder).env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME").output().unwrap()
}

#[test]
fn s01_it_is_the_loopback_address_that_is_the_default() {
    let folder = tempfile::tempdir().unwrap();
    let _taken = std::net::TcpListener::bind("127.0.0.1:7117");
    let output = run(folder.path(), &["serve"], &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot listen on 127.0.0.1:7117"), "{said}");
}

/// Expects that the server refuses to start, with this exit code and this word.
fn refused(words: &[&str], env: &[(&str, &str)], code: i32, word: &str) {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), words, env);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    assert!(said.contains(word), "{words:?}: {said}");
}

#[test]
fn s02_without_a_token_it_serves_nobody_but_this_machine() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:127.0.0.1]:0"] {
        refused(&["serve", "--insecure-no-auth", "--listen", address], &[], 2, "insecure-no-auth");
    }
    let open = [("TOKENRAIL_SERVER_INSECURE_NO_AUTH", "true")];
    refused(&["serve", "--listen", "127.0.0.1:0"], &open, 2, "TOKENRAIL_SERVER_INSECURE_NO_AUTH");
}

#[tokio::test]
async fn s02_a_token_that_others_can_read_or_that_is_none_is_not_used() {
    let mut server = TestServer::start();
    server.kill_9();
    let file = server.data_dir().join("token");
    let good = std::fs::read_to_string(&file).unwrap();
    let starts = || server.command(&["serve"]).output().unwrap();
    for mode in [0o644, 0o640, 0o604, 0o660] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let output = starts();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{mode:o}: {said}");
        assert!(said.contains("other users can read"), "{mode:o}: {said}");
        assert!(!said.contains(good.trim()), "and the token is not shown");
    }
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    for none in ["", "short", &"g".repeat(64), &"0".repeat(65)] {
        std::fs::write(&file, none).unwrap();
        let output = starts();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{none:?}: {said}");
        assert!(said.contains("token"), "{none:?}: {said}");
    }
    std::fs::write(&file, good).unwrap();
    server.start_again();
}

#[tokio::test]
async fn s02_a_data_folder_to_which_others_can_write_is_not_used() {
    let mut server = TestServer::start();
    server.kill_9();
    for mode in [0o720, 0o702, 0o777] {
        std::fs::set_permissions(server.data_dir(), std::fs::Permissions::from_mode(mode)).unwrap();
        let output = server.command(&["serve"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{mode:o}: {said}");
        assert!(said.contains("other users can write to the data folder"), "{mode:o}: {said}");
    }
}

#[tokio::test]
async fn s02_a_server_that_others_can_reach_still_asks_who_they_are() {
    let mut server = TestServer::start();
    server.kill_9();
    let port = server.authority().rsplit(':').next().unwrap().to_owned();
    // A second flag of the same kind would be refused, so the address is passed in its variable.
    let file = server.folder.path().join("tokenrail.toml");
    let mut process = Command::new(program())
        .args(["serve", "--config"])
        .arg(file)
        .env("TOKENRAIL_LISTEN", format!("0.0.0.0:{port}"))
        .env("TOKENRAIL_DATA_DIR", server.data_dir())
        .current_dir(server.folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(process.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert!(line.starts_with("serving on "), "{line}");
    let ask = |host: String, token: &str| {
        let text =
            format!("GET /api/agents HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
        let server = &server;
        async move { raw::send(server, text).await.unwrap().status }
    };
    assert_eq!(ask(format!("127.0.0.1:{port}"), server.token()).await, 200);
    assert_eq!(ask(format!("127.0.0.1:{port}"), "x").await, 401);
    for host in [format!("0.0.0.0:{port}"), format!("192.0.2.1:{port}"), "evil.test".to_owned()] {
        assert_eq!(ask(host, server.token()).await, 421, "a name that was not configured");
    }
    let pid = rustix::process::Pid::from_child(&process);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let output = process.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("WARN") && said.contains("use a TLS proxy"), "{said}");
    check_warned_of_root(&said);
}

/// The server warns if, and only if, it runs as root.
fn check_warned_of_root(said: &str) {
    assert_eq!(said.contains("running as root"), rustix::process::geteuid().is_root(), "{said}");
}

#[tokio::test]
async fn s02_without_a_token_the_server_says_so_in_its_log() {
    let started = Started::start(&crate::harness::fake_config(), &[], &["--insecure-no-auth"]);
    let log = started.stop();
    assert!(log.contains("WARN") && log.contains("authentication is disabled"), "{log}");
    assert!(!log.contains("TLS proxy"), "who is alone needs none: {log}");
    check_warned_of_root(&log);
}
