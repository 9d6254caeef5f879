//! The private server itself.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use crate::instance::{LOOK_EVERY, PATIENCE};
use crate::{Database, Flush, Replication, Server, database, programs};

/// Asks as a program of a user does: by the url, with a password.
fn asked(url: &str, password: &str, sql: &str) -> Output {
    let mut psql = programs::command("psql");
    psql.args(["-X", "-A", "-t", "-d", url, "-c", sql]).env("PGPASSWORD", password);
    psql.stdin(Stdio::null()).output().unwrap()
}

fn told(url: &str, database: &Database, sql: &str) -> String {
    let output = asked(url, database.password(), sql);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "{what} does not happen");
        std::thread::sleep(LOOK_EVERY);
    }
}

#[test]
fn each_database_is_empty_and_needs_its_password() {
    let (one, other) = (database(), database());
    told(&one.url(), &one, "CREATE TABLE t (n int)");
    told(&other.url(), &other, "CREATE TABLE t (n int)");
    assert_eq!(std::fs::read_to_string(one.password_file()).unwrap().trim_end(), one.password());
    assert!(!asked(&one.url(), "wrong", "SELECT 1").status.success());
    assert_eq!(one.sql("SELECT count(*), current_user FROM t"), "0|postgres");
    assert_eq!(told(&one.url(), &one, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"), "f");
}

#[test]
fn a_commit_outlives_every_end_of_the_server() {
    let server = Server::start(Flush::On);
    let database = server.database();
    told(&database.url(), &database, "CREATE TABLE t (n int)");
    let ends: [fn(&Server); 3] = [Server::kill_9, Server::stop_immediately, Server::stop];
    for (number, end) in (1..).zip(ends) {
        told(&database.url(), &database, &format!("INSERT INTO t VALUES ({number})"));
        end(&server);
        assert!(!asked(&database.url(), database.password(), "SELECT 1").status.success());
        server.start_again();
        assert_eq!(told(&database.url(), &database, "SELECT max(n) FROM t"), number.to_string());
    }
}

#[test]
fn a_promoted_standby_has_what_was_committed() {
    let primary = Server::start(Flush::Off);
    let database = primary.database();
    told(&database.url(), &database, "CREATE TABLE t (n int)");
    let standby = primary.standby(Replication::Synchronous);
    told(&database.url(), &database, "INSERT INTO t VALUES (1)");
    primary.kill_9();
    standby.promote();
    let url = standby.url_of(&database);
    assert_eq!(
        told(&url, &database, "INSERT INTO t VALUES (2) RETURNING (SELECT count(*) FROM t)"),
        "1\nINSERT 0 1"
    );
}

#[test]
fn connections_can_be_ended() {
    let server = Server::start(Flush::Off);
    let database = server.database();
    let url = database.url();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| asked(&url, database.password(), "SELECT pg_sleep(600)"));
        until("a connection", || server.end_connections(&database) == 1);
        assert!(!waits.join().unwrap().status.success());
    });
}

/// In this variable, the test asks itself for a server that nobody ends.
const ABANDON: &str = "TOKENRAIL_TEST_POSTGRES_ABANDON";

#[test]
fn nothing_is_left_of_a_test_that_was_killed() {
    if std::env::var_os(ABANDON).is_some() {
        let server = Server::start(Flush::Off);
        println!("server {} {}", server.pid(), server.folder().display());
        loop {
            std::thread::park();
        }
    }
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "--nocapture", "with_postgres::nothing_is_left_of_a_test_that_was_killed"]);
    let mut test = test.env(ABANDON, "true").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(test.stdout.take().unwrap()).lines();
    let mut said =
        lines.map(Result::unwrap).filter_map(|line| Some(line.strip_prefix("server ")?.to_owned()));
    let said = said.next().unwrap();
    let (pid, folder) = said.split_once(' ').unwrap();
    let process = format!("/proc/{pid}");
    assert!(Path::new(&process).exists() && Path::new(folder).exists());

    test.kill().unwrap();
    test.wait().unwrap();
    until("the end of the server", || !Path::new(&process).exists());
    until("the end of its folder", || !Path::new(folder).exists());
}
